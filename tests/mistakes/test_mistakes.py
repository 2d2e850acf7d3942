"""Each mistake of the catalogue is answered by a message that says what to do next.

tests/golden/mistakes holds what is written, and what comes back, whole: it is there to be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import onnx
import pytest

from tilewright.graph.samples.samples import tiny_model

from . import kernels, language, models, schedules, tuning
from .catalogue import Mistake, given, made, typed
from .commands import COMMANDS

MODULES: tuple[ModuleType, ...] = (language, schedules, kernels, tuning, models)
AREAS = (*(module.__name__.rpartition(".")[2] for module in MODULES), "commands")
FEWEST = 66
CODE = re.compile(r" \[[a-z0-9-]+\]$", re.MULTILINE)
COMPLETE = (
    "expected ",
    "; it has ",
    "' has '",
    "; the inputs are: ",
    "; the constants are: ",
    ", got ",
    " cannot be read: ",
)

Answers = Mapping[str, list[Mistake]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Every mistake, made once in an empty folder: area -> its mistakes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("mistakes"))
        patch.setenv("COLUMNS", "100")
        patch.setenv("NO_COLOR", "1")
        found = {area: made(module) for area, module in zip(AREAS, MODULES, strict=False)}
        onnx.save(tiny_model().model, "small.onnx")
        Path("notes.txt").write_text("tuned on Monday\n")
        found["commands"] = [typed(title, line) for title, line in COMMANDS.items()]
    return found


@pytest.mark.parametrize("area", AREAS)
def test_the_answers_are_word_for_word_those(
    area: str, answers: Answers, golden: Callable[[str, str], None]
) -> None:
    modules = dict(zip(AREAS, MODULES, strict=False))
    shared = f"{given(modules[area])}\n\n" if area in modules else ""
    golden(f"mistakes/{area}.txt", shared + "\n".join(map(str, answers[area])))


def test_there_are_66_and_each_has_a_title_of_its_own(answers: Answers) -> None:
    titles = [mistake.title for mistakes in answers.values() for mistake in mistakes]
    assert len(titles) >= FEWEST
    assert len(set(titles)) == len(titles)


def test_each_answer_is_an_error_of_ours_or_a_usage_error(answers: Answers) -> None:
    others = [
        mistake.title
        for mistakes in answers.values()
        for mistake in mistakes
        if not CODE.search(mistake.message) and not mistake.message.endswith("exit code 2")
    ]
    assert not others
    assert not [one for one in answers["commands"] if one.message.endswith("exit code 0")]


def test_each_answer_says_what_to_do_or_what_was_expected(answers: Answers) -> None:
    silent = [
        mistake.title
        for area in AREAS[:-1]
        for mistake in answers[area]
        if "\n  Hint: " not in mistake.message
        and not any(part in mistake.message for part in COMPLETE)
    ]
    assert not silent


def test_no_answer_names_this_machine(answers: Answers, root: Path) -> None:
    text = "\n".join(str(mistake) for mistakes in answers.values() for mistake in mistakes)
    assert str(Path.home()) not in text
    assert str(root) not in text
    assert "/tmp" not in text
