"""A branch: one of two graphs runs, as one truth value says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..errors import ModelError
from ..ir.ir import Evaluate, Graph, RegionOperator
from ..ops.base import ReferenceWork, check_arity, listed, refuse
from ..reference.effort import effort
from ..types import Array, TensorType


@dataclass(frozen=True, slots=True)
class IfElse(RegionOperator):
    """The outputs of `then` where the first input is true, else those of `otherwise`. Both graphs
    take the other inputs.
    """

    then: Graph
    otherwise: Graph

    @property
    def title(self) -> str:
        """As models call it."""
        return "If"

    @property
    def regions(self) -> tuple[Graph, ...]:
        """Both graphs."""
        return self.then, self.otherwise

    @property
    def region_names(self) -> tuple[str, ...]:
        """As models call them."""
        return "then", "else"

    @property
    def first_captured(self) -> int:
        """All but the condition."""
        return 1

    def with_regions(self, regions: tuple[Graph, ...]) -> IfElse:
        """With other graphs."""
        then, otherwise = regions
        return replace(self, then=then, otherwise=otherwise)

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """What both graphs give. Raises: ModelError where they give other types."""
        count = 1 + len(self.then.inputs)
        check_arity(self, types, count, count)
        check_condition(self, types[0])
        for name, region in zip(self.region_names, self.regions, strict=True):
            check_region_inputs(self, name, region, types[1:])
        made = [tuple(region.types[v] for v in region.outputs) for region in self.regions]
        if len(made[0]) != len(made[1]):
            refuse(
                self,
                f"then gives {len(made[0])} results, else {len(made[1])}; expected as many",
                code="if-outputs",
            )
        for number, (one, other) in enumerate(zip(*made, strict=True)):
            if one != other:
                raise ModelError(
                    f"If: result {number} is {one} where the condition is true and {other} where "
                    "it is false; expected one type, since memory is planned before a run.",
                    code="if-types",
                    hints=(
                        "let both branches give the larger shape, padded, or make the condition a "
                        "constant: then one branch alone is compiled.",
                    ),
                )
        return made[0]

    def run(self, arrays: Sequence[Array], evaluate: Evaluate) -> tuple[Array, ...]:
        """One graph runs."""
        condition, *given = arrays
        return tuple(evaluate(self.then if condition.item() else self.otherwise, given))

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        """The larger one of the two."""
        both = [effort(region.nodes, region.types) for region in self.regions]
        return ReferenceWork(max(one.held for one in both), max(one.steps for one in both))


def check_condition(operator: RegionOperator, type_: TensorType) -> None:
    """Refuse what is no single truth value."""
    if type_.dtype != "bool" or type_.elements != 1:
        refuse(operator, f"expected a condition of one bool, got {type_}", code="region-condition")


def check_region_inputs(
    operator: RegionOperator, name: str, region: Graph, types: tuple[TensorType, ...]
) -> None:
    """Refuse a region that takes other values than it is given."""
    expected = tuple(region.types[value] for value in region.inputs)
    if expected != types:
        refuse(
            operator,
            f"{name} takes {listed(expected)}, got {listed(types)}",
            code="region-inputs",
        )
