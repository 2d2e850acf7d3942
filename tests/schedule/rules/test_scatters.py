"""schedule/rules/scatters.py: what stands around a scatter is scheduled, the scatter is left as it
is, and on a GPU refused; its price.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.rules.default import rule_for
from tilewright.schedule.rules.scatters import LONG_CHECK, step_sweep
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import Extern
from tilewright.tir.target.target import CpuTarget, Target

from ...tir.test_suppression import func_of

AVX2, GPU = CpuTarget.of(Target.parse("c:avx2")), Target.parse("cuda:sm_90a")


def rows(count: int, how: str = "add", rows_of_x: int = 40) -> PrimFunc:
    """2 X + U at checked places, and 1 more."""
    x = te.placeholder((rows_of_x, 24), "float32", name="X")
    u = te.placeholder((count, 24), "float32", name="U")
    i = te.placeholder((count,), "int64", name="I")
    twice = te.compute(x.shape, lambda r, c: 2.0 * x[r, c], name="twice")
    at = te.compute(
        (count,), lambda k: te.cast(te.checked(i[k], rows_of_x, what="row"), "int32"), name="at"
    )
    y = te.scatter(twice, u, at, axis=0, combining=how, name="Y")
    z = te.compute(x.shape, lambda r, c: y[r, c] + 1.0, name="Z")
    return te.func(x, u, i, z, name="rows")


def given(func: PrimFunc) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    shapes = [p.buffer.shape for p in func.parameters if p.role == "input"]
    floats = [rng.standard_normal(shape).astype(np.float32) for shape in shapes[:2]]
    return [*floats, rng.integers(0, shapes[0][0], shapes[2])]


def test_it_takes_what_scatters_and_leaves_the_scatter() -> None:
    func = rows(9)
    rule = rule_for(func, AVX2)
    assert rule.name == rule_for(func).name == "scatter"
    sch = rule.schedule(func, AVX2)
    (call,) = (b.body for b in sch.func.blocks if isinstance(b.body, Extern))
    assert call == func.block("Y").body
    assert "vectorized" in str(sch.func)
    x = te.placeholder((4,), "float32", name="X")
    plain = te.func(x, te.compute((4,), lambda i: x[i] + 1.0, name="Y"), name="f")
    assert rule_for(plain, AVX2).name != "scatter"


@pytest.mark.needs_cc
@pytest.mark.parametrize("count", [9, LONG_CHECK, 3 * LONG_CHECK + 7])
@pytest.mark.parametrize("strict", [False, True])
def test_its_kernels_are_proved_and_right(count: int, strict: bool) -> None:
    func = rows(count)
    kernel = tw.build(func, strict=strict)
    assert str(kernel.proof).startswith("proved")
    arrays = given(func)
    np.testing.assert_array_equal(kernel(*arrays), evaluate(func, arrays)["Z"])
    arrays[2][count // 2] = 40
    with pytest.raises(IndexError, match="'row'"):
        kernel(*arrays)


def test_a_check_of_many_indices_is_made_in_parts() -> None:
    for count, expected in ((LONG_CHECK - 1, 1), (LONG_CHECK, 2)):
        sch = rule_for(rows(count), AVX2).schedule(rows(count), AVX2)
        checks = [block for block in sch.func.blocks if block.name.startswith("at_check")]
        assert (len(checks) >= expected) is True
        assert (len(checks) == 1) is (expected == 1)


def test_a_price_counts_the_updates_one_by_one() -> None:
    one, many = (step_sweep(rows(count).block("Y"), AVX2) for count in (100, 1000))
    assert many.cycles == 10 * one.cycles
    assert one.threads == 1
    assert one.moved == 4 * (2 * 40 * 24 + 100 * 24 + 100)
    passes = rule_for(rows(100), AVX2).passes(rows(100), AVX2)
    assert one in passes
    assert len(passes) > 1


def test_a_suppression_costs_its_pairs_and_is_refused_on_a_gpu() -> None:
    few, many = (func_of(2, 800, most).block("kept") for most in (10, 100))
    sweeps = [step_sweep(block, AVX2) for block in (few, many)]
    assert [sweep.cycles for sweep in sweeps] == [3600, 21600]
    assert sweeps[0].moved == 4 * (5 * 1600 + 2 + 1 + 2 * 10 + 2)
    func = func_of(2, 800, 10)
    assert rule_for(func, AVX2).name == "scatter"
    with pytest.raises(ScheduleError) as error:
        rule_for(func, GPU)
    assert str(error.value) == (
        "ScheduleError: rule: block 'kept' of 'suppression' suppresses boxes that overlap, one box "
        "after the other, which no thread of a grid does for others; expected sums and maxima. "
        "[scatter-grid]\n"
        "  Note: a limit of tilewright: the step may well keep the meaning."
    )


def test_a_gpu_is_refused() -> None:
    with pytest.raises(ScheduleError) as error:
        rule_for(rows(9), GPU)
    assert str(error.value) == (
        "ScheduleError: rule: block 'Y' of 'rows' scatters by 'add' along axis 0, one update after "
        "the other, which no thread of a grid does for others; expected sums and maxima. "
        "[scatter-grid]\n"
        "  Note: a limit of tilewright: the step may well keep the meaning.\n"
        "  Hint: te.sum(te.select(te.eq(place[k], i), update[k], 0), axis=k) finds the updates of "
        "each element."
    )


STEPS: dict[str, tuple[Callable[[tw.Schedule], object], str]] = {
    "itself": (lambda s: s.compute_inline("Y"), "which is one step; expected a block of loops"),
    "what it reads": (lambda s: s.compute_inline("twice"), "the step would change 'twice' there"),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_would_change_it_is_refused(name: str) -> None:
    step, said = STEPS[name]
    with pytest.raises(ScheduleError) as error:
        step(tw.Schedule(rows(9)))
    assert "block 'Y' scatters by 'add' along axis 0, " in str(error.value)
    assert said in str(error.value)
