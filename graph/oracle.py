"""The reference of a model beside which its engine is run when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .ir import Graph
from .ops.functions import Ceil, Floor, Round
from .passes.pipeline import CHECKED_BYTES, double_bytes
from .reference import evaluate
from .types import Array


@dataclass(frozen=True, slots=True, eq=False)
class ModelOracle:
    """The outputs of a graph by name, as NumPy computes them node by node."""

    graph: Graph

    def __call__(self, inputs: Mapping[str, Array], *, exact: bool) -> dict[str, Array]:
        """exact: with every float in float64; else each value in its own type."""
        with np.errstate(all="ignore"):
            return evaluate(self.graph, inputs, dtype="float64" if exact else None)

    @property
    def decides(self) -> bool:
        """Whether an operator makes a great difference of a small one: it rounds to whole numbers,
        or makes of floats that are computed what is none (a comparison, the place of the largest).
        """
        types, constants = self.graph.types, self.graph.constants
        return any(
            isinstance(node.op, Ceil | Floor | Round)
            or (
                any(types[v].is_float and v not in constants for v in node.inputs)
                and not all(types[v].is_float for v in node.outputs)
            )
            for node in self.graph.nodes
        )


def model_oracle(graph: Graph) -> ModelOracle | str:
    """The reference of a model as it was imported, or why its engine is not run beside it."""
    if double_bytes(graph) > CHECKED_BYTES:
        return "not run: the reference would take too much memory"
    return ModelOracle(graph)
