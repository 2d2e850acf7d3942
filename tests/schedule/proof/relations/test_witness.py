"""Refusals with a witness: with the rule switched off the step applies, and the checked interpreter
meets the conflict.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tilewright.codegen.lower.storage import starts_afresh
from tilewright.schedule.errors import Kind, ScheduleError
from tilewright.schedule.legality import dependence
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.func import PrimFunc

from ...legality.test_recurrence import WRONG as SCANS
from ...primitives.blocks.test_compute_at import CASES as MOVES
from ...primitives.blocks.test_reduction import CASES as REDUCTIONS
from ...primitives.loops.test_fission import CASES as CUTS
from ...primitives.loops.test_kinds import CASES as KINDS
from ...primitives.loops.test_merge import CASES as MERGES
from ...primitives.loops.test_merge import mirrored, shifted
from ...primitives.storage.test_cache import CASES as COPIES
from ...primitives.storage.test_rolling import CASES as WINDOWS
from ...primitives.storage.test_rolling import rolled
from ...primitives.storage.test_scope import CASES as SCOPES
from ...programs import Steps, assert_same_values, blur, matmul, matmul_relu
from ...switched_off import OFF, conflict, switch_off, tensor_of
from ...test_errors import codes_of


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


def _merged(sch: Schedule) -> LoopRef:
    return sch.merge(sch.loops("P")[0], sch.loops("Y")[0])


CASES: dict[str, tuple[PrimFunc, Steps]] = {
    "loop-conflict: parallel": (matmul(3, 4, 3), _parallel_over_k),
    "loop-conflict: vectorize": (matmul(3, 4, 3), _lanes_over_k),
    "loop-conflict: parts of a sum": KINDS["loop-conflict: parts of a sum"],
    "loop-carries: parallel": (blur(4, 3), _parallel_window),
    "loop-carries: stage": (blur(4, 3), _staged_window),
    "fission-order": CUTS["fission-order"],
    "merge-order: another way": (mirrored(4), _merged_mirror),
    "merge-order: a reduction": (matmul_relu(3, 3, 3), _merged_reduction),
    "merge-order: an initialisation": MERGES["merge-order: terms before the initialisation"],
    "init-inside": (matmul(3, 4, 3), _accumulators_anew),
    "operand-ahead": WINDOWS["operand-ahead: the second window of a chain first"],
    "operand-later": MOVES["reverse_compute_at: operand-later"],
    "reader-early": MOVES["reorder: reader-early"],
    "reader-inside": COPIES["cache_write: reader-inside"],
    "reader-inside: rfactor": REDUCTIONS["rfactor: reader-inside"],
    "reduction-open": MOVES["reverse_compute_at: reduction-open"],
    "reverse-overlap": MOVES["reverse_compute_at: reverse-overlap"],
    "scan-carries: parallel": SCANS["scan-carries: parallel"],
    "scan-carries: vectorize": SCANS["scan-carries: vectorize"],
    "scan-order": SCANS["scan-order: reorder"],
    "scope-carries": SCOPES["scope-carries"],
    "scope-carries: a scan": SCANS["scope-carries: set_scope"],
    "storage-elsewhere": MOVES["reverse_compute_at: storage-elsewhere"],
    "writer-inside: before the nest": COPIES["cache_read: writer-inside"],
}


def refusal(func: PrimFunc, steps: Steps) -> ScheduleError:
    """The refusal that `steps` ends in."""
    with pytest.raises(ScheduleError) as refused:
        Schedule(func).apply(steps)
    return refused.value


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_the_witness_of_a_refusal_is_met_when_the_rule_is_off(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    func, steps = CASES[name]
    error = refusal(func, steps)
    assert (error.code, error.kind) == (name.split(":")[0], Kind.CONFLICT)
    tensor = tensor_of(error)
    switch_off(monkeypatch, error.code)
    met = conflict(Schedule(func).apply(steps))
    outputs = [buffer.name for buffer in func.outputs]
    assert any(re.search(rf"\b{known}(_\w+)?\b", met) for known in (tensor, *outputs)), met


def test_every_rule_of_order_is_switched_off_once(sources: tuple[Path, ...]) -> None:
    conflicts = codes_of(Kind.CONFLICT, sources)
    assert {name.split(":")[0] for name in CASES} == conflicts == OFF.keys()


def test_what_a_merged_loop_carries_is_lost_where_storage_is_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    error = refusal(shifted(4), _merged)
    assert (error.code, tensor_of(error)) == ("merge-carries", "P")
    monkeypatch.setattr(dependence, "check_together", lambda *_: None)
    monkeypatch.setattr(starts_afresh, "_reads_behind", lambda *_: False)  # else it is not folded
    assert "'P'[0] is read" in conflict(Schedule(shifted(4)).apply(_merged))


def test_a_reduction_that_overlaps_is_work_done_twice_and_no_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    func, steps = MOVES["compute_at: recompute-reduction"]
    error = refusal(func, steps)
    assert error.code == "recompute-reduction"
    tensor_of(error)
    module = import_module("tilewright.schedule.primitives.blocks.compute_at")
    monkeypatch.setattr(module, "is_reduction", lambda block: False)
    sch = Schedule(func).apply(steps)
    assert any(block.recomputed for block in sch.func.blocks)
    assert_same_values(sch.func, func)
