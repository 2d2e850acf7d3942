"""Sets of indices, as few numbers as can be: an arithmetic progression is a `range`, whatever its
length, and only what is no progression is listed.

- `index_set`: the values of an index while its variables run. Sums of multiples of variables, their
  quotients and remainders are followed by rule; other indices are computed point by point.
- `union_size`: how many elements lie in at least one of several boxes, each a set per dimension.
  Along a dimension, the indices that lie in the same sets count as one class with a weight, so it
  takes as many steps as there are classes, not as there are elements.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..analysis.linear import linear
from ..expr import Const, Expr, FloorDiv, FloorMod, Var
from ..reference.array_expr import evaluate_expr
from ..visit import free_vars, loads

# points at which an index is computed; beyond, it is taken to reach everything
MOST_LISTED = 1 << 20
_MOST_CELLS = 1 << 20  # of the grid of classes; beyond, boxes are taken to share nothing
_MOST_RESTS = 1 << 12  # of a division by all steps along a dimension
Listed = NDArray[np.int64]
IndexSet = range | Listed
Box = tuple[IndexSet, ...]
Member = tuple[bool, ...]


def index_set(index: Expr, extents: Mapping[Var, int], size: int) -> IndexSet:
    """The values from 0 to size-1 that `index` has while each variable runs below its extent,
    ascending.

    An index that is data is taken to reach as many elements as it has values, or all.
    """
    moving = [var for var in extents if var in free_vars(index)]
    points = math.prod(extents[var] for var in moving)
    if points == 0:
        return range(0)
    if loads(index):  # at most one element for each value that it depends on
        return range(min(size, points))
    found = _progression(index, extents)
    if found is not None:
        return _within(found, size)
    if points > MOST_LISTED:
        return range(size)
    rank = len(moving)
    axes = {
        var: np.arange(extents[var]).reshape([-1 if d == axis else 1 for d in range(rank)])
        for axis, var in enumerate(moving)
    }
    listed: Listed = np.unique(evaluate_expr(index, axes)).astype(np.int64)
    return _as_range(listed[(listed >= 0) & (listed < size)])


def _progression(index: Expr, extents: Mapping[Var, int]) -> range | None:
    """The values of an index, ascending, where they are known to be an arithmetic progression."""
    form = linear(index)
    atoms = [atom for atom, _ in form.terms]
    if sum(len(free_vars(atom)) for atom in atoms) != len(
        frozenset().union(*map(free_vars, atoms))
    ):
        return None  # two terms move together
    parts = []
    for atom, coefficient in form.terms:
        values = _atom(atom, extents)
        if values is None:
            return None
        parts.append(_scaled(values, coefficient))
    total = range(form.constant, form.constant + 1)
    for part in sorted(parts, key=_step):
        added = _sum(total, part)
        if added is None:
            return None
        total = added
    return total


def _atom(atom: Expr, extents: Mapping[Var, int]) -> range | None:
    """The values of one term of a linear form."""
    match atom:
        case Var():
            return range(extents[atom]) if atom in extents else None
        case FloorDiv(a, Const() as c) if c.value > 0:
            values, divisor = _progression(a, extents), int(c.value)
            if values is None or (values.step > divisor and values.step % divisor):
                return None
            step = max(1, values.step // divisor)
            return range(values[0] // divisor, values[-1] // divisor + 1, step)
        case FloorMod(a, Const() as c) if c.value > 0:
            values, divisor = _progression(a, extents), int(c.value)
            if values is None:
                return None
            if values[0] // divisor == values[-1] // divisor:
                return range(values[0] % divisor, values[-1] % divisor + 1, values.step)
            step = math.gcd(values.step, divisor)  # of all rests that there can be
            return (
                range(values[0] % step, divisor, step) if len(values) >= divisor // step else None
            )
    return None


def _step(values: range) -> int:
    """From one value to the next; 1 where there is but one."""
    return values.step if len(values) > 1 else 1


def _scaled(values: range, factor: int) -> range:
    """Each value times a factor that is not 0, ascending."""
    ends = values[0] * factor, values[-1] * factor
    return range(min(ends), max(ends) + 1, values.step * abs(factor))


def _sum(a: range, b: range) -> range | None:
    """All sums of a value of each, where they are a progression: one value more, or steps of `b`
    that leave no gap between copies of `a`.
    """
    first, last = a[0] + b[0], a[-1] + b[-1]
    if len(a) == 1 or len(b) == 1:
        return range(first, last + 1, b.step if len(a) == 1 else a.step)
    if b.step % a.step or b.step > len(a) * a.step:
        return None
    return range(first, last + 1, a.step)


def _within(values: range, size: int) -> range:
    """Those of the values that are 0 or more and below `size`."""
    below = max(0, -(values.start // values.step))  # how many stand before 0
    return values[below : max(below, -((values.start - size) // values.step))]


def _as_range(listed: Listed) -> IndexSet:
    """The progression that a list, ascending, holds; the list where it is none."""
    if len(listed) < 2:
        return range(int(listed[0]), int(listed[0]) + 1) if len(listed) else range(0)
    step = int(listed[1] - listed[0])
    if np.all(np.diff(listed) == step):
        return range(int(listed[0]), int(listed[-1]) + 1, step)
    return listed


def box_size(box: Box) -> int:
    """Elements of a box."""
    return math.prod(map(len, box))


def union_size(boxes: Iterable[Box], shape: Sequence[int]) -> int:
    """Elements of a tensor of `shape` that lie in at least one of the boxes."""
    distinct = list({tuple(map(_key, box)): box for box in boxes if box_size(box)}.values())
    if len(distinct) <= 1:
        return sum(map(box_size, distinct))
    whole = math.prod(shape)
    if any(box_size(box) == whole for box in distinct):
        return whole
    grid = [_classes([box[d] for box in distinct], size) for d, size in enumerate(shape)]
    classes = [found for found in grid if found is not None]
    if len(classes) < len(grid) or math.prod(map(len, classes)) > _MOST_CELLS:
        return min(whole, sum(map(box_size, distinct)))
    marked = np.zeros([len(found) for found in classes], dtype=np.bool_)
    for number in range(len(distinct)):
        marked[np.ix_(*([member[number] for member in found] for found in classes))] = True
    counted = marked.astype(np.int64)
    for found in reversed(classes):
        counted = counted @ np.array(list(found.values()), dtype=np.int64)
    return int(counted)


def _key(values: IndexSet) -> object:
    """Equal for equal sets."""
    return values if isinstance(values, range) else values.tobytes()


def _classes(sets: Sequence[IndexSet], size: int) -> Counter[Member] | None:
    """The indices below `size`, by the sets that they lie in: how many lie in exactly these; those
    that lie in none are left out. None where that takes too many steps.
    """
    if math.lcm(*(_step(s) for s in sets if isinstance(s, range))) > _MOST_RESTS:
        if sum(len(s) for s in sets if _has_gaps(s)) > MOST_LISTED:
            return None
        sets = [np.array(s, np.int64) if _has_gaps(s) else s for s in sets]
    found: Counter[Member] = Counter()
    for member, count in _pieces([s if isinstance(s, range) else range(0) for s in sets], size):
        found[member] += count
    listed = [s for s in sets if not isinstance(s, range)]
    if listed:
        points = np.unique(np.concatenate(listed))
        held = np.stack([_holds(s, points) for s in sets], axis=1)
        progressions = held & np.array([isinstance(s, range) for s in sets])
        for rows, sign in ((progressions, -1), (held, 1)):
            for row, count in zip(*np.unique(rows, axis=0, return_counts=True), strict=True):
                found[tuple(map(bool, row))] += sign * int(count)
    return Counter({member: count for member, count in found.items() if count and any(member)})


def _has_gaps(values: IndexSet) -> bool:
    return not isinstance(values, range) or _step(values) > 1


def _holds(values: IndexSet, points: Listed) -> NDArray[np.bool_]:
    """Which of the points a set holds."""
    if not isinstance(values, range):
        return np.isin(points, values)
    inside = (points >= values.start) & (points < values.stop)
    held: NDArray[np.bool_] = inside & ((points - values.start) % values.step == 0)
    return held


def _pieces(sets: Sequence[range], size: int) -> Iterator[tuple[Member, int]]:
    """The indices 0 .. size-1 in pieces whose members lie in the same progressions: between two
    ends of progressions, those that leave the same rest when divided by all steps.
    """
    ends = sorted({0, size, *(end for s in sets if s for end in (s[0], s[-1] + 1))})
    for low, high in itertools.pairwise(ends):
        alive = [bool(s) and s[0] <= low <= s[-1] for s in sets]
        period = math.lcm(*(_step(s) for s, lives in zip(sets, alive, strict=True) if lives))
        for start in range(low, min(low + period, high)):
            yield (
                tuple(lives and start in s for s, lives in zip(sets, alive, strict=True)),
                len(range(start, high, period)),
            )
