"""The reference of a model beside which its engine is run when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...tir.dtype import dtype
from ..ir.ir import Graph, RegionOperator
from ..types import Array
from .effort import TooLarge, check_limits, check_within, effort
from .reference import StepBudget, evaluate

# of loops that data end: some seconds where all is work, one where the bodies are small
_OPEN_STEPS, _OPEN_RUNS = 1 << 31, 1 << 13


@dataclass(frozen=True, slots=True, eq=False)
class ModelOracle:
    """The outputs of a graph by name, as NumPy computes them node by node."""

    graph: Graph

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """With every float in float64."""
        return self._evaluated(inputs, "float64")

    def in_own_types(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """With each value in its own type."""
        return self._evaluated(inputs, None)

    def _evaluated(self, inputs: Mapping[str, Array], dtype: str | None) -> dict[str, Array]:
        with np.errstate(all="ignore"):
            return evaluate(self.graph, inputs, dtype=dtype)

    def why_not_run(self, inputs: Mapping[str, Array]) -> str | None:
        """Why no engine is run on these inputs: a loop does not end on them, or so late that nobody
        waits for it. None: it may be.
        """
        if not _is_open(self.graph):
            return None
        try:
            for dtype in ("float64", None):
                with np.errstate(all="ignore"):
                    evaluate(
                        self.graph, inputs, dtype=dtype, budget=StepBudget(_OPEN_STEPS, _OPEN_RUNS)
                    )
        except TooLarge as reason:
            return f"the model {reason}"
        return None

    @property
    def stores_halves(self) -> bool:
        """Whether it has values of floats of 16 bits, constants aside."""
        types, constants = self.graph.types, self.graph.constants
        return any(dtype(types[v].dtype).is_half for v in types if v not in constants)

    @property
    def decides(self) -> bool:
        """Whether an operator makes a great difference of a small one: it says so, or makes of
        floats that are computed what is none (a comparison, the place of the largest).
        """
        return _decides(self.graph)


def _decides(graph: Graph) -> bool:
    types, constants = graph.types, graph.constants
    return any(
        any(map(_decides, node.op.regions))
        if isinstance(node.op, RegionOperator)
        else node.op.decides
        or (
            any(types[v].is_float and v not in constants for v in node.inputs)
            and not all(types[v].is_float for v in node.outputs)
        )
        for node in graph.nodes
    )


def _is_open(graph: Graph) -> bool:
    """Whether data decide how often a loop runs."""
    operators = (node.op for node in graph.nodes if isinstance(node.op, RegionOperator))
    return any(op.is_open or any(map(_is_open, op.regions)) for op in operators)


def model_oracle(graph: Graph) -> ModelOracle | str:
    """The reference of a model as it was imported, or why its engine is not run beside it."""
    try:
        check_within(effort(graph.nodes, graph.types), check_limits())
    except TooLarge as reason:
        return f"not run: the reference {reason}"
    return ModelOracle(graph)
