"""schedule/errors.py: every refusal says of which kind it is; a conflict shows two iterations, a
limit says that it is one.
"""

from __future__ import annotations

import ast
import pickle
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.schedule.errors import LIMIT_NOTE, Kind, ScheduleError, refuse

from .programs import matmul
from .switched_off import OFF, PLACE


def refusing_calls(path: Path) -> Iterator[tuple[int, set[str], set[Kind]]]:
    """Each call of `refuse` in a file: its line, the codes and the kinds that it may give."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in ("refuse", "ScheduleError"):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        codes = {
            part.value
            for part in ast.walk(given["code"])
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        named = [given["kind"]] if "kind" in given else []
        kinds = {
            Kind[part.attr]
            for value in named
            for part in ast.walk(value)
            if isinstance(part, ast.Attribute) and part.attr in Kind.__members__
        }
        if node.func.id == "ScheduleError" and not named:
            kinds = {Kind.ARGUMENT}
        yield node.lineno, codes, kinds


def codes_of(kind: Kind, sources: tuple[Path, ...]) -> set[str]:
    """The codes that the sources of schedule/ give to refusals of a kind."""
    return {code for code, kinds in registry(sources).items() if kind in kinds}


def registry(sources: tuple[Path, ...]) -> dict[str, set[Kind]]:
    """The kinds of each code of schedule/."""
    found: defaultdict[str, set[Kind]] = defaultdict(set)
    for path in sources:
        if "schedule" not in path.parts or path.name == "errors.py":
            continue
        for _, codes, kinds in refusing_calls(path):
            for code in codes:
                found[code] |= kinds
    return found


def goldens(root: Path) -> dict[str, list[str]]:
    """The refusals of the golden files, whole, by their codes."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "tests" / "golden" / "errors").glob("*.txt")):
        for text in re.split(r"(?m)^# .*$", path.read_text(encoding="utf-8")):
            code = re.search(r"\[([a-z0-9-]+)\]$", text.strip().partition("\n")[0])
            if text.strip().startswith("ScheduleError:") and code is not None:
                found[code[1]].append(text)
    return found


def test_every_refusal_says_of_which_kind_it_is(sources: tuple[Path, ...]) -> None:
    found = registry(sources)
    assert len(found) > 120
    assert not [code for code, kinds in found.items() if not kinds]


def test_a_conflict_is_shown_by_two_iterations_and_an_element(
    sources: tuple[Path, ...], root: Path
) -> None:
    texts = goldens(root)
    conflicts = codes_of(Kind.CONFLICT, sources)
    for code in conflicts & texts.keys():
        for text in texts[code]:
            notes = [line for line in text.splitlines() if line.startswith("  Note: ")]
            assert notes, text
            assert len(PLACE.findall(notes[0])) == 2 or LIMIT_NOTE in notes[-1], text
    assert conflicts == OFF.keys()


def test_a_limit_says_that_it_is_one_and_what_to_do(sources: tuple[Path, ...], root: Path) -> None:
    found, texts = registry(sources), goldens(root)
    limits = {code for code, kinds in found.items() if kinds == {Kind.LIMIT}} & texts.keys()
    assert len(limits) > 30
    for code in limits:
        for text in texts[code]:
            assert f"  Note: {LIMIT_NOTE}" in text.splitlines(), text
            assert "  Hint: " in text, text


def test_a_conflict_that_names_no_iterations_counts_as_a_limit() -> None:
    func = matmul(2, 2, 2)
    shown = refuse(func, "x", code="x", kind=Kind.CONFLICT, notes=("C[0] twice.",))
    assert (shown.kind, shown.notes) == (Kind.CONFLICT, ("C[0] twice.",))
    unseen = refuse(func, "x", code="x", kind=Kind.CONFLICT)
    assert (unseen.kind, unseen.notes) == (Kind.LIMIT, (LIMIT_NOTE,))


@pytest.mark.parametrize("kind", Kind)
def test_a_refusal_keeps_its_kind_when_it_is_sent_to_another_process(kind: Kind) -> None:
    error = refuse(matmul(2, 2, 2), "x", code="x", kind=kind, notes=("n.",))
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, ScheduleError)
    assert (again.kind, str(again)) == (error.kind, str(error))
