"""Boxes in an order, of which those are kept that overlap none kept before: one step of a function
of tensors, with a meaning of its own.

`kept, number = suppress(left, top, right, bottom, area, count, share)` goes through the first
`count` boxes of each row, the first one first. A box is kept where its overlap with no box that is
kept is larger than the share, and the row has room. kept: the places of these in their order, then
-1; number: how many they are.

    width = max(0, min(right, right') - max(left, left'));  common = width * height
    overlap = common / (area + area' - common),   if both are above 0;  none, if not

An area is data like any other: with NaN for it a box overlaps none. min and max are choices by one
comparison. What a result is does not depend on how many boxes are compared at once.

A schedule does not look into one, as into no Extern; lowering makes loops of it, which are proved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .buffer import Buffer

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]

SIDES = ("left", "top", "right", "bottom", "area")
SUPPRESS = "tw_suppress"


@dataclass(frozen=True, slots=True)
class SuppressionFunction:
    """Which boxes are kept: nothing of it is open."""

    @property
    def symbol(self) -> str:
        """What the text of a function calls it."""
        return SUPPRESS

    @property
    def words(self) -> str:
        """What a block does that is one."""
        return "suppresses boxes that overlap"

    @property
    def part(self) -> str:
        """What it takes one after the other."""
        return "box"

    @property
    def digest(self) -> str:
        """What tells it from others, as that of a C function does."""
        return hashlib.sha256(self.symbol.encode("utf-8")).hexdigest()[:16]

    def compute(
        self, inputs: Sequence[Array], outputs: Sequence[tuple[Buffer, np.dtype[np.generic]]]
    ) -> list[Array]:
        """The places and numbers, in the types beside the outputs."""
        (kept, kind), (_, count_kind) = outputs
        places, numbers = suppressed(inputs, kept.shape[1])
        return [places.astype(kind), numbers.astype(count_kind)]


def suppressed(inputs: Sequence[Array], most: int) -> tuple[Array, Array]:
    """Which boxes of each row are kept, `most` at most, and how many."""
    *sides, counts, share = inputs
    rows, size = sides[0].shape
    kept = np.full((rows, most), -1, np.int64)
    numbers = np.zeros(rows, np.int64)
    for row in range(rows):
        own = np.stack([side[row] for side in sides])
        for k in range(min(size, int(counts[row]))):
            held = int(numbers[row])
            if held == most:
                break
            if not np.any(_overlap(own[:, k : k + 1], own[:, kept[row, :held]], share)):
                kept[row, held] = k
                numbers[row] += 1
    return kept, numbers


def _overlap(one: Array, others: Array, share: Array) -> Array:
    """Whether one box overlaps each of others by more than a share."""
    with np.errstate(all="ignore"):
        low = np.where(np.greater(one[:2], others[:2]), one[:2], others[:2])
        high = np.where(np.less(one[2:4], others[2:4]), one[2:4], others[2:4])
        width, height = np.where(np.greater(high, low), np.subtract(high, low), 0)
        common = np.multiply(width, height)
        union = np.subtract(np.add(one[4], others[4]), common)
        real = np.logical_and(np.greater(common, 0), np.greater(union, 0))
        more = np.greater(np.divide(common, union), share)
        found: Array = np.logical_and(real, more)
    return found


def suppression_problem(inputs: Sequence[Buffer], outputs: Sequence[Buffer]) -> str | None:
    """What is wrong with the tensors of a suppression; None for nothing."""
    if len(inputs) != len(SIDES) + 2 or len(outputs) != 2:
        return (
            f"{len(inputs)} inputs and {len(outputs)} outputs; expected {', '.join(SIDES)}, count "
            "and share, and what is kept and its number"
        )
    *sides, count, share = inputs
    kept, number = outputs
    kind, shape = share.type, sides[0].shape
    if share.shape or any((s.type, s.shape) != (kind, shape) for s in sides) or len(shape) != 2:
        first = sides[0]
        return f"'{first.name}' is {_shown(first)}, and the share {_shown(share)}; expected boxes"
    if str(kind) != "float32" or str(count.type) != "int32" or count.shape != shape[:1]:
        return f"'{count.name}' is {_shown(count)}; expected an int32 for each row of float32 boxes"
    fits = len(kept.shape) == 2 and kept.shape[:1] == number.shape == shape[:1]
    if not fits or not str(kept.type) == str(number.type) == "int32" or 0 in (*shape, *kept.shape):
        return f"'{kept.name}' is {_shown(kept)}; expected int32 places of boxes in {shape[0]} rows"
    return None


def _shown(buffer: Buffer) -> str:
    return f"{buffer.type}{list(buffer.shape)}"
