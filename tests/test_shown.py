"""Every public object shows itself: its repr is its text, and the text is no list of fields.

The public types are the names of `tw.__all__` and `te.__all__`, what these functions return, and
what the methods, properties and fields of these types give.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import tilewright as tw
from tilewright import te

ROOT = Path(tw.__file__).parent
PACKAGES = ("tir", "schedule", "codegen", "runtime", "driver", "graph", "autotune")

# values whose fields are what there is to see
RECORDS = {
    *("CpuModel", "GpuLimits", "GpuRates", "InlineCost", "JoinableAxes", "Permuted"),
    *("AtenRule", "OnnxRule", "OperatorFinding", "ReferenceWork", "TensorType"),
    "GraphNode",
    *("Elementwise", "Operator"),  # of which others are made: their fields are their attributes
}


@cache
def homes() -> dict[str, str]:
    """The module of each public class, by its name, where only one has it."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = ".".join(("tilewright", *path.relative_to(ROOT).with_suffix("").parts))
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(module)
    return {name: modules[0] for name, modules in found.items() if len(modules) == 1}


def named_in(annotation: object, module: ModuleType) -> Iterator[type]:
    """The classes of ours that an annotation names; aliases stand for what they are."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    for name in re.findall(r"\b[A-Z]\w+", text):
        here = getattr(module, name, None)
        if here is None and name in homes():  # imported for the checker alone
            here = getattr(importlib.import_module(homes()[name]), name)
        if inspect.isclass(here) and here.__module__.startswith("tilewright."):
            yield here


def given_by(kind: type) -> Iterator[type]:
    """The classes of what the methods, properties and fields of a class give."""
    module = inspect.getmodule(kind)
    assert module is not None
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else value
        if not name.startswith("_") and inspect.isfunction(function):
            yield from named_in(function.__annotations__.get("return", ""), module)
    if hasattr(kind, "__dataclass_fields__"):
        for name, annotation in vars(kind).get("__annotations__", {}).items():
            if not name.startswith("_"):
                yield from named_in(annotation, module)


def entries() -> Iterator[type]:
    """The classes of tilewright and te, and those of what their functions return."""
    for package in (tw, te):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value):
                yield value
            elif isinstance(value, Callable):  # type: ignore[arg-type]
                module = inspect.getmodule(value)
                assert module is not None
                yield from named_in(getattr(value, "__annotations__", {}).get("return", ""), module)


def public_types() -> list[type]:
    first = dict.fromkeys(entries())
    every = {**first, **dict.fromkeys(one for kind in first for one in given_by(kind))}
    shown = (kind for kind in every if kind.__module__.startswith("tilewright."))
    return sorted(shown, key=lambda kind: kind.__qualname__)


def is_of_a_dataclass(method: object) -> bool:
    """Whether a repr was written by `dataclass`, which wraps it against recursion."""
    return hasattr(method, "__wrapped__")


def test_the_public_types_are_found() -> None:
    names = {kind.__name__ for kind in public_types()}
    assert names >= {
        *("Advice", "Context", "Coverage", "Engine", "EngineReport", "Expr", "Kernel", "LoopRef"),
        *(
            "MemoryPlan",
            "Profile",
            "ReduceAxis",
            "Report",
            "Roofline",
            "SourceText",
            "SpaceSummary",
        ),
        *("Tasks", "Tensor", "TensorSpec", "Timing", "Trace", "Trial", "TuneResult", "TuningLog"),
        *("AssemblyText", "PrimFunc", "Schedule", "Step", "Target", "TunedFunction", "Verdict"),
    }


@pytest.mark.parametrize("kind", public_types(), ids=lambda kind: kind.__name__)
def test_a_public_type_shows_itself(kind: type) -> None:
    if issubclass(kind, BaseException | Enum) or kind.__name__ in RECORDS:
        return
    if getattr(kind, "_is_protocol", False):  # no value has this class
        return
    assert kind.__repr__ is not object.__repr__, "it shows its address"
    assert not is_of_a_dataclass(kind.__repr__), "it shows its fields; a text of its own is wanted"
    assert kind.__str__ in (object.__str__, str.__str__, kind.__repr__), "its repr is another text"


def test_expressions_are_shown_as_formulas() -> None:
    A = te.placeholder((8, 4), "float32", name="A")
    n = te.dim("n", 1, 8)
    k = te.reduce_axis(4, name="k")
    C = te.compute((8,), lambda i: te.sum(A[i, k] * 2.0, k), name="C")
    i = te.compute((8,), lambda i: A[i, 0], name="D").computation.axes[0]
    shown = [repr(one) for one in (i + 1, te.sqrt(A[i, 0]) * 2.0, k, n, C, C.computation)]
    assert shown == [
        "i + 1",
        "sqrt(A[i, 0]) * 2.0",
        "ReduceAxis k: 0 .. 3",
        "Dim n: 1 .. 8",
        "Tensor C: float32[8]",
        "C[i] = reduce_sum(A[i, k] * 2.0, k=4) for i < 8",
    ]
    assert str(i + 1) == repr(i + 1)


def test_every_node_has_a_text() -> None:
    A = te.placeholder((8,), "float32", name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    func = te.func(A, B, name="f")
    assert repr(func.body) == "\n".join(
        line.removeprefix("    ") for line in str(func).splitlines()[1:]
    )
    (block,) = func.blocks
    assert (repr(block.iters[0]), repr(func.inputs[0])) == ("vi=spatial(8)", "A: float32[8]")
    assert repr(tw.Schedule(func).trace) == ""
