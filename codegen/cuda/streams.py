"""On which stream of a device each step of a program runs, and for which others it waits.

Steps on one stream run one after the other; a step waits for one of another stream where the two
touch a common slice, one of them writing, and nothing else puts them in order. What a program's
Syncs say is not looked at: they separate whole groups of steps, most of which do not depend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product

from ...tir.dim import Dim
from ...tir.program.program import Copy, Launch, Slice
from ...tir.program.steps_at import steps_at
from ..program_artifact import slices_of
from .program_artifact import CudaProgram

MOST_STREAMS = 4


@dataclass(frozen=True, slots=True)
class Placed:
    """A step on its stream.

    waits: the positions, among the placed steps, of those on other streams that it waits for.
    """

    step: Launch | Copy
    stream: int
    waits: tuple[int, ...] = ()


def place_on_streams(program: CudaProgram, most: int = MOST_STREAMS) -> tuple[Placed, ...]:
    """Every step but the Syncs, in the order of the program, on up to `most` streams.

    A step goes on where one that it depends on was the last; where there is none, on a stream of
    its own while there are such.
    """
    touched, streams = _Touched(), _Streams(most)
    placed: list[Placed] = []
    for step in program.steps:
        written = program.written(step)
        read = [item for item in slices_of(step) if item not in written]
        stream, waits = streams.put(sorted(touched.before(len(placed), read, written)))
        placed.append(Placed(step, stream, waits))
    return tuple(placed)


def placed_at(placed: Sequence[Placed], values: Mapping[Dim, int]) -> tuple[Placed, ...]:
    """The steps at these sizes; where each runs, and what it waits for, is the same at all."""
    steps = steps_at([item.step for item in placed], values)
    return tuple(
        replace(item, step=step)
        for item, step in zip(placed, steps, strict=True)
        if isinstance(step, Launch | Copy)
    )


def order_ahead(placed: Sequence[Placed], stream: int) -> list[int]:
    """The positions of all steps in an order that a device may run them in: one stream goes ahead
    as far as it may, the others do only what it waits for, and the rest in the end.

    Where a step of that stream does not wait for one that it depends on, it runs before it.
    """
    before = _before(placed)
    order: dict[int, None] = {}
    for number in (n for n, step in enumerate(placed) if step.stream == stream):
        order |= dict.fromkeys(n for n in sorted({*before[number], number}))
    return list(order | dict.fromkeys(range(len(placed))))


def missing_wait(program: CudaProgram, placed: Sequence[Placed]) -> tuple[int, int] | None:
    """The first two steps that touch a common slice, one of them writing, in no order; None where
    there are none.
    """
    before = _before(placed)
    written = [program.written(item.step) for item in placed]
    for number, item in enumerate(placed):
        for other in range(number):
            if other in before[number]:
                continue
            pairs = product(written[number], slices_of(placed[other].step))
            backward = product(written[other], slices_of(item.step))
            if any(one.overlaps(two) for one, two in chain(pairs, backward)):
                return other, number
    return None


def _before(placed: Sequence[Placed]) -> list[frozenset[int]]:
    """For each step those that surely came before it."""
    before: list[frozenset[int]] = []
    last: dict[int, int] = {}
    for number, step in enumerate(placed):
        direct = {*step.waits, *([last[step.stream]] if step.stream in last else [])}
        before.append(frozenset(direct).union(*(before[one] for one in direct)))
        last[step.stream] = number
    return before


class _Touched:
    """Who touched what last: for each part of memory the step that wrote it, and those that read it
    since.
    """

    def __init__(self) -> None:
        self._uses: list[tuple[Slice, int, bool]] = []  # what, by which step, whether written

    def before(self, number: int, read: list[Slice], written: tuple[Slice, ...]) -> set[int]:
        """The steps that step `number` must come after, which is then the last that touched it."""
        found = {
            step
            for used, step, was_written in self._uses
            if any(used.overlaps(item) for item in written)
            or (was_written and any(used.overlaps(item) for item in read))
        }
        # what is overwritten whole is reached through this step from now on
        self._uses = [
            use for use in self._uses if not any(_covers(item, use[0]) for item in written)
        ]
        self._uses += [(item, number, False) for item in read]
        self._uses += [(item, number, True) for item in written]
        return found


def _covers(item: Slice, other: Slice) -> bool:
    """Whether a slice has all bytes of another."""
    if item.space != "arena" or not item.overlaps(other):
        return item.overlaps(other)
    end, other_end = item.position + item.bytes, other.position + other.bytes
    return item.position <= other.position and other_end <= end


class _Streams:
    """The streams, the last step of each, and for each step which steps surely came before it: of
    each stream the last.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: list[int] = []
        self._stream_of: list[int] = []
        self._known: list[dict[int, int]] = []

    def put(self, before: list[int]) -> tuple[int, tuple[int, ...]]:
        """The stream of the next step, and what it waits for. before: the steps that it depends
        on, in order.
        """
        number = len(self._stream_of)
        stream = self._choose(before)
        known = dict(self._known[self._last[stream]]) if stream < len(self._last) else {}
        waits = tuple(self._missing(before, known))
        if stream == len(self._last):
            self._last.append(number)
        self._last[stream] = known[stream] = number
        self._stream_of.append(stream)
        self._known.append(known)
        return stream, waits

    def _choose(self, before: list[int]) -> int:
        tails = [step for step in before if self._last[self._stream_of[step]] == step]
        if tails:
            return self._stream_of[tails[-1]]
        if len(self._last) < self._most:
            return len(self._last)
        return self._last.index(min(self._last))

    def _missing(self, before: list[int], known: dict[int, int]) -> Iterator[int]:
        """The steps that nothing known comes after, the latest first; all are known then."""
        for step in reversed(before):
            if known.get(self._stream_of[step], -1) < step:
                yield step
                for stream, last in self._known[step].items():
                    known[stream] = max(known.get(stream, -1), last)
