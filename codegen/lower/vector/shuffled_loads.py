"""Replace gathers of elements that lie near each other by loads of neighbours and shuffles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ....tir.analysis.bounds import bounds
from ....tir.analysis.linear import Interval, Ranges, linear
from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.dim import Dim
from ....tir.expr import LT, Expr, FloorDiv, FloorMod, Select, Var, add, const, index, mul
from ....tir.func import PrimFunc
from ....tir.lowered import Broadcast, Ramp, Reinterpret, Shuffle
from ....tir.node import Node
from ....tir.stmt import For, Stmt
from ....tir.target.target import Target
from ....tir.visit import walk
from ...isa.isa import Isa, isa
from ...lanes import access, lane_value, lanes_on


@dataclass(frozen=True, slots=True)
class ShuffledLoads:
    """Read elements whose distances are known by loads of neighbours, as few as hold them all, and
    put the vector together of their lanes.

    C[ramp(i, 1, 4)] = A[ramp(2*i, 2, 4)]
    ->  C[ramp(i, 1, 4)] = shuffle(A[ramp(2*i, 1, 4)], A[ramp(2*i + 3, 1, 4)], 0, 2, 5, 7)

    A gather takes about a cycle for each lane. A load reads nothing outside of the buffer: it lies
    between elements that are read, or where the ranges of the loops allow it; else it has a mask.
    What more loads would hold than two, and one for each four lanes, stays a gather, as does what
    data decide.
    Requires: no loop is VECTORIZED or UNROLLED. Ensures: the same.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        tables = isa(self.target)
        if not any(name == "shuffle" for name, _ in tables.operations):
            return func
        body = _Rewriter(tables).visited(func.body, {})
        assert isinstance(body, Stmt)
        return func if body is func.body else func.with_body(body)


class _Rewriter:
    def __init__(self, tables: Isa) -> None:
        self.isa = tables

    def visited(self, node: Node, ranges: Mapping[Var, Interval]) -> Node:
        """Bottom-up; the bits of a load stay those of a load."""
        if isinstance(node, For):
            ranges = {**ranges, node.var: (0, node.extent - 1)}
        if isinstance(node, Reinterpret) and isinstance(node.value, Load):
            return node
        made = node.map_children(lambda child: self.visited(child, ranges))
        if isinstance(made, Load) and self._may_shuffle(made):
            shuffled = self._shuffled(made, ranges)
            return made if shuffled is None else shuffled
        return made

    def _may_shuffle(self, load: Load) -> bool:
        """Whether there are the operations, and no data among the indices."""
        kind = load.dtype
        if kind.lanes == 1 or load.buffer.scope == "register" or not self.isa.has("shuffle", kind):
            return False
        return not any(_is_data(node) for item in load.indices for node in walk(item))

    def _shuffled(self, load: Load, ranges: Ranges) -> Expr | None:
        kind = load.dtype
        on = (1 << kind.lanes) - 1 if load.mask is None else lanes_on(load.mask)
        lanes = [n for n in range(kind.lanes) if on is not None and on >> n & 1]
        if not lanes or access(load.buffer, load.indices, ranges).stride in (0, 1):
            return None
        places = _places(load.indices, lanes, ranges)
        if places is None:
            return None
        first = tuple(simplify(lane_value(item, lanes[0]), ranges) for item in load.indices)
        found = _rows(load.buffer, first, places, kind.lanes, ranges)
        if len(found) > _most_loads(kind.lanes):
            found = _lines(load.buffer, first, places, kind.lanes, ranges)
        masked = any(window.count < kind.lanes for window in found)
        if not 0 < len(found) <= _most_loads(kind.lanes):
            return None
        if masked and not self.isa.has("load_masked", kind):
            return None
        made = _joined(found, lanes, kind.lanes)
        if load.mask is None:
            return made
        zeros = Broadcast(const(0, kind.scalar), kind.lanes)
        return Select(load.mask, made, zeros if load.other is None else load.other)


def _is_data(node: Node) -> bool:
    """Whether it is known in a run alone, and so is a place that depends on it."""
    return isinstance(node, Load) or (isinstance(node, Var) and node.type.lanes > 1)


def _most_loads(lanes: int) -> int:
    return lanes // 4 + 2


@dataclass(frozen=True, slots=True)
class _Window:
    """A load of neighbours. held: by the number of a place, the lane that holds it. count: lanes
    that are read.
    """

    load: Load
    held: Mapping[int, int]
    count: int


def _places(
    indices: Sequence[Expr], lanes: Sequence[int], ranges: Ranges
) -> list[tuple[int, ...]] | None:
    """How far each lane's indices are from those of the first one; None where that is no number."""
    columns = [_distances(item, lanes, ranges) for item in indices]
    known = [column for column in columns if column is not None]
    return [*zip(*known, strict=True)] if len(known) == len(columns) else None


def _distances(item: Expr, lanes: Sequence[int], ranges: Ranges) -> list[int] | None:
    if isinstance(item, Ramp):
        return [item.stride * (lane - lanes[0]) for lane in lanes]
    if item.dtype.lanes == 1 or isinstance(item, Broadcast):
        return [0] * len(lanes)
    first, *others = (linear(simplify(lane_value(item, lane), ranges)) for lane in lanes)
    apart = [other - first for other in others]
    if any(form.terms for form in apart):
        return None
    return [0, *(form.constant for form in apart)]


