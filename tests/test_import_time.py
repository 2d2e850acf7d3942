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

# what belongs to the whole process, before and after; other libraries, which leave traces, first
TRACELESS = """
import locale, logging, os, random, signal, sys, threading, warnings
import cffi, islpy, ml_dtypes, networkx, onnx, platformdirs, rich
import numpy as np

def state():
    return {
        "threads": (threading.active_count(), len(os.listdir("/proc/self/task"))),
        "children": open(f"/proc/self/task/{os.getpid()}/children").read(),
        "files": len(os.listdir("/proc/self/fd")),
        "handlers": [str(signal.getsignal(number)) for number in signal.valid_signals()],
        "environment": hash(frozenset(os.environ.items())),
        "random": hash((random.getstate(), str(np.random.get_state()))),
        "float errors": np.geterr(),
        "warnings": str(warnings.filters),
        "logging": (str(logging.root.handlers), logging.root.level),
        "process": (os.getcwd(), locale.setlocale(locale.LC_ALL), sys.getrecursionlimit()),
        "hooks": [str(hook) for hook in (sys.excepthook, sys.displayhook, sys.path, sys.meta_path)],
    }

print(state())
import tilewright as tw
for name in tw.__all__:
    getattr(tw, name)
print(state())
"""


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
    assert not {f"tilewright.tir.{name}" for name in ("evaluate", "parser", "stmt")} & set(loaded)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what a process has started")
def test_every_name_is_imported_without_a_trace_in_the_process() -> None:
    before, after = said(TRACELESS).splitlines()
    assert after == before


@pytest.mark.bench
@pytest.mark.parametrize(("code", "seconds"), [("import tilewright", 0.100), (EXPRESSION, 0.200)])
def test_an_import_takes_its_time_at_most(code: str, seconds: float) -> None:
    taken = [float(said(TIMED.format(code))) for _ in range(5)]
    assert statistics.median(taken) < seconds
