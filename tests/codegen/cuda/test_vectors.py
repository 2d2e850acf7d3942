"""codegen/cuda/vectors.py: vectors as CUDA C, what NVRTC makes of them, and what they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.cuda.vector_types import vector_definitions, vector_type
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import instruction_mix, resources
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.schedule import Schedule
from tilewright.tir.dtype import dtype
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

A100 = Target.parse("cuda:sm_80")
needs_tools = pytest.mark.usefixtures("cubin_tools")


def vectorised(func: PrimFunc, lanes: int, threads: int = 32) -> Kernel:
    """A kernel of the one block Y, of whose elements each thread computes some neighbours."""

    def steps(sch: Schedule) -> None:
        whole = sch.loops("Y")
        one = sch.fuse(*whole) if len(whole) > 1 else whole[0]
        blocks, thread, lane = sch.split(one, (None, threads, lanes))
        sch.bind(blocks, "blockIdx.x")
        sch.bind(thread, "threadIdx.x")
        sch.vectorize(lane)

    return tw.build(Schedule(func, A100).apply(steps), A100)


def copied(size: int, kind: str) -> PrimFunc:
    x = te.placeholder((size,), kind, name="X")
    return te.func(x, te.compute((size,), lambda i: x[i], name="Y"), name="copied")


def scaled(rows: int, columns: int) -> PrimFunc:
    """A row of numbers for all rows of a tensor."""
    x = te.placeholder((rows, columns), "float32", name="X")
    b = te.placeholder((columns,), "float32", name="B")
    y = te.compute((rows, columns), lambda i, j: te.exp(x[i, j]) * b[j], name="Y")
    return te.func(x, b, y, name="scaled")


def test_vectors_read_as_a_person_would_have_written_them(
    golden: Callable[[str, str], None],
) -> None:
    x = te.placeholder((3, 40), "float32", name="X")
    b = te.placeholder((40,), "float32", name="B")
    y = te.compute((3, 40), lambda i, j: x[i, j] * 2.0 + b[j], name="Y")
    golden("cuda/vectors.cu", vectorised(te.func(x, b, y, name="scaled"), 4).source)


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.parametrize(
    ("kind", "lanes"),
    [
        ("float32", 4),
        ("float64", 2),
        ("float16", 8),
        ("int64", 2),
        ("uint16", 2),
        ("int8", 16),
        ("bool", 4),
    ],
)
def test_each_type_moves_in_one_piece(kind: str, lanes: int) -> None:
    size = 30 * lanes
    x = np.arange(size).astype(dtype(kind).numpy)
    emulated = tw.emulated(vectorised(copied(size, kind), lanes), checked=True)
    assert np.array_equal(emulated(x), x)
    width = lanes * dtype(kind).bytes
    assert [site.bytes for site in emulated.code.report.sites] == [width, width]
    assert all(site.efficiency == 1 for site in emulated.code.report.sites)


@pytest.mark.needs_cxx
def test_sixteen_bytes_of_each_lane_of_a_warp_are_sixteen_sectors() -> None:
    """Four of 32 bytes for each of the four parts that a warp's request of 512 bytes goes in."""
    emulated = tw.emulated(vectorised(copied(4 * 32 * 8, "float32"), 4), checked=True)
    emulated(np.zeros(4 * 32 * 8, np.float32))
    for site in emulated.code.report.sites:
        assert (site.requests, site.parts) == (8, 8 * 16)


@pytest.mark.needs_cxx
def test_what_a_vector_is_computed_from_may_be_anything() -> None:
    x = np.random.default_rng(0).standard_normal((3, 40), dtype=np.float32)
    b = np.arange(40, dtype=np.float32)
    kernel = vectorised(scaled(3, 40), 4)
    assert str(kernel.proof).startswith("proved")
    result = tw.emulated(kernel, checked=True)(x, b)
    np.testing.assert_allclose(result, np.exp(x) * b, rtol=1e-6)


@pytest.mark.sampled(2)
@needs_tools
@pytest.mark.parametrize(("kind", "lanes"), [("float32", 4), ("float16", 8), ("int8", 16)])
def test_the_gpu_gets_accesses_of_128_bits(kind: str, lanes: int) -> None:
    kernel = vectorised(copied(32 * lanes * 4, kind), lanes)
    for arch in ("sm_80", "sm_90a"):
        cubin = compile_cuda(kernel.source, arch, name="copied")
        (mix,) = instruction_mix(cubin).values()
        assert (mix.count("LDG.E.128"), mix.count("STG.E.128")) == (1, 1)
        assert (mix.count("LDG"), mix.count("STG")) == (1, 1)
        (taken,) = resources(cubin).values()
        assert taken.local_bytes == taken.stack_bytes == 0


@needs_tools
def test_the_rule_moves_vectors_where_there_are_enough_of_them() -> None:
    for size, expected in ((1 << 15, 1), (1 << 13, 0), ((1 << 15) + 2, 0)):
        cubin = compile_cuda(tw.build(copied(size, "float32"), A100).source, "sm_80", name="c")
        (mix,) = instruction_mix(cubin).values()
        assert mix.count("LDG.E.128") == mix.count("STG.E.128") == expected


def test_definitions_are_those_that_a_source_uses() -> None:
    assert vector_type(dtype("float32").with_lanes(4)) == "float4"
    assert vector_type(dtype("float16").with_lanes(8)) == "tw_ushort8"
    assert vector_definitions("*(const float4 *)X") == ""
    struct = "struct __align__(8) tw_char8 { signed char at[8]; };\n"
    assert vector_definitions("*(const tw_char8 *)X") == struct
    assert vector_definitions("tw_make_char8(") == (
        f"{struct}\n"
        "static __device__ __forceinline__ tw_char8\n"
        "tw_make_char8(signed char a0, signed char a1, signed char a2, signed char a3, signed char "
        "a4,\n"
        "    signed char a5, signed char a6, signed char a7)\n"
        "{\n"
        "    return {{a0, a1, a2, a3, a4, a5, a6, a7}};\n"
        "}\n"
    )
