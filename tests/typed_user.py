"""What a user writes, with types: `tests/test_typed_user.py` has it checked, and runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, assert_type

import numpy as np
import numpy.typing as npt

import tilewright as tw
from tilewright import te
from tilewright.graph.ir.ir import Graph
from tilewright.tir.expr import Expr

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]
Array = npt.NDArray[np.generic]

N = 16
A = te.placeholder((N, N), "float32", name="A")
B = te.placeholder((N, N), "float32", name="B", constant=True)
K = te.reduce_axis(N, name="k")
C = te.compute((N, N), lambda i, j: te.sum(A[i, K] * B[K, j], axis=K), name="C")
best, at = te.compute((N,), lambda i: te.argmax(A[i, K], axis=K), name=("best", "at"))
matmul: tw.PrimFunc = te.func(A, B, C, name="matmul")
argmax: tw.PrimFunc = te.func(A, best, at, name="argmax")


def blocked(sch: tw.Schedule) -> None:
    """A schedule is a plain function."""
    i, *_ = sch.loops("C")
    outer, inner = sch.split(i, (None, 4))
    assert_type(outer, tw.LoopRef)
    sch.unroll(inner)


def product(a: Floats, b: Floats) -> Floats:
    """One output is an array."""
    sch = tw.Schedule(matmul).apply(blocked)
    kernel: tw.Kernel = tw.build(sch, "python", constants={"B": b})
    assert_type(kernel(a).sum(), Any)
    return kernel(a, out=np.empty_like(a))


def largest(a: Floats) -> tuple[Floats, Places]:
    """Two outputs are a tuple, which the annotation says."""
    kernel: tw.Kernel[tuple[Floats, Places]] = tw.build(argmax, "python")
    values, places = kernel(A=a)
    return values, places


def run(path: str, x: Floats) -> Floats:
    """A model, its report and its tensors."""
    engine: tw.Engine = tw.compile(path, "python")
    specs: tuple[tw.TensorSpec, ...] = engine.inputs
    coverage: tw.Coverage = engine.tuning
    plan: tw.MemoryPlan = engine.memory_plan
    report: tw.Report = engine.verify()
    print(specs, coverage, plan, report)
    return engine(x)


def explain(kernel: tw.Kernel, engine: tw.Engine, a: Floats) -> tw.Verdict:
    """Results have names to annotate with."""
    timing: tw.Timing = kernel.time(a)
    roofline: tw.Roofline = kernel.roofline(a)
    profile: tw.Profile = engine.profile()
    context: tw.Context = engine.context()
    space: tw.SpaceSummary = tw.tuning_space(matmul)
    print(timing, roofline, profile, context, space)
    return tw.prove(matmul)


@tw.operator("typed.user::Times", onnx=("typed.user", "Times", (1,)))
class Times(tw.Elementwise):
    """An operator: its annotated fields are those of a dataclass."""

    factor: float = 2.0

    arity = (1, 1)

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        (x,) = arrays
        return (np.multiply(x, self.factor, dtype=x.dtype),)

    def element(self, *elements: Expr) -> Expr:
        (x,) = elements
        return x * self.factor


@dataclass(frozen=True)
class Leaves:
    """A pass that has nothing to do."""

    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph: Graph) -> Graph:
        return graph


def extend(path: str) -> tw.OperatorReport:
    """An operator and a pass of one's own."""
    assert_type(Times(factor=3.0).factor, float)
    passes: tw.Passes = tw.PASSES.after("GeluRecognition", Leaves())
    tw.compile(path, "python", passes=passes)
    return tw.check_operator(Times(3.0), [(tw.TensorType("float32", (2, 3)),)])
