"""Threads that join their values, as CUDA C: what it reads like, what it computes, and what NVRTC
makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import instruction_mix, resources
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.schedule import Schedule
from tilewright.tir.dtype import dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...schedule.grids import Steps, block_for_each_row, warp_for_each_row
from ...schedule.programs import farthest

A100 = Target.parse("cuda:sm_80")


def built(func: PrimFunc, steps: Steps) -> Kernel:
    return tw.build(Schedule(func, A100).apply(steps), A100)


def reduced(reducer: Callable[..., object], rows: int, columns: int, kind: str) -> PrimFunc:
    x = te.placeholder((rows, columns), kind, name="X")
    k = te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: reducer(x[i, k], axis=k), name="S")  # type: ignore[arg-type,return-value]
    return te.func(x, s, name="reduced")


def scaled(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((rows, columns), lambda i, j: x[i, j] - s[i], name="Y")
    return te.func(x, y, name="scaled")


def test_a_warp_for_each_row(golden: Callable[[str, str], None]) -> None:
    kernel = built(scaled(5, 70), warp_for_each_row("S", "Y"))
    golden("cuda/warps.cu", kernel.source)


def test_a_block_for_each_row(golden: Callable[[str, str], None]) -> None:
    kernel = built(scaled(3, 1200), block_for_each_row("S", "Y"))
    golden("cuda/blocks.cu", kernel.source)


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.parametrize(
    ("reducer", "kind", "expected"),
    [
        (te.sum, "float32", np.sum),
        (te.sum, "float64", np.sum),
        (te.sum, "int64", np.sum),
        (partial(te.sum, dtype="int8"), "int8", lambda x, axis: x.sum(axis=axis, dtype=np.int8)),
        (te.max, "float32", np.max),
        (te.min, "int32", np.min),
        (te.prod, "int32", lambda x, axis: x.prod(axis=axis, dtype=np.int32)),
        (te.any, "bool", np.any),
        (te.all, "bool", np.all),
    ],
)
def test_each_reducer_is_joined(
    reducer: Callable[..., object], kind: str, expected: Callable[..., np.ndarray]
) -> None:
    kernel = built(reduced(reducer, 5, 70, kind), warp_for_each_row("S"))
    x = np.random.default_rng(0).integers(-4, 5, (5, 70)).astype(dtype(kind).numpy)
    x[1] = 1
    assert kernel.proof.status == "proved"
    assert np.array_equal(tw.emulated(kernel, checked=True)(x), expected(x, axis=1))


@pytest.mark.needs_cxx
def test_the_largest_and_where_it_is() -> None:
    kernel = built(farthest(3, 70), warp_for_each_row("best", "Y"))
    x = np.random.default_rng(0).integers(-9, 9, (3, 70)).astype(np.float32)
    result = tw.emulated(kernel, checked=True)(x)
    assert np.array_equal(result, (x.max(axis=1) + x.argmax(axis=1)).astype(np.float32))


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.parametrize(
    ("func", "steps", "barriers"),
    [
        (scaled(5, 70), warp_for_each_row("S", "Y"), 0),
        (scaled(3, 1200), block_for_each_row("S", "Y"), 1),
    ],
    ids=["warps", "blocks"],
)
def test_all_threads_have_the_result(func: PrimFunc, steps: Steps, barriers: int) -> None:
    kernel = built(func, steps)
    assert kernel.proof.status == "proved"
    assert kernel.source.count("__syncthreads") == barriers
    shape = func.parameters[0].buffer.shape
    x = np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)
    emulated = tw.emulated(kernel, checked=True)
    assert np.array_equal(emulated(x), x - x.sum(axis=1, keepdims=True))
    assert all(barrier.needed for barrier in emulated.code.report.barriers)


PLANTED = {  # what stands in the source, what is planted, and what finds it
    "a wrong lane": ("16 >> turn", "8 >> turn", "value"),
    "a round too few": ("turn < 5;", "turn < 4;", "value"),
    "all lanes store": ("if (tx < 1)", "if (true)", "race"),
    "no barrier": ("__syncthreads();", "", "race"),
    "a warp too many": ("(tx & 3)", "(tx & 7)", "out-of-bounds"),
    "no bound": ("tx * 4 < 1200", "tx * 4 < 1204", "out-of-bounds"),
    "half of a vector further on": ("(X + i * 1200", "(X + 2 + i * 1200", "misaligned"),
    "half a warp": ("S = S + S_other", "if (tx < 16) __syncwarp(); S = S + S_other", "warp"),
}


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(fault: str) -> None:
    old, new, expected = PLANTED[fault]
    artifact = built(scaled(2, 1200), block_for_each_row("S", "Y")).artifact
    assert isinstance(artifact, CudaArtifact)
    x = np.random.default_rng(0).integers(-4, 5, (2, 1200)).astype(np.float32)
    arrays = {"X": x, "Y": np.zeros_like(x)}
    assert old in artifact.source
    wrong = artifact.source.replace(old, new, 1)
    report = emulate(wrong, artifact.run.launches, arrays, checked=True)
    if expected == "value":
        assert not np.array_equal(arrays["Y"], x - x.sum(axis=1, keepdims=True))
    else:
        assert expected in {finding.kind for finding in report.findings}


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("cubin_tools")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_gpu_gets_shuffles(arch: str) -> None:
    source = built(scaled(3, 1200), block_for_each_row("S", "Y")).source
    cubin = compile_cuda(source, arch, name="scaled")
    (mix,) = instruction_mix(cubin).values()
    (taken,) = resources(cubin).values()
    assert mix.count("SHFL.BFLY") == 5 + 2
    assert mix.count("BAR") == 1
    assert taken.local_bytes == taken.stack_bytes == 0
