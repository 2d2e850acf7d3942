"""Variants of an engine for sizes that come often: which ones a caller asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..runtime.engine.engine import Engine
from ..tir.dim import Dim
from .options import OptionError

NamedSizes = Mapping[str, int]
Chosen = tuple[tuple[str, int], ...]  # a size for each dim, by name


def chosen_sizes(engine: Engine, wanted: Sequence[NamedSizes]) -> tuple[Chosen, ...]:
    """The sizes that variants of an engine are wanted for, each once.

    Raises: OptionError where a choice is none of the engine's.
    """
    dims = engine.interface.dims
    return tuple(dict.fromkeys(_checked(sizes, dims) for sizes in wanted))


def _checked(sizes: object, dims: Sequence[Dim]) -> Chosen:
    """A choice of the sizes, by name, in the order of the dims."""
    listed = ", ".join(f"'{dim.name}' of {dim.low} to {dim.high}" for dim in dims)
    usual = ", ".join(f'"{dim.name}": {dim.usual}' for dim in dims)
    if not dims:
        raise OptionError(
            f"compile: option specialise has {sizes!r}, and no run decides sizes of the model.",
            code="specialise-closed",
            hints=("leave it out: the engine is for these sizes alone.",),
        )
    if (
        not isinstance(sizes, Mapping)
        or sizes.keys() != {dim.name for dim in dims}
        or not all(_is_one_of(sizes[dim.name], dim) for dim in dims)
    ):
        raise OptionError(
            f"compile: option specialise has {sizes!r}; expected a number for each size that a run "
            f"decides, {listed}.",
            code="specialise-sizes",
            hints=(f"specialise=[{{{usual}}}]",),
        )
    return tuple((dim.name, sizes[dim.name]) for dim in dims)


def _is_one_of(size: object, dim: Dim) -> bool:
    return type(size) is int and dim.low <= size <= dim.high
