"""Programs of codegen's tests: from the text of a nest to arrays, by way of gcc or clang, beside
the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright.codegen.artifact import Artifact, Entry
from tilewright.codegen.c.build import build_artifact
from tilewright.runtime.arrays import empty_aligned
from tilewright.runtime.cpu.pool import pool_run
from tilewright.runtime.machine.host import host
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.library import Library, ffi
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

Arrays = dict[str, np.ndarray]
Outputs = tuple[np.ndarray, ...]
GUARD = 64  # elements around each array that nobody may touch


@pytest.fixture(params=["scalar", "avx2", "avx512"])
def target(request: pytest.FixtureRequest) -> Target:
    """Each instruction set that this machine runs."""
    if request.param not in host().isas:
        pytest.skip(f"this machine has no {request.param}")
    return Target.parse(f"c:{request.param}")


def random_arrays(func: PrimFunc, seed: int = 0) -> Arrays:
    """Values for every parameter but the outputs."""
    rng = np.random.default_rng(seed)
    found: Arrays = {}
    for p in func.parameters:
        if p.role == "output":
            continue
        if p.buffer.type.is_float:
            found[p.name] = rng.standard_normal(p.buffer.shape).astype(p.buffer.type.numpy)
        else:
            found[p.name] = rng.integers(-9, 9, p.buffer.shape).astype(p.buffer.type.numpy)
    return found


@pytest.fixture(name="run_artifact")
def _run_artifact() -> Callable[..., Outputs]:
    """run_artifact(artifact, arrays, threads=1): the outputs of compiled code."""
    return run_artifact


def run_artifact(artifact: Artifact, arrays: Arrays, threads: int = 1) -> Outputs:
    """Compile and run an artifact; arrays stand between guards, the workspace is poisoned."""
    library = Library(compile_shared(artifact.source, artifact.target), name=artifact.name)
    values = dict(arrays)
    if artifact.prepare is not None:
        values |= _run_entry(library, artifact.prepare, values, threads)
    outputs = _run_entry(library, artifact.run, values, threads)
    return tuple(outputs.values())


def _run_entry(library: Library, entry: Entry, values: Arrays, threads: int) -> Arrays:
    placed, outputs = [], {}
    for p in entry.parameters:
        size = int(np.prod(p.shape, dtype=np.int64))
        flat = empty_aligned((size + 2 * GUARD,), p.dtype.numpy)
        flat.view(np.uint8)[:] = 0xA5
        if p.role == "output":
            outputs[p.name] = flat[GUARD : GUARD + size].reshape(p.shape)
        else:
            flat[GUARD : GUARD + size] = values[p.name].reshape(-1)
        placed.append(flat)
    scratch = empty_aligned(
        (1 << 14) + entry.workspace_bytes + threads * entry.thread_workspace_bytes,
        np.dtype(np.uint8),
    )
    scratch[:] = 0xA5
    pointers = [ffi.from_buffer("char[]", flat) + GUARD * flat.itemsize for flat in placed]
    pointers.append(ffi.from_buffer("char[]", scratch))
    pool_run()(library.entry(entry.symbol), ffi.new("void *[]", pointers), threads)
    for flat in placed:
        edges = np.concatenate([flat[:GUARD], flat[-GUARD:]]).view(np.uint8)
        assert (edges == 0xA5).all(), "a guard was overwritten"
    return outputs


@pytest.fixture
def check(target: Target) -> Callable[..., Outputs]:
    """check(text): compile the nest for `target`, run it on 1 and 3 threads, compare with the
    interpreter.
    """

    def compare(
        what: str | PrimFunc, arrays: Arrays | None = None, *, rtol: float = 0.0, atol: float = 0.0
    ) -> Outputs:
        func = parse(what) if isinstance(what, str) else what
        given = arrays if arrays is not None else random_arrays(func)
        expected = interpret(func, *given.values())
        artifact = build_artifact(func, target)
        for threads in (1, 3):
            results = run_artifact(artifact, given, threads)
            compare_outputs(results, expected, rtol, atol)
        return results

    return compare


def compare_outputs(
    results: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Equal values (NaN equals NaN), or close ones where a tolerance is given."""
    for result, reference in zip(results, expected, strict=True):
        if rtol or atol:
            np.testing.assert_allclose(result, reference, rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(result, reference)
