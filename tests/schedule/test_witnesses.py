"""Refusals with a witness: with the rule switched off the step applies, and the checked interpreter
meets the clash.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tilewright.schedule import dependence, legality, placement
from tilewright.schedule.schedule import Schedule
from tilewright.tir.evaluate import evaluate
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.interpreter_checks import InterpreterError

from .programs import Steps, blur, integers, matmul, matmul_relu, refused
from .test_merge import mirrored
from .test_rolling import rolled


def _parallel_over_k(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.parallel(k)


def _lanes_over_k(sch: Schedule) -> None:
    sch.vectorize(sch.loops("C")[2])


def _parallel_window(sch: Schedule) -> None:
    rolled(sch)
    sch.parallel(sch.loops("Y")[0])


def _staged_window(sch: Schedule) -> None:
    rolled(sch)
    sch.stage("R", "R", sch.loops("R")[0], "thread")


def _merged_mirror(sch: Schedule) -> None:
    sch.merge(sch.loops("P")[0], sch.loops("Y")[0])


def _merged_reduction(sch: Schedule) -> None:
    sch.reorder(*reversed(sch.loops("C")))
    sch.merge(sch.loops("C")[0], sch.loops("Y")[0])


def _accumulators_anew(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.decompose_reduction("C", i)


Off = tuple[object, str, object]  # where a rule stands, its name, what it then finds

CASES: dict[str, tuple[PrimFunc, Steps, Off]] = {
    "loop-clash: parallel": (
        matmul(3, 4, 3),
        _parallel_over_k,
        (legality, "check_independent", ()),
    ),
    "loop-clash: vectorize": (
        matmul(3, 4, 3),
        _lanes_over_k,
        (legality, "check_independent", ()),
    ),
    "loop-carries: parallel": (
        blur(4, 3),
        _parallel_window,
        (dependence, "check_reads_own", None),
    ),
    "loop-carries: stage": (blur(4, 3), _staged_window, (dependence, "check_reads_own", None)),
    "merge-order: another way": (
        mirrored(4),
        _merged_mirror,
        (dependence, "check_together", None),
    ),
    "merge-order: a reduction": (
        matmul_relu(3, 3, 3),
        _merged_reduction,
        (dependence, "check_together", None),
    ),
    "init-inside": (matmul(3, 4, 3), _accumulators_anew, (placement, "check_begins_once", None)),
}


def clash(func: PrimFunc, original: PrimFunc) -> str:
    """What goes wrong: the error of the checked interpreter, or the outputs that differ."""
    arrays = integers(original)
    expected = evaluate(original, arrays)
    try:
        results = interpret(func, *arrays.values(), checked=True)
    except InterpreterError as error:
        return error.message
    pairs = zip(func.outputs, results, strict=True)
    return " ".join(b.name for b, r in pairs if not np.array_equal(r, expected[b.name]))


@pytest.mark.parametrize("name", CASES)
def test_the_witness_of_a_refusal_is_met_when_the_rule_is_off(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func, steps, (module, rule, finds) = CASES[name]
    text = refused(func, steps)
    assert f"[{name.split(':')[0]}]" in text
    note = next(line for line in text.splitlines() if line.startswith("  Note: "))
    assert len(re.findall(r"\(\w+=\d+[^()]*\)", note)) == 2, note  # two concrete iterations
    (tensor,) = {element.split("[")[0] for element in re.findall(r"\w+\[[\d, ]*\]", note)}
    monkeypatch.setattr(module, rule, lambda *_: finds)
    met = clash(Schedule(func).apply(steps).func, func)
    outputs = [buffer.name for buffer in func.outputs]
    assert any(re.search(rf"\b{known}(_local)?\b", met) for known in (tensor, *outputs)), met