def _rows(
    buffer: Buffer,
    first: Sequence[Expr],
    places: Sequence[tuple[int, ...]],
    lanes: int,
    ranges: Ranges,
) -> list[_Window]:
    """Loads along the last axis."""
    extent = buffer.extents[-1]
    numbered = sorted(range(len(places)), key=lambda n: (places[n], n))
    found: list[_Window] = []
    for front, group in groupby(numbered, key=lambda n: places[n][:-1]):
        members = {n: places[n][-1] for n in group}
        at = tuple(add(item, index(by)) for item, by in zip(first[:-1], front, strict=True))
        row = tuple(simplify(item, ranges) for item in at)

        def load_at(start: int, row: tuple[Expr, ...] = row) -> Load:
            base = simplify(add(first[-1], index(start)), ranges)
            return Load(buffer, (*row, Ramp(base, 1, lanes)))

        limit = None if isinstance(extent, Dim) else extent
        found += _windows(load_at, members, first[-1], limit, lanes, ranges)
    return found


def _lines(
    buffer: Buffer,
    first: Sequence[Expr],
    places: Sequence[tuple[int, ...]],
    lanes: int,
    ranges: Ranges,
) -> list[_Window]:
    """Loads of neighbours in the last two axes, behind the end of a row in the next one."""
    if len(first) < 2 or buffer.scope != "global" or buffer.aligned:
        return []
    *_, height, width = buffer.extents
    if isinstance(height, Dim) or isinstance(width, Dim):
        return []
    if any(any(place[:-2]) for place in places):
        return []
    members = {n: place[-2] * width + place[-1] for n, place in enumerate(places)}
    start_of = simplify(add(mul(first[-2], index(width)), first[-1]), ranges)

    def load_at(start: int) -> Load:
        line = Ramp(simplify(add(start_of, index(start)), ranges), 1, lanes)
        size_of_row = Broadcast(index(width), lanes)
        return Load(buffer, (*first[:-2], FloorDiv(line, size_of_row), FloorMod(line, size_of_row)))

    return _windows(load_at, members, start_of, height * width, lanes, ranges)


def _windows(
    load_at: Callable[[int], Load],
    members: Mapping[int, int],
    base: Expr,
    limit: int | None,
    lanes: int,
    ranges: Ranges,
) -> list[_Window]:
    """Loads that together hold all members. load_at: that of neighbours from a distance behind
    `base` on.
    """
    found = _cover(sorted({*members.values()}), base, limit, lanes, ranges)
    return [_window(load_at(start), members, start, count, lanes) for start, count in found]


def _window(load: Load, members: Mapping[int, int], start: int, count: int, lanes: int) -> _Window:
    if count < lanes:
        on = LT(Ramp(index(0), 1, lanes), Broadcast(index(count), lanes))
        load = Load(load.buffer, load.indices, on)
    held = {n: by - start for n, by in members.items() if 0 <= by - start < count}
    return _Window(load, held, count)


def _cover(
    places: Sequence[int], base: Expr, limit: int | None, lanes: int, ranges: Ranges
) -> Iterator[tuple[int, int]]:
    """Where loads of `lanes` neighbours start that hold all of some places, counted from `base`,
    and how many lanes each of them reads. Where it makes no more loads, they start at multiples of
    their lanes, so that other places are read by the same ones.
    """

    def is_inside(start: int) -> bool:
        if places[0] <= start and start + lanes - 1 <= places[-1]:
            return True
        low, _ = bounds(add(base, index(start)), ranges)
        _, high = bounds(add(base, index(start + lanes - 1)), ranges)
        if low is None or high is None or limit is None:
            return False
        return low >= 0 and high < limit

    greedy: list[tuple[int, int]] = []
    for place in places:
        if not greedy or place - greedy[-1][0] >= lanes:
            greedy.append((place, place))
        greedy[-1] = (greedy[-1][0], place)
    own = linear(base).constant
    even = sorted({(own + place) // lanes * lanes - own for place in places})
    if len(even) == len(greedy) and all(map(is_inside, even)):
        yield from ((start, lanes) for start in even)
        return
    for start, last in greedy:
        near = (start, min(start, places[-1] - lanes + 1), last - lanes + 1)
        whole = next((s for s in near if s > last - lanes and is_inside(s)), None)
        yield (start, last - start + 1) if whole is None else (whole, lanes)


def _joined(windows: Sequence[_Window], lanes: Sequence[int], width: int) -> Expr:
    """One vector of the elements that the loads hold, in their lanes; others have any value."""
    order = [*range(width)]
    for n, at in windows[0].held.items():
        order[lanes[n]] = at
    a: Expr = windows[0].load
    b: Expr = a
    for number, window in enumerate(windows[1:]):
        if number > 0:
            a, order = Shuffle(a, b, tuple(order)), [*range(width)]
        b = window.load
        for n, at in window.held.items():
            order[lanes[n]] = width + at
    return Shuffle(a, b, tuple(order))
