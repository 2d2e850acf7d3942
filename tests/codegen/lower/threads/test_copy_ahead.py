"""codegen/lower/threads/copy_ahead.py: slices that are fetched ahead: text, values, proof,
refusal.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.threads.copy_ahead import CopyAhead
from tilewright.driver.lower import lower_function
from tilewright.runtime.cuda.emulator.emulated_code import EmulatedCode
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.text.equal import equal
from tilewright.tir.verify.verify import Stage, verify

from ....schedule.grids import tiled
from ....schedule.programs import integers, matmul

A100 = Target.parse("cuda:sm_80")


def test_a_slice_is_fetched_before_the_one_that_is_used(golden: Callable[[str, str], None]) -> None:
    nest = lower_to_nest(Schedule(matmul(16, 16, 12)).apply(tiled(stages=2)).func)
    verify(nest, Stage.NEST)
    golden("copy_ahead.txt", str(nest) + "\n")
    assert equal(parse(str(nest)), nest)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("stages", [2, 3, 5, 9])
@pytest.mark.parametrize("depth", [3, 5, 16])
def test_values_and_proof(stages: int, depth: int) -> None:
    func = matmul(13, 9, 16)
    sch = Schedule(func).apply(tiled(depth=depth, stages=stages))
    nest = lower_to_nest(sch.func)
    arrays = integers(func)
    (result,) = interpret(nest, *arrays.values(), checked=True, barriers=True)
    np.testing.assert_array_equal(result, arrays["A"] @ arrays["B"])
    verdict = prove(nest, canonical_form(sch.func))
    assert verdict.status == "proved", str(verdict)
    assert ("commit" in str(nest)) == (depth < 16)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("most", [9, 1])  # columns; a slice of one column is a whole tensor
def test_slices_of_sizes_that_a_call_decides_are_fetched_ahead(most: int) -> None:
    m, n = te.dim("m", 1, 13), te.dim("n", 1, most)
    a = te.placeholder((m, 16), "float32", name="A")
    b = te.placeholder((16, n), "float32", name="B")
    k = te.reduce_axis(16, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = Schedule(te.func(a, b, c, name="matmul")).apply(tiled(depth=4, stages=2))
    nest = lower_to_nest(sch.func)
    verify(nest, Stage.NEST)
    assert "commit" in str(nest)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    for rows, columns in ((13, most), (1, 1), (7, -(-most // 2))):
        x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
        y = np.arange(16 * columns, dtype=np.float32).reshape(16, columns)
        (found,) = interpret(nest, x, y, checked=True, barriers=True)
        np.testing.assert_array_equal(found, x @ y)


@pytest.mark.needs_cxx
@pytest.mark.parametrize("stages", [2, 3])
def test_emulated_copies_that_go_on_are_there_in_time(stages: int) -> None:
    func = matmul(16, 16, 32)
    kernel = tw.build(Schedule(func, A100).apply(tiled(depth=4, stages=stages)), A100)
    assert kernel.proof.status == "proved"
    assert kernel.source.count("tw_cp_async_4(&") == 4  # two tensors, at two places
    assert kernel.source.count(f"tw_cp_async_wait<{stages - 2}>();\n") == 2
    copy = tw.emulated(kernel, checked=True)
    arrays = integers(func)
    np.testing.assert_array_equal(copy(*arrays.values()), arrays["A"] @ arrays["B"])
    assert isinstance(copy.code, EmulatedCode)
    assert all(barrier.needed for barrier in copy.code.report.barriers)


def test_lowered_text_is_read_back() -> None:
    sch = Schedule(matmul(16, 16, 12), A100).apply(tiled(stages=2))
    run = lower_function(sch, A100).parts.run
    assert "commit(" in str(run)
    assert equal(parse(str(run)), run)


def test_a_loop_that_does_not_fetch_first_any_more_is_refused() -> None:
    nest = lower_to_nest(Schedule(matmul(16, 16, 12)).apply(tiled()).func)
    text = str(nest).replace("for k_0 in range(4):", "for k_0 in range(4, stages=2):")
    moved = text.replace('"shared"', '"thread"')
    with pytest.raises(TargetError) as caught:
        CopyAhead()(parse(moved))
    assert str(caught.value) == (
        "TargetError: copy_ahead: loop 'k_0' of 'matmul' has the hint 'stages', but no shared "
        "memory is its own; expected copies into shared memory of its own, then their use. "
        "[ahead-copies]\n"
        "  Hint: annotate(loop, 'stages', n) last, behind steps that move blocks."
    )
