"""Sizes that a model leaves open and its caller does not say: which bounds are assumed for them,
and how explanations and refusals tell of it.

The rule goes by position. A symbol that is the first axis of every input in which it stands, each
of two axes or more, is a batch; every other one is a length. The largest sizes are those for which
the memory of an engine is planned: 16 rows of 512 words of BERT-base take an arena of 160 MiB
beside 415 MiB of weights, and most encoders have tables of 512 positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..tir.dim import Dim
from ..tir.errors import InternalError, TilewrightError
from ..tir.sizes import AnySize, size_of

BATCH = (1, 4, 16)  # the least, the usual and the largest size
LENGTH = (1, 128, 512)


def assumed_size(symbol: str, *, is_batch: bool) -> AnySize:
    """The size of a symbol of which nothing is said."""
    low, usual, high = BATCH if is_batch else LENGTH
    return size_of(Dim(symbol, low=low, high=high, typical=usual, assumed=True))


def assumed(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """Those of some dims whose bounds were assumed."""
    return tuple(dim for dim in dims if dim.assumed)


@contextmanager
def telling_assumed(dims: Iterable[Dim]) -> Iterator[None]:
    """Let a refusal say which of some sizes were assumed, and what to do about it."""
    dims = assumed(dims)
    try:
        yield
    except InternalError:
        raise
    except TilewrightError as error:
        if dims:
            numbers = ", ".join(f'"{dim.name}": {dim.usual}' for dim in dims)
            error.notes = (
                *error.notes,
                f"nobody said these sizes, so they were assumed: {bounds_text(dims)}.",
            )
            error.hints = (
                *error.hints,
                f"shapes={{{numbers}}} compiles for these numbers alone; a tuple of the least, the "
                "usual and the largest size in place of a number gives other bounds.",
            )
        raise


def bounds_text(dims: Iterable[Dim]) -> str:
    """The bounds of dims, and their usual sizes."""
    return ", ".join(f"'{d.name}' {d.low} to {d.high}, usually {d.usual}" for d in dims)
