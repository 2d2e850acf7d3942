"""README is true: its code runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.cli.main import VERBS, parser

DEMO = (
    "<!-- demo -->\n```sh\npython3 -m venv .venv && .venv/bin/python -m pip install -e . && "
    ".venv/bin/tilewright demo\n```\n"
)
TEST = (
    '<!-- test -->\n```sh\npython3 -m venv .venv && .venv/bin/python -m pip install -e ".[test]" '
    "&& .venv/bin/pytest\n```\n"
)


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def python_blocks(text: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readme: str) -> SimpleNamespace:
    """run.block(n): the names that the nth block leaves behind; it runs in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def block(number: int) -> dict[str, object]:
        names: dict[str, object] = {"__name__": "readme"}
        exec(compile(python_blocks(readme)[number], "README.md", "exec"), names)
        return names

    return SimpleNamespace(block=block)


def test_the_two_marked_commands_stand_word_for_word(readme: str) -> None:
    assert DEMO in readme
    assert TEST in readme


@pytest.mark.needs_cc
def test_the_tour_of_an_expression_runs(
    run: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run.block(0)
    expected = names["a"] @ names["b"]
    np.testing.assert_allclose(names["out"], expected, rtol=1e-3, atol=1e-3)
    assert names["kernel"].proof.status == "proved"
    assert names["draft"].steps == ()
    said = capsys.readouterr().out
    assert "for j_0 in parallel(22, tail=" in said
    assert "proved (P1 to P5" in said
    assert "GFLOP/s" in said


@pytest.mark.needs_cxx
def test_the_tour_of_a_gpu_runs_without_one(
    run: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run.block(1)
    powers = np.exp(names["x"])
    np.testing.assert_allclose(names["y"], powers / powers.sum(1, keepdims=True), rtol=1e-5)
    said = capsys.readouterr().out
    assert "__syncthreads();" in said
    assert "proved (P1 to P5" in said


@pytest.mark.needs_cc
def test_the_tour_of_a_model_runs(
    run: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run.block(2)
    np.testing.assert_array_equal(names["out"]["softmaxout_1"], names["y"])
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert {"squeezenet.twe", "trace.json", "out/model.c", "out/model.h"} <= files
    assert "weights" in capsys.readouterr().out


def test_every_verb_stands_in_the_table_and_no_other(readme: str) -> None:
    verbs = [verb.__name__.rpartition(".")[2].replace("_", "-") for verb in VERBS]
    assert re.findall(r"^\| `tilewright ([\w-]+)", readme, re.MULTILINE) == verbs
    for line in re.findall(r"^\| `tilewright ([^`]+)`", readme, re.MULTILINE):
        assert parser().parse_args(line.split()).verb == line.split()[0]


def test_every_folder_of_the_package_stands_in_the_map(readme: str, root: Path) -> None:
    config = configparser.ConfigParser()
    config.read(root / "setup.cfg", encoding="utf-8")
    packages = config["options"]["packages"].split()
    folders = {name.split(".")[1] for name in packages if "." in name}
    assert folders <= set(re.findall(r"\[(\w+)/\]", readme))


def test_every_link_leads_to_a_file(readme: str, root: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", readme)
    assert links
    assert not [link for link in links if not (root / link).exists()]
