"""Variants of an engine for sizes that come often: which ones a caller asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..runtime.engine.engine import Engine
from ..tir.dim import Dim
from .options import OptionError

NamedSizes = Mapping[str, int]
Chosen = tuple[tuple[str, int], ...]  # a size for each dim, by name


def chosen_sizes(engine: Engine, wanted: object) -> tuple[Chosen, ...]:
    """The sizes that variants of an engine are wanted for, each once.

    Raises: OptionError where a choice is none of the engine's.
    """
    if not isinstance(wanted, Sequence) or isinstance(wanted, str):
        raise _no_choice(wanted)
    dims = engine.interface.dims
    return tuple(dict.fromkeys(_checked(sizes, dims) for sizes in wanted))


def check_count(engine: Engine, most: int, max_bytes: int | None) -> None:
    """Refuse to make variants of what runs bring. Raises: OptionError."""
    if type(most) is not int or most < 1:
        raise _no_choice(most)
    if not engine.interface.dims:
        raise _closed(most)
    if max_bytes is not None:
        raise OptionError(
            f"compile: options specialise={most} and max_bytes={max_bytes} contradict each other: "
            "what variants take is not known before runs decide which they are.",
            code="specialise-memory",
            hints=("specialise=[{...}] says which, and max_bytes holds for them.",),
        )


def _no_choice(wanted: object) -> OptionError:
    return OptionError(
        f"compile: option specialise={wanted!r} has no meaning; expected the sizes of variants, "
        "or how many to make at most of the sizes that come most often.",
        code="specialise-count",
        hints=('specialise=[{"batch": 1}] or specialise=4.',),
    )


def _closed(wanted: object) -> OptionError:
    return OptionError(
        f"compile: option specialise has {wanted!r}, and no run decides sizes of the model.",
        code="specialise-closed",
        hints=("leave it out: the engine is for these sizes alone.",),
    )


def _checked(sizes: object, dims: Sequence[Dim]) -> Chosen:
    """A choice of the sizes, by name, in the order of the dims."""
    listed = ", ".join(f"'{dim.name}' of {dim.low} to {dim.high}" for dim in dims)
    usual = ", ".join(f'"{dim.name}": {dim.usual}' for dim in dims)
    if not dims:
        raise _closed(sizes)
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
