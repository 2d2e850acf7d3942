"""Sizes that a model leaves open, and how callers close them: by input or symbol, no guess."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....tir.errors import known_names
from ...errors import ModelError
from ...types import SymbolicSize

Shapes = Mapping[str, Sequence[int] | int]


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


def resolve(declared: Sequence[Declared], shapes: Shapes | None) -> dict[str, tuple[int, ...]]:
    """The shape of every input, with every symbol replaced by its size.

    shapes: {"input": (1, 3, 224, 224)} and {"symbol": 8} in any mixture.
    Raises: ModelError when a size stays open (all are listed), is contradicted or unknown.
    """
    given = dict(shapes or {})
    _check_names(declared, given)
    sizes: dict[SymbolicSize, int] = {}
    for name, size in given.items():
        if isinstance(size, int):
            sizes[SymbolicSize(name)] = _size(name, size)
    for item in declared:
        shape = given.get(item.name)
        if shape is not None and not isinstance(shape, int):
            _bind(item, tuple(_size(item.name, size) for size in shape), sizes)
    _check_closed(declared, given, sizes)
    return {item.name: _shape(item, given, sizes) for item in declared}


def _symbols(item: Declared) -> list[SymbolicSize]:
    return [dim for dim in item.dims or () if isinstance(dim, SymbolicSize)]


def _shape(item: Declared, given: Shapes, sizes: Mapping[SymbolicSize, int]) -> tuple[int, ...]:
    shape = given.get(item.name)
    if item.dims is None:
        assert shape is not None
        assert not isinstance(shape, int)
        return tuple(shape)
    return tuple(sizes[dim] if isinstance(dim, SymbolicSize) else dim for dim in item.dims)


def _check_names(declared: Sequence[Declared], given: Shapes) -> None:
    inputs = [item.name for item in declared]
    symbols = [symbol.name for item in declared for symbol in _symbols(item)]
    for name, size in given.items():
        known = symbols if isinstance(size, int) else inputs
        if name in known:
            continue
        kind = "symbol" if isinstance(size, int) else "input"
        wanted = (
            f"expected one of {known_names(name, known)}" if known else "it leaves no size open"
        )
        raise ModelError(
            f"shapes: the model has no {kind} '{name}'; {wanted}.",
            code="shapes-name",
        )


def _size(name: str, size: int) -> int:
    if type(size) is int and size >= 0:
        return size
    raise ModelError(
        f"shapes: '{name}' has size {size!r}; expected an integer of 0 or more.", code="shapes-size"
    )


def _bind(item: Declared, shape: tuple[int, ...], sizes: dict[SymbolicSize, int]) -> None:
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


def _check_closed(
    declared: Sequence[Declared], given: Shapes, sizes: Mapping[SymbolicSize, int]
) -> None:
    open_inputs = [
        item
        for item in declared
        if any(symbol not in sizes for symbol in _symbols(item))
        or (item.dims is None and item.name not in given)
    ]
    if not open_inputs:
        return
    missing = dict.fromkeys(s for item in open_inputs for s in _symbols(item) if s not in sizes)
    by_input = ", ".join(f'"{item.name}": ({_example(item, sizes)})' for item in open_inputs)
    hints = [f"give the inputs their shapes, for example shapes={{{by_input}}}."]
    if all(item.dims is not None for item in open_inputs) and not any(
        "[" in s.name for s in missing
    ):
        by_symbol = ", ".join(f'"{symbol}": 1' for symbol in missing)
        hints.append(f"or give each symbol its size, for example shapes={{{by_symbol}}}.")
    listed = ", ".join(f"'{symbol}'" for symbol in missing) or "whole shapes"
    raise ModelError(
        f"shapes: the model leaves {listed} open; expected a size for each.",
        code="shapes-open",
        where="in the inputs:\n" + "\n".join(f"  {item}" for item in open_inputs),
        hints=hints,
    )


def _example(item: Declared, sizes: Mapping[SymbolicSize, int]) -> str:
    if item.dims is None:
        return "..."
    values = [sizes.get(dim, 1) if isinstance(dim, SymbolicSize) else dim for dim in item.dims]
    return ", ".join(map(str, values)) + ("," if len(values) == 1 else "")
