"""Every case that the fuzzer once found holds now, or its last step is refused (`REFUSED`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.driver.fuzz.case import Case, CaseError
from tilewright.driver.fuzz.replay import failure_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace

from ...schedule.programs import matmul

pytestmark = pytest.mark.sampled(3)

CORPUS = sorted((Path(__file__).resolve().parents[2] / "corpus").glob("*.py"))


@pytest.mark.needs_cc
@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_once_failed_holds(path: Path) -> None:
    failure = failure_of(Case.read(path))
    assert failure is None, str(failure)


def test_a_file_that_is_no_case_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.py"
    path.write_text("FUNCTION = 3\n")
    with pytest.raises(CaseError) as caught:
        Case.read(path)
    assert str(caught.value) == (
        "CaseError: corpus: 'other.py' lacks FUNCTION or STEPS; expected what `tilewright fuzz` "
        "writes. [corpus-file]"
    )


def test_a_refusal_that_is_kept_is_that_of_the_last_step(tmp_path: Path) -> None:
    sch = Schedule(matmul(2, 3, 4))
    i, _, _ = sch.loops("C")
    sch.split(i, (None, 2))
    k = sch.loops("C")[-1]
    vector = sch.as_step("vectorize", {"loop": k})
    unroll = sch.as_step("unroll", {"loop": k})
    case = Case(sch.original, sch.trace)
    refused = replace(case, trace=Trace((*sch.trace.steps, vector)), refused="loop-conflict")
    path = tmp_path / "case.py"
    path.write_text(refused.script("A case.", "It is refused."))
    assert Case.read(path).refused == "loop-conflict"
    assert failure_of(Case.read(path), compiled=False) is None
    other = failure_of(replace(refused, refused="loop-kind"), compiled=False)
    assert str(other).startswith("refusal: ScheduleError: vectorize: iterations of loop 'k'")
    assert str(other).endswith("; expected 'loop-kind'")
    applied = replace(refused, trace=Trace((*sch.trace.steps, unroll)))
    assert str(failure_of(applied, compiled=False)) == (
        "refusal: the last step applies; expected the error 'loop-conflict'"
    )
