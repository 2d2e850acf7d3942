"""A Loop over sequences, whose structure changes from iteration to iteration: its iterations, one
behind the other. How many there are must be known when the model is read; their nodes count as
those of the model do, against the limit of all.
"""

from __future__ import annotations

import numpy as np

from ....ops.movement import Concat
from ....types import array_of
from ..node import NodeReader, NotSupported
from ..structures import Value
from .rule import Result, Values
from .sequences import stacked
from .variadic import joined


def unrolled(node: NodeReader) -> Result:
    """What a loop gives in the end: carried values, and rows of each iteration as one array."""
    carried = tuple(node.structured(n) for n in range(2, len(node.inputs)))
    count = node.whole(0) if node.has(0) else None
    goes_on = not node.has(1) or bool(node.constant(1, 1).item())
    if count is None and not node.has(1):
        raise NotSupported("nothing ends it; expected a trip count or a condition")
    rows = list[tuple[Value, ...]]()
    number = 0
    while goes_on and (count is None or number < count):
        iteration = node.table("iteration", np.asarray(number, np.int64))
        begins = node.table("condition", np.asarray(True))
        condition, *made = node.inline("body", (iteration, begins, *carried))
        carried, row = tuple(made[: len(carried)]), tuple(made[len(carried) :])
        rows.append(row)
        number += 1
        goes_on = not node.has(1) or _known(node, condition)
    columns = len(node.proto.output) - len(carried)
    if columns > 0 and not rows:
        raise NotSupported("its scan outputs have no rows; expected a loop that runs")
    return Values((*carried, *(_collected(node, rows, n) for n in range(columns))))


def _known(node: NodeReader, condition: Value) -> bool:
    """A condition of the body that is a constant."""
    found = node.builder.constants.get(condition) if isinstance(condition, str) else None
    if found is None:
        raise NotSupported(
            "it reads or carries sequences, and data end it; expected a trip count that is a "
            "constant, and no condition"
        )
    return bool(array_of(found).item())


def _collected(node: NodeReader, rows: list[tuple[Value, ...]], column: int) -> Value:
    values = [row[column] if column < len(row) else "" for row in rows]
    names = tuple(value for value in values if isinstance(value, str) and value)
    if len(names) < len(values):
        raise NotSupported("its body gives no tensor for a scan output")
    op, inputs = joined(node, Concat(0), stacked(node, names, 0))
    return node.emit(op, *inputs)
