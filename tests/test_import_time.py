"""Importing is quick, and brings only what is used."""

from __future__ import annotations

import statistics
import subprocess
import sys

import pytest

HEAVY = {"onnx", "networkx", "islpy", "rich", "cffi"}
OURS = ("tilewright.schedule", "tilewright.codegen", "tilewright.runtime", "tilewright.driver")
EXPRESSION = "from tilewright import te; te.placeholder((4, 4), 'float32', name='A')"
TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
MODULES = "import sys; {}; print(*sys.modules)"


def said(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_an_expression_needs_the_language_alone() -> None:
    loaded = said(MODULES.format(EXPRESSION)).split()
    assert not HEAVY & set(loaded)
    assert not [name for name in loaded if name.startswith((*OURS, "tilewright.graph"))]


@pytest.mark.parametrize("name", ["Target", "PrimFunc", "TilewrightError"])
def test_a_name_of_the_language_needs_the_language_alone(name: str) -> None:
    loaded = said(MODULES.format(f"from tilewright import {name}")).split()
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize("name", ["Engine", "load", "compile"])
def test_an_engine_needs_no_library_of_models_graphs_or_proofs(name: str) -> None:
    loaded = said(MODULES.format(f"from tilewright import {name}")).split()
    assert not {"onnx", "networkx", "islpy", "ml_dtypes", "pycparser", "subprocess"} & set(loaded)
    assert not {f"tilewright.tir.{name}" for name in ("expr", "evaluate", "parser")} & set(loaded)


@pytest.mark.bench
@pytest.mark.parametrize(("code", "seconds"), [("import tilewright", 0.100), (EXPRESSION, 0.200)])
def test_an_import_takes_its_time_at_most(code: str, seconds: float) -> None:
    taken = [float(said(TIMED.format(code))) for _ in range(5)]
    assert statistics.median(taken) < seconds
