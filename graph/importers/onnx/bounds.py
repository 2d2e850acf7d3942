"""What callers say of sizes that data decide and no input bounds: by the symbol that the model has
for one, or by the value whose first axis has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from onnx import GraphProto, ValueInfoProto

from ...errors import ModelError
from ..symbols import LARGEST_SIZE, Range, Shapes

_UNBOUNDED = ("Range", "Loop")  # operators that may make so many rows as data say


def data_bounds(graph: GraphProto, shapes: Shapes | None) -> tuple[dict[str, Range], Shapes | None]:
    """The bounds of values, by the values' names, and what else is said of sizes.

    Raises: ModelError for what is no range from 0 on.
    """
    made = {name for node in graph.node if node.op_type in _UNBOUNDED for name in node.output}
    inputs = {item.name for item in graph.input} | set(_symbols(graph.input))
    symbols = {
        item.name: symbol
        for item in (*graph.value_info, *graph.output)
        if item.name in made
        for symbol in (_first_symbol(item),)
    }
    bounds: dict[str, Range] = {}
    rest: dict[str, object] = {}
    for key, size in (shapes or {}).items():
        values = [v for v in made if v == key or symbols.get(v) == key]
        if key in inputs or not values:
            rest[key] = size
        else:
            bounds |= dict.fromkeys(values, _range(key, size))
    return (bounds, cast("Shapes", rest)) if bounds else (bounds, shapes)


def _symbols(items: Iterable[ValueInfoProto]) -> list[str]:
    """The names of the open sizes of some values, in order."""
    return [
        dim.dim_param for item in items for dim in item.type.tensor_type.shape.dim if dim.dim_param
    ]


def _first_symbol(item: ValueInfoProto) -> str:
    """The name of the size of a value's first axis; "" where it has none."""
    dims = item.type.tensor_type.shape.dim
    return dims[0].dim_param if dims else ""


def _range(name: str, size: object) -> Range:
    whole = isinstance(size, tuple | list) and all(type(n) is int for n in size)
    if whole and len(cast("Range", size)) == 3:
        low, usual, high = cast("Range", size)
        if 0 == low <= usual <= high < LARGEST_SIZE:
            return low, usual, high
    raise ModelError(
        f"shapes: '{name}', which data decide, is {size!r}; expected the least size, which is 0, "
        f"the usual and the largest one, at most {LARGEST_SIZE - 1}.",
        code="shapes-data",
    )
