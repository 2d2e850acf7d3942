"""Delta debugging: the smallest subset of some things for which a test still holds.

A. Zeller, R. Hildebrandt: Simplifying and Isolating Failure-Inducing Input, IEEE Transactions on
Software Engineering 28 (2002): the algorithm `ddmin`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")


def smallest(items: Sequence[Item], holds: Callable[[tuple[Item, ...]], bool]) -> tuple[Item, ...]:
    """A subset, in order, for which `holds`, and for none that lacks one of its items.

    The test holds for all items; it is not asked for none of them, nor twice for a subset.
    """
    kept, parts, known = tuple(items), 2, set[tuple[Item, ...]]()

    def asked(subset: tuple[Item, ...]) -> bool:
        if not subset or subset in known:
            return False
        known.add(subset)
        return holds(subset)

    while len(kept) > 1:
        cuts = [len(kept) * part // parts for part in range(parts + 1)]
        pieces = [kept[start:end] for start, end in pairwise(cuts)]
        piece = next((one for one in reversed(pieces) if asked(one)), None)
        if piece is not None:
            kept, parts = piece, 2
            continue
        rests = (kept[:start] + kept[end:] for start, end in pairwise(cuts))
        rest = next((one for one in rests if asked(one)), None)
        if rest is not None:
            kept, parts = rest, max(parts - 1, 2)
        elif parts < len(kept):
            parts = min(2 * parts, len(kept))
        else:
            break
    return kept
