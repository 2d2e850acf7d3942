"""What .ci plants in the compiler is up to date: faults, their programs and tests; mutants."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def ci(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder, from which its scripts can be imported."""
    monkeypatch.syspath_prepend(str(root / ".ci"))
    return root / ".ci"


def script(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_the_text_of_each_fault_stands_once_in_its_file(ci: Path, root: Path) -> None:
    faults = script("faults").read_faults()
    assert len(faults) == 50
    counts = {i: (root / f.file).read_text("utf-8").count(f.old) for i, f in faults.items()}
    assert {i: count for i, count in counts.items() if count != 1} == {}
    assert all(fault.old != fault.new for fault in faults.values())


def test_each_fault_of_the_compiler_is_tried_on_programs_and_each_has_tests(
    ci: Path, root: Path
) -> None:
    faults, known = script("faults").read_faults().values(), script("fault_try").TASKS
    for fault in faults:
        assert (fault.area == "net") == (not fault.programs), fault.id
        assert set(fault.programs) <= set(known), fault.id
        assert fault.tests, fault.id
        assert all((root / test).exists() for test in fault.tests), fault.id
    assert set(known) == {name for fault in faults for name in fault.programs}


def test_a_fault_that_is_outdated_names_itself(ci: Path) -> None:
    fault = script("faults").read_faults()["S1"]
    with pytest.raises(SystemExit, match=r"the text of S1 stands 0 times in schedule/primitives"):
        fault.planted("another text")


def test_what_becomes_of_a_try_is_told_apart(ci: Path) -> None:
    faults, finished = script("faults"), script("sandbox").Finished
    built, right = '{"stage": "built", "report": [%s]}\n', '{"stage": "checked", "right": true}\n'
    refused = '{"stage": "refused", "code": "c", "text": "t"}\n'
    wrong = '{"stage": "checked", "right": false, "error": 0.5, "threads": 3}\n'
    undone = built % '"pass X: undone"' + right
    told = [
        (finished(0, built % "" + right, ""), "right"),
        (finished(0, built % '"pass X: equal"' + right, ""), "right"),
        (finished(0, undone, ""), "undone"),
        (finished(0, refused, ""), "refused"),
        (finished(1, "", "Traceback\nValueError: no"), "crashed"),
        (finished(-11, "", ""), "crashed"),
        (finished(-11, built % "", ""), "WRONG"),
        (finished(None, built % "", ""), "WRONG"),
        (finished(0, built % "" + wrong, ""), "WRONG"),
    ]
    assert [faults.judged(done, 0.0, ()).verdict for done, _ in told] == [v for _, v in told]
    assert faults.judged(finished(0, undone, ""), 0.0, ["pass X: undone"]).verdict == "right"


def test_tests_mirror_each_file_that_is_mutated(ci: Path) -> None:
    areas = script("mutation_areas")
    assert areas.unmirrored() == []
    assert all(areas.files(area) for area in areas.AREAS)


def test_mutants_of_c_change_code_and_nothing_else(ci: Path) -> None:
    mutants = script("c_mutants")
    text = (
        '#define N 3\n/* a < 3 */ int f(int a) { return a < 3 && a != 0 ? g("4 < 5") : a + 1; }\n'
    )
    found = {mutants.mutated(text, place).splitlines()[1] for place in mutants.places(text)}
    line = text.splitlines()[1]
    pairs = ((" < 3 &&", " <= 3 &&"), ("&&", "||"), ("!=", "=="), (" + 1", " - 1"))
    numbers = (("< 3 &&", "< 4 &&"), ("!= 0", "!= 1"), ("+ 1", "+ 2"))
    assert found == {line.replace(old, new) for old, new in (*pairs, *numbers)}
