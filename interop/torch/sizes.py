"""The sizes of calls: for which of them an engine is made, and what results have at them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...graph.assumed_sizes import BATCH, LENGTH
from .program import Axis, Range

_ORDERS = "<", "<=", ">", ">="
Bounds = tuple[int, int, int]  # the least, the usual and the largest


def told_sizes(told: Mapping[str, Axis], values: Sequence[Any]) -> dict[str, int]:
    """What the arguments of a call tell, by symbol."""
    return {symbol: values[number].shape[axis] for symbol, (number, axis) in told.items()}


def narrowed(
    ranges: Mapping[str, Range], facts: Sequence[Any], numbers: Mapping[str, int]
) -> dict[str, Range]:
    """The ranges of symbols where some are known numbers and these relations hold: of those that
    then compare a symbol with a number.
    """
    found = dict(ranges)
    for fact in facts:
        fact = fact.subs(
            {one: numbers[str(one)] for one in fact.free_symbols if str(one) in numbers}
        )
        symbols = [str(one) for one in fact.free_symbols]
        if len(symbols) != 1 or symbols[0] not in found or _order(fact) not in _ORDERS:
            continue
        low, high = found[symbols[0]]
        strict = _order(fact) in ("<", ">")
        if fact.gts.is_Symbol and fact.lts.is_Integer:
            least = int(fact.lts) + strict
            found[symbols[0]] = max(least, low or 0), high
        elif fact.lts.is_Symbol and fact.gts.is_Integer:
            most = int(fact.gts) - strict
            found[symbols[0]] = low, most if high is None else min(most, high)
    return found


def _order(fact: Any) -> str:
    """How a relation compares; "" of what is none."""
    return str(fact.rel_op) if fact.is_Relational else ""


def bounds_for(
    ranges: Mapping[str, Range],
    told: Mapping[str, Axis],
    sizes: Mapping[str, int],
    known: Mapping[str, Bounds],
) -> dict[str, Bounds]:
    """Bounds that these sizes fit: as they were where they do, else up to twice what is asked for,
    within what torch says of a symbol.
    """
    return {
        symbol: _bounds(size, told[symbol], ranges.get(symbol), known.get(symbol))
        for symbol, size in sizes.items()
    }


def _bounds(size: int, axis: Axis, range_: Range | None, known: Bounds | None) -> Bounds:
    if known is not None and known[0] <= size <= known[2]:
        return known
    low, high = range_ or (None, None)
    assumed = BATCH if axis[1] == 0 else LENGTH
    most = max(assumed[2], 1 << (2 * size - 1).bit_length(), known[2] if known else 0)
    least = min(size, low if low is not None else 1)
    return least, size, most if high is None else high


def value_at(number: Any, sizes: Mapping[str, int]) -> int | float | bool:
    """A number that is a result, at these sizes."""
    if isinstance(number, int | float | bool):
        return number
    return evaluated(number.node.expr, sizes)


def evaluated(expression: Any, sizes: Mapping[str, int]) -> int | float | bool:
    """What an expression of symbols is, at these sizes."""
    at = {symbol: sizes[str(symbol)] for symbol in expression.free_symbols}
    found = expression.subs(at)
    return int(found) if found.is_Integer else float(found) if found.is_number else bool(found)


def shape_at(
    shape: Sequence[Any], sizes: Mapping[str, int], order: Sequence[int] | None = None
) -> tuple[int, ...]:
    """The sizes of axes, or their strides, in the order of the axes in memory."""
    found = [int(value_at(size, sizes)) for size in shape]
    return tuple(found if order is None else (found[axis] for axis in order))
