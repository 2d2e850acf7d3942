"""The pages of tutorials/reference say what the sources say; --update-golden writes them anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import tilewright as tw
from tests.reference.api_pages import language_page, package_page, schedule_page
from tests.reference.error_calls import ErrorCall, Sources
from tests.reference.error_page import error_page
from tests.reference.primitive_page import primitive_page
from tests.test_error_codes import codes_in
from tilewright.schedule.primitives.table import PRIMITIVES

FOLDER = "tutorials/reference"
PAGES: dict[str, Callable[[], str]] = {
    "tilewright.md": lambda: package_page(tw),
    "te.md": lambda: language_page(tw.te),
    "schedule.md": lambda: schedule_page(tw.Schedule),
    "jax.md": primitive_page,
}


@pytest.fixture(scope="module")
def read(sources: tuple[Path, ...], root: Path) -> Sources:
    """The sources, with the errors that they make."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sources
    }
    return Sources(texts)


@pytest.fixture
def page(request: pytest.FixtureRequest, root: Path) -> Callable[[str, str], None]:
    """Compare a text with a page of the reference; with --update-golden, write it there instead."""

    def compare(name: str, text: str) -> None:
        path = root / FOLDER / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
            return
        assert text == path.read_text(encoding="utf-8"), (
            f"{FOLDER}/{name} is out of date: pytest tests/reference --update-golden writes it anew"
        )

    return compare


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_names_says_what_the_package_says(
    name: str, page: Callable[[str, str], None]
) -> None:
    page(name, PAGES[name]())


def test_the_page_of_errors_says_what_the_sources_say(
    read: Sources, page: Callable[[str, str], None]
) -> None:
    page("errors.md", error_page(read))


@pytest.mark.skipif("config.getoption('--update-golden')", reason="the page is being written")
def test_every_code_has_its_entry(read: Sources, root: Path) -> None:
    text = (root / FOLDER / "errors.md").read_text(encoding="utf-8")
    heads = re.findall(r"^### (\S+)$", text, re.MULTILINE)
    assert len(heads) == len(set(heads))
    assert set(heads) >= {code for module in read.coded for code in codes_in(root / module.path)}


@pytest.mark.skipif("config.getoption('--update-golden')", reason="the page is being written")
def test_every_public_name_and_step_has_its_entry(root: Path) -> None:
    def heads(name: str) -> set[str]:
        text = (root / FOLDER / name).read_text(encoding="utf-8")
        return set(re.findall(r"^#{3,4} `(?:tw\.|te\.)?(\S+)`$", text, re.MULTILINE))

    assert heads("tilewright.md") >= {*tw.__all__} - {"__version__", "te"}
    assert heads("te.md") >= {*tw.te.__all__}
    assert heads("schedule.md") >= {f"Schedule.{one.name}" for one in PRIMITIVES}


# -- templates and the errors that tests have seen -------------------------------------------------

SHOWN = re.compile(r"^ *([A-Z]\w+): (.*) \[([a-z0-9-]+)\]$((?:\n(?! *[A-Z]\w+: .*\]$).+)*)", re.M)
HINT = re.compile(r"^ *Hint: (.*)$", re.MULTILINE)


def pattern(template: str) -> str:
    """What matches every text of a template."""
    return ".*".join(map(re.escape, re.split(r"\{[^{}]*\}", template)))


def matches(text: str, templates: Iterable[str]) -> bool:
    """Whether a text is one of the templates, with values in it."""
    return any(re.fullmatch(pattern(one), text) for one in templates)


def test_templates_say_what_the_golden_errors_say(read: Sources, root: Path) -> None:
    calls: dict[tuple[str, str], list[ErrorCall]] = {}
    for call in read.calls:
        calls.setdefault((call.code, call.error), []).append(call)
    texts = [path.read_text(encoding="utf-8") for path in (root / "tests/golden").rglob("*.txt")]
    seen = {found for text in texts for found in SHOWN.findall(text)}
    wrong = []
    for error, message, code, below in sorted(seen):
        of = calls.get((code, error), [])
        if not matches(message, [one for call in of for one in call.messages]):
            wrong.append(f"{error}: {message} [{code}]")
        hints = [one for call in of for one in call.hints]
        wrong += [f"[{code}] {hint}" for hint in HINT.findall(below) if not matches(hint, hints)]
    assert len(seen) > 300
    assert not wrong, "\n".join(wrong)
