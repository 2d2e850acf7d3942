"""A loop: one graph runs again and again on what it gave before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...tir.sizes import AnySize, closed, closed_shape, largest
from ..errors import ModelError
from ..ir.ir import Evaluate, Graph, RegionOperator
from ..ops.base import ReferenceWork, check_arity, refuse
from ..reference.effort import effort
from ..types import Array, TensorType
from .branch import check_condition, check_region_inputs

ITERATION = TensorType("int64", ())


@dataclass(frozen=True, slots=True)
class LoopParts:
    """What a loop, or its body, takes or gives, by what it is for."""

    count: str | None
    condition: str | None
    carried: tuple[str, ...]
    rows: tuple[str, ...]
    captured: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loop(RegionOperator):
    """Run `body` for the numbers 0, 1, ... of iterations.

    Inputs, in order: how often at most, one int64, where `counted`; whether to begin, one bool,
    where `conditional`; the first `carried` values; an array for each of `rows`; what else the body
    reads, the same in each iteration. The body takes the number of the iteration, the carried
    values, a row of each array (of its first axis, from the last one on where `rows` says so), and
    the rest. It gives, where `conditional`, whether to go on; the carried values for the next
    iteration; a row of each of the `collected` arrays.
    Outputs: the carried values in the end, then the collected arrays.

    count: how often at most where that is known, or sizes of a run say it; with rows or collected
    arrays it is, and nothing else ends the loop.
    """

    body: Graph
    carried: int
    count: AnySize | None = None
    counted: bool = False
    conditional: bool = False
    rows: tuple[bool, ...] = ()
    collected: tuple[bool, ...] = ()

    @property
    def regions(self) -> tuple[Graph, ...]:
        """The body."""
        return (self.body,)

    @property
    def region_names(self) -> tuple[str, ...]:
        """As models call it."""
        return ("body",)

    @property
    def first_captured(self) -> int:
        """What is the same in each iteration stands last."""
        return self.counted + self.conditional + self.carried + len(self.rows)

    @property
    def is_open(self) -> bool:
        """Whether there is no number of iterations that it does not go beyond."""
        return self.count is None

    def with_regions(self, regions: tuple[Graph, ...]) -> Loop:
        """With another body."""
        return replace(self, body=regions[0])

    def given(self, names: Sequence[str]) -> LoopParts:
        """Its inputs, by what they are for."""
        rest = list(names)
        count = rest.pop(0) if self.counted else None
        condition = rest.pop(0) if self.conditional else None
        arrays = self.carried + len(self.rows)
        carried, rows = rest[: self.carried], rest[self.carried : arrays]
        return LoopParts(count, condition, tuple(carried), tuple(rows), tuple(rest[arrays:]))

    @property
    def taken(self) -> LoopParts:
        """The inputs of the body: the count is the number of the iteration."""
        first, *rest = self.body.inputs
        arrays = self.carried + len(self.rows)
        carried, rows = rest[: self.carried], rest[self.carried : arrays]
        return LoopParts(first, None, tuple(carried), tuple(rows), tuple(rest[arrays:]))

    @property
    def made(self) -> LoopParts:
        """The outputs of the body; rows are those of the collected arrays."""
        rest = list(self.body.outputs)
        condition = rest.pop(0) if self.conditional else None
        return LoopParts(None, condition, tuple(rest[: self.carried]), tuple(rest[self.carried :]))

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises: ModelError where the body does not fit itself or its inputs."""
        numbers = self.given([str(n) for n in range(len(types))])
        check_arity(self, types, self.first_captured, None)
        if numbers.count is not None and types[int(numbers.count)] != ITERATION:
            refuse(
                self,
                f"expected a count of one int64 without axes, got {types[int(numbers.count)]}",
                code="loop-count",
            )
        if numbers.condition is not None:
            check_condition(self, types[int(numbers.condition)])
        if (self.rows or self.collected) and (self.count is None or self.conditional):
            refuse(
                self,
                "rows are read or collected, and data decide how often it runs; expected a number",
                code="loop-open",
            )
        carried = [types[int(n)] for n in numbers.carried]
        arrays = [types[int(n)] for n in numbers.rows]
        rest = [types[int(n)] for n in numbers.captured]
        rows = tuple(map(self._row, arrays))
        check_region_inputs(self, "body", self.body, (ITERATION, *carried, *rows, *rest))
        return (*carried, *self._check_made(carried))

    def _row(self, array: TensorType) -> TensorType:
        if not array.rank or array.shape[0] != self.count:
            refuse(
                self,
                f"it runs {self.count} times over the rows of {array}; expected as many rows",
                code="loop-rows",
            )
        return TensorType(array.dtype, array.shape[1:])

    def _check_made(self, carried: list[TensorType]) -> tuple[TensorType, ...]:
        """The types of the collected arrays."""
        made, body = self.made, self.body
        if made.condition is not None:
            check_condition(self, body.types[made.condition])
        if (len(made.carried), len(made.rows)) != (self.carried, len(self.collected)):
            refuse(
                self,
                f"the body gives {len(body.outputs)} values; expected {self.carried} carried and "
                f"{len(self.collected)} collected ones",
                code="loop-outputs",
            )
        for now, first, value in zip(self.taken.carried, carried, made.carried, strict=True):
            if body.types[value] != first:
                raise ModelError(
                    f"Loop: carried value '{now}' is {first} before an iteration and "
                    f"{body.types[value]} behind it; expected one type, since memory is planned "
                    "before a run.",
                    code="loop-carried",
                    hints=(
                        "carry an array of the largest shape, and how much of it is in use; or "
                        "give the rows that come in each iteration as a scan output.",
                    ),
                )
        assert self.count is not None or not made.rows
        count = 0 if self.count is None else self.count
        return tuple(
            TensorType(body.types[value].dtype, (count, *body.types[value].shape))
            for value in made.rows
        )

    def run(self, arrays: Sequence[Array], evaluate: Evaluate) -> tuple[Array, ...]:
        """One iteration after the other."""
        rest = list(arrays)
        most = None if self.count is None else closed(self.count)
        if self.counted:
            most = int(rest.pop(0).item())
        goes_on = bool(rest.pop(0).item()) if self.conditional else True
        carried, rest = rest[: self.carried], rest[self.carried :]
        scanned, captured = rest[: len(self.rows)], rest[len(self.rows) :]
        collected: list[list[Array]] = [[] for _ in self.collected]
        number = 0
        while goes_on and (most is None or number < most):
            rows = [
                np.asarray(array[len(array) - 1 - number if reverse else number])
                for array, reverse in zip(scanned, self.rows, strict=True)
            ]
            made = list(evaluate(self.body, [np.array(number), *carried, *rows, *captured]))
            goes_on = bool(made.pop(0).item()) if self.conditional else True
            carried = made[: self.carried]
            for row, kept in zip(made[self.carried :], collected, strict=True):
                kept.append(row)
            number += 1
        return (*carried, *map(self._stacked, self.made.rows, self.collected, collected))

    def _stacked(self, value: str, reverse: bool, rows: list[Array]) -> Array:
        type_ = self.body.types[value]
        if not rows:
            return np.zeros((0, *closed_shape(type_.shape)), type_.dtype)
        return np.stack(rows[::-1] if reverse else rows)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        """That of all iterations; of one where data decide how many there are."""
        once = effort(self.body.nodes, self.body.types)
        made = sum(largest(type_.elements) for type_ in self.infer(types))
        often = 1 if self.count is None else max(1, largest(self.count))
        return ReferenceWork(once.held + 2 * made, once.steps * often)
