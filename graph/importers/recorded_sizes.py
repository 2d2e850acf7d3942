"""Sizes that a program leaves open, where its exporter recorded for which values it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from ...tir.sizes import AnySize, Size
from ..assumed_sizes import BATCH, LENGTH
from ..types import Shape, SymbolicSize
from .symbols import Declared, Shapes, TensorShapes

# the least and the largest value of a symbol; None where it has no end
RecordedRanges = Mapping[str, tuple[int | None, int | None]]


def with_recorded(
    declared: Sequence[Declared], shapes: Shapes | None, ranges: RecordedRanges
) -> TensorShapes:
    """What the caller says, and for symbols of which nothing is said, what is recorded."""
    given = dict(cast("TensorShapes", shapes or {}))
    said = {str(d) for item in declared if item.name in given for d in item.dims or ()}
    for item in declared:
        for axis, dim in enumerate(item.dims or ()):
            name = str(dim)
            if isinstance(dim, int) or name in given or name in said:
                continue
            least, usual, most = LENGTH if axis or len(item.dims or ()) == 1 else BATCH
            low, high = ranges.get(name, (None, None))
            if high is not None or (low is not None and low > least):
                least, most = max(least, low or 0), most if high is None else high
                given[name] = (least, max(least, min(usual, most)), max(least, most))
    return given


def note_symbols(item: Declared, shape: Shape, symbols: dict[str, AnySize]) -> None:
    """Let the symbols of an input be the sizes that it has."""
    for dim, size in zip(item.dims or (), shape, strict=True):
        if isinstance(dim, SymbolicSize) and dim.name.isidentifier():  # not one without a name
            symbols.setdefault(dim.name, size)


def outside_recorded(symbols: Mapping[str, AnySize], ranges: RecordedRanges) -> Iterator[str]:
    """Of each size that a program does not hold for: "'b' is 1 to 64; the program was exported for
    2 to any".
    """
    for name, size in symbols.items():
        low, high = ranges.get(name, (None, None))
        least, most = (size.low, size.high) if isinstance(size, Size) else (size, size)
        if (low is not None and least < low) or (high is not None and most > high):
            ends = f"{low or 0} to {'any' if high is None else high}"
            yield f"'{name}' is {least} to {most}; the program was exported for {ends}"
