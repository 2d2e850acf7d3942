"""Sizes that a model leaves open, and what callers say of them, by input or symbol: a number, or
the least, the usual and the largest that a run may decide. What nobody says is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...tir.dim import Dim
from ...tir.errors import known_names
from ...tir.sizes import AnySize, Size, size_of
from ..assumed_sizes import assumed_size
from ..errors import ModelError
from ..types import Shape, SymbolicSize

Range = tuple[int, int, int]  # the least, the usual and the largest size
TensorShapes = Mapping[str, Sequence[int | Range] | int]
Shapes = Mapping[str, Sequence[int | Range | Sequence[int | Range]] | int]  # of sequences, too
LARGEST_SIZE = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Declared:
    """An input as the model declares it; `dims` is None when even their number is open."""

    name: str
    dtype: str
    dims: tuple[int | SymbolicSize, ...] | None

    def __str__(self) -> str:
        dims = "?" if self.dims is None else ", ".join(map(str, self.dims))
        return f"'{self.name}' {self.dtype}[{dims}]"


def unnamed(name: str, axis: int) -> SymbolicSize:
    """The symbol of a dimension that has neither size nor name; no model can use its name."""
    return SymbolicSize(f"{name}[{axis}]")


def resolve(declared: Sequence[Declared], shapes: TensorShapes | None) -> dict[str, Shape]:
    """The shape of every input, with every symbol replaced by its size, said or assumed.

    shapes: {"input": (1, 3, 224, 224)}, {"symbol": 8} and {"symbol": (1, 8, 64)} in any mixture; an
    axis of an input may have a range, too.
    Raises: ModelError when a shape stays open (all are listed), is contradicted or unknown.
    """
    given = dict(shapes or {})
    _check_names(declared, given)
    inputs = {item.name for item in declared}
    sizes: dict[SymbolicSize, AnySize] = {}
    for name, size in given.items():
        if name not in inputs:
            sizes[SymbolicSize(name)] = _size(name, name, size)
    whole: dict[str, Shape] = {}
    for item in declared:
        shape = given.get(item.name)
        if isinstance(shape, Sequence):
            names = [unnamed(item.name, axis).name for axis in range(len(shape))]
            if item.dims is not None and len(item.dims) == len(shape):
                names = [str(dim) for dim in item.dims]
            pairs = zip(names, shape, strict=True)
            known = {str(symbol): size for symbol, size in sizes.items()}
            found = tuple(
                known[own]
                if _is_range(size) and _same_range(known.get(own), size)
                else _size(item.name, own, size)
                for own, size in pairs
            )
            _bind(item, found, sizes)
            whole[item.name] = found
    _check_ranks(declared, given)
    _assume(declared, sizes)
    return {
        item.name: whole[item.name]
        if item.dims is None
        else tuple(sizes[dim] if isinstance(dim, SymbolicSize) else dim for dim in item.dims)
        for item in declared
    }


def _symbols(item: Declared) -> list[SymbolicSize]:
    return [dim for dim in item.dims or () if isinstance(dim, SymbolicSize)]


def _check_names(declared: Sequence[Declared], given: TensorShapes) -> None:
    inputs = [item.name for item in declared]
    symbols = [symbol.name for item in declared for symbol in _symbols(item)]
    for name, size in given.items():
        known = symbols if isinstance(size, int) else inputs
        if name in known or (name in symbols and _is_range(size)):
            continue
        kind = "symbol" if isinstance(size, int) else "input"
        if name in symbols:
            _size(name, name, size)  # says what is wrong with it
        wanted = (
            f"expected one of {known_names(name, known)}" if known else "it leaves no size open"
        )
        raise ModelError(
            f"shapes: the model has no {kind} '{name}'; {wanted}.",
            code="shapes-name",
        )


def _is_range(size: object) -> bool:
    return isinstance(size, tuple | list) and len(size) == 3 and all(type(n) is int for n in size)


def _same_range(known: AnySize | None, size: object) -> bool:
    """Whether a size that is known already has that range."""
    if not isinstance(known, Size) or known.dim is None or not _is_range(size):
        return False
    return [known.low, known.dim.usual, known.high] == list(cast("Range", size))


def _size(name: str, symbol: str, size: object) -> AnySize:
    """A size of what `shapes` says under a name; symbol: what the model calls it."""
    if type(size) is int and size >= 0:
        return size
    if _is_range(size):
        low, usual, high = cast("Range", size)
        if 0 <= low <= usual <= high < LARGEST_SIZE:
            return high if low == high else size_of(Dim(symbol, low=low, high=high, typical=usual))
        raise ModelError(
            f"shapes: '{name}' has the range {size!r}; expected the least, the usual and the "
            f"largest size in order, of 0 to {LARGEST_SIZE}.",
            code="shapes-range",
        )
    raise ModelError(
        f"shapes: '{name}' has size {size!r}; expected an integer of 0 or more, or three of them: "
        "the least, the usual and the largest.",
        code="shapes-size",
    )


def _bind(item: Declared, shape: Shape, sizes: dict[SymbolicSize, AnySize]) -> None:
    if item.dims is None:
        return
    if len(shape) != len(item.dims):
        raise ModelError(
            f"shapes: input {item} has {len(item.dims)} dimensions, got {list(shape)}.",
            code="shapes-rank",
        )
    for axis, (dim, size) in enumerate(zip(item.dims, shape, strict=True)):
        expected = sizes.setdefault(dim, size) if isinstance(dim, SymbolicSize) else dim
        if expected != size:
            raise ModelError(
                f"shapes: axis {axis} of input {item} is {expected}, got {size}.",
                code="shapes-conflict",
            )


def _assume(declared: Sequence[Declared], sizes: dict[SymbolicSize, AnySize]) -> None:
    """Give bounds to the symbols of which nothing is said: see graph/assumed_sizes.py."""
    lengths = {
        symbol
        for item in declared
        for axis, symbol in enumerate(item.dims or ())
        if isinstance(symbol, SymbolicSize) and (axis > 0 or len(item.dims or ()) == 1)
    }
    for symbol in (symbol for item in declared for symbol in _symbols(item)):
        if symbol not in sizes:
            sizes[symbol] = assumed_size(symbol.name, is_batch=symbol not in lengths)


def _check_ranks(declared: Sequence[Declared], given: TensorShapes) -> None:
    """Refuse inputs of which nobody knows how many axes they have."""
    unknown = [item for item in declared if item.dims is None and item.name not in given]
    if not unknown:
        return
    listed = ", ".join(f"'{item.name}'" for item in unknown)
    by_input = ", ".join(f'"{item.name}": (...)' for item in unknown)
    raise ModelError(
        f"shapes: the model leaves open how many axes {listed} has; expected a shape.",
        code="shapes-open",
        where="in the inputs:\n" + "\n".join(f"  {item}" for item in unknown),
        hints=(f"give the inputs their shapes: shapes={{{by_input}}}.",),
    )
