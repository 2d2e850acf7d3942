"""The page of ONNX's operators is true, and what is read of each element type is right."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from tests.reference.operator_page import operator_lines, operator_page
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.rules.table import RULES

from .onnx_support import Version, allowed, fitting, typed, versions

PAGE = "tutorials/reference/onnx.md"
DOMAINS = ("", "ai.onnx.ml")
PARTS = 32
OPERATORS: list[tuple[str, list[Version]]] = [
    (name, of) for domain in DOMAINS for name, of in versions(domain).items()
]


PLACED = {"MaxUnpool"}  # takes places that only a pool finds; its cases of ONNX run as engines
CONTRIBUTED = [name.rpartition(".")[2] for name in RULES if name.startswith("com.microsoft.")]


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    text = (root / PAGE).read_text(encoding="utf-8")
    if f"ONNX {onnx.__version__}" not in text:
        pytest.skip(f"{PAGE} is of another version than {onnx.__version__}")
    return text


@pytest.mark.skipif("not config.getoption('--update-golden')", reason="writes the page")
def test_the_page_is_written(root: Path) -> None:
    found = {domain: versions(domain) for domain in DOMAINS}
    text = operator_page(onnx.__version__, found, CONTRIBUTED)
    (root / PAGE).write_text(text, encoding="utf-8")


def test_the_page_names_what_onnxruntime_contributes(page: str) -> None:
    _, _, text = page.partition("## com.microsoft")
    assert re.findall(r"`(\w+)`", text.partition(":")[2]) == sorted(CONTRIBUTED)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_page_says_what_is_read(part: int, page: str) -> None:
    for name, of in OPERATORS[part::PARTS]:
        said = [line for line in page.splitlines() if line.startswith(f"| {name} |")]
        assert operator_lines(name, of) == said


@pytest.mark.slow
@pytest.mark.needs_cc
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_read_is_right_as_an_engine(part: int) -> None:
    """In each element type, in the newest version."""
    for name, of in OPERATORS[part::PARTS]:
        if name in PLACED:
            continue
        for variable, types in allowed(of[-1].schema).items():
            for type_ in types:
                for graph, _ in typed(fitting(of[-1]), of[-1], variable, type_)[-1:]:
                    assert graph is None or compile(graph, cache=False).verify(), (name, type_)
