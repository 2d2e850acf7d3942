"""What a call does with the checks of its indices, once it has run."""

from __future__ import annotations

from collections.abc import Iterable

from ..tir.errors import TilewrightError
from ..tir.index_check import IndexCheck


class IndexRangeError(TilewrightError, IndexError):
    """An index that is data lay outside of its range. The call has run with it clamped."""


def check_indices(call: str, checks: Iterable[tuple[IndexCheck, int]], node: str = "") -> None:
    """Raise IndexRangeError for the first check whose word says that it failed.

    call: the name of what was called; checks: each with the word that the call wrote; node: the
    part of a model that made them.
    """
    of = f" of {node}" if node else ""
    for check, word in checks:
        value = check.failure(word)
        if value is not None:
            raise IndexRangeError(
                f"{call}: '{check.what}'{of} is {value}; expected 0 to {check.most}.",
                code="index-range",
                notes=("the outputs were computed with the nearest index that exists.",),
            )
