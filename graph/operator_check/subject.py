"""An operator and what it reads, and how its methods are called: whatever they do is a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from ...tir.errors import TilewrightError
from ...tir.func import PrimFunc
from ...tir.sizes import SizeError
from ..errors import ModelError
from ..ir.ir import Graph, GraphNode, make_graph
from ..kernels.express import express
from ..kernels.fused_kernel import fused_kernel_of
from ..kernels.groups import FusionGroup
from ..ops.base import Operator
from ..types import Array, TensorType, type_of
from .report import OperatorFinding

T = TypeVar("T")
REFUSALS = (ModelError, SizeError)  # what `infer` raises for inputs that do not fit


class MethodFailure(Exception):
    """A method of an operator raised what it must not; what was to be tried needs it."""

    def __init__(self, finding: OperatorFinding) -> None:
        super().__init__(finding.problem)
        self.finding = finding


@dataclass(frozen=True, slots=True, eq=False)
class OperatorCase:
    """An operator with the arrays that it reads."""

    op: Operator
    arrays: tuple[Array, ...]

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the arrays."""
        return tuple(map(type_of, self.arrays))

    def __str__(self) -> str:
        return ", ".join(map(str, self.types)) or "no inputs"

    def finding(self, kind: str, problem: str, hint: str) -> OperatorFinding:
        """A finding on these inputs."""
        return OperatorFinding(kind, problem, hint, str(self))

    def with_arrays(self, arrays: Sequence[Array]) -> OperatorCase:
        """The same operator on other arrays."""
        return replace(self, arrays=tuple(arrays))

    @property
    def has_floats_alone(self) -> bool:
        """Whether any numbers may be drawn for it: integers may be places, counts or sizes."""
        return bool(self.arrays) and all(type_.is_float for type_ in self.types)

    def call(self, method: str, made: Callable[[], T]) -> T:
        """What a method gives. Raises: MethodFailure where it raises."""
        try:
            with np.errstate(all="ignore"):
                return made()
        except Exception as error:
            text = error.message if isinstance(error, TilewrightError) else str(error)
            problem = f"'{method}' raises {type(error).__name__}: {text}"
            raise MethodFailure(
                self.finding("raises", problem, f"'{method}' serves all inputs that infer accepts.")
            ) from error

    def inferred(self) -> tuple[TensorType, ...]:
        """The types of the results. Raises: MethodFailure."""
        return self.call("infer", lambda: self.op.infer(self.types))

    def computed(self) -> tuple[Array, ...]:
        """The results of the reference, on copies. Raises: MethodFailure."""
        copies = [array.copy() for array in self.arrays]
        return self.call("reference", lambda: self.op.compute(*copies))

    def graph(self) -> Graph:
        """A graph of the operator alone. Raises: MethodFailure."""
        self.inferred()
        types = {f"x{n}": type_ for n, type_ in enumerate(self.types)}
        outputs = tuple(f"y{n}" for n in range(self.op.output_count))
        node = GraphNode(self.op, tuple(types), outputs)
        return self.call("infer", lambda: make_graph("alone", types, outputs, [node], {}))

    def function(self) -> PrimFunc:
        """The function of its kernel. Raises: MethodFailure."""
        graph = self.graph()
        fused, _ = fused_kernel_of(graph, FusionGroup(graph.nodes))
        return self.call("express", lambda: express(fused))


def guarded(findings: Iterator[OperatorFinding]) -> Iterator[OperatorFinding]:
    """The findings of a check, which ends where a method does what it must not."""
    try:
        yield from findings
    except MethodFailure as found:
        yield found.finding
