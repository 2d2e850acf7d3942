"""Every case that the fuzzer once found holds now."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.driver.fuzz.case import Case, CaseError
from tilewright.driver.fuzz.replay import failure_of

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
