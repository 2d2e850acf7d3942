"""What a checked run watches: bounds, uninitialised reads, races, and how often the points of a
block run.

- A read of an element that nothing has written since its storage began is an error; a plain copy of
  one (`a[i] = b[j]`) is not, it makes the copy uninitialised too. At the end each element of each
  output must have been written.
- Two iterations of one parallel or vectorised loop race when both touch an element that lives
  outside the loop and one of them writes it. With `barriers`, what runs at the root counts as well:
  iterations of one parallel loop after another race unless a Barrier stands between them, or both
  are the same iteration of loops of the same extent, which one thread runs; what stands outside
  parallel loops is one more iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..buffer import Buffer
from ..errors import IRError
from ..reference.arithmetic import Array, Scalar

Index = int | Array
Flags = bool | Array
SERIAL = "serial"


class InterpreterError(IRError):
    """The interpreter met an action that has no meaning: a defect of the program that it runs."""


@dataclass(frozen=True, slots=True)
class Site:
    """A statement, for messages: its text, and the loops around it as (name, slot of the current
    value).
    """

    text: Callable[[], str]
    loops: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Level:
    """A loop that may run its iterations at once.

    `epoch` changes where everything before is ordered before what follows.
    """

    name: str
    epoch: int
    agent: object = None


@dataclass(frozen=True, slots=True)
class Two:
    """Two iterations that differ."""

    first: object
    second: object


@dataclass(slots=True)
class Marks:
    """Who touched the elements of a buffer in one epoch of a level: their writers, and their
    readers, of which two that differ are enough.
    """

    epoch: int
    writers: dict[int, object] = field(default_factory=dict)
    readers: dict[int, object] = field(default_factory=dict)


class Watch:
    """The state of one checked run: the values of the loops, and the iterations that may run at
    once.
    """

    def __init__(self, name: str, sites: Sequence[Site], slots: int, barriers: bool) -> None:
        self.name = name
        self.sites = sites
        self.values = [0] * slots
        self.barriers = barriers
        self.levels: list[Level] = []
        self._epoch = 0
        if barriers:
            self.levels.append(Level("", 0, SERIAL))

    def enter(self, level: int, name: str) -> None:
        """Begin a loop whose iterations may run at once, at nesting `level`."""
        if self.barriers and level == 0:
            self.levels[0].name = name
            return
        self._epoch += 1
        self.levels[level:] = [Level(name, self._epoch)]

    def step(self, level: int, value: int, extent: int) -> None:
        """Begin iteration `value` of the loop at `level`."""
        joined = not (self.barriers and level == 0)
        self.levels[level].agent = value if joined else (extent, value)

    def leave(self, level: int) -> None:
        """End the loop at `level`."""
        if self.barriers and level == 0:
            self.levels[0].agent = SERIAL
        else:
            del self.levels[level:]

    def barrier(self) -> None:
        """Order all that ran before what follows."""
        if self.barriers:
            self._epoch += 1
            self.levels[0].epoch = self._epoch

    def at(self, site: int, values: Sequence[int] | None = None) -> str:
        """Where the run stands, or stood with other loop values: ' at i = 1, j = 2'."""
        current = self.values if values is None else values
        loops = ", ".join(f"{name} = {current[slot]}" for name, slot in self.sites[site].loops)
        return f" at {loops}" if loops else ""

    def where(self, site: int) -> str:
        """The function and the statement of a site."""
        text = self.sites[site].text().replace("\n", "\n    ")
        return f"in {self.name}:\n    {text}"


@dataclass(slots=True)
class Cells:
    """The elements of one buffer, watched.

    data: the elements, flat. ready: those that hold a value; None when all do. depth: the number of
    levels around the buffer's storage, to whose iterations it is private.
    """

    buffer: Buffer
    data: Array
    watch: Watch
    ready: set[int] | None
    depth: int
    _marks: list[Marks] = field(default_factory=list)  # of each level
    _shape: tuple[int, ...] = field(init=False)
    _is_plain: bool = field(init=False)  # whether an item of `data` is an element as it is

    def __post_init__(self) -> None:
        self._shape = self.buffer.shape
        self._is_plain = self.data.ndim == 1 and self.buffer.type.is_float

    def fresh(self) -> None:
        """Begin new storage: nothing in it is initialised."""
        self.ready = set()
        self._marks = []

    def read(self, site: int, indices: tuple[int, ...]) -> Scalar | Array:
        """The element at `indices`."""
        return self.read_flat(site, self._flat(site, indices, "read"))

    def read_flat(self, site: int, flat: int) -> Scalar | Array:
        """The element at a place that is known to be inside."""
        if len(self.watch.levels) > self.depth:
            self._touch(site, flat, False)
        if self.ready is not None and flat not in self.ready:
            raise self._unready(site, self._point(flat))
        if self._is_plain:
            element: Scalar = self.data[flat]
            return element
        return self._element(flat)

    def peek(self, site: int, indices: tuple[int, ...]) -> tuple[Scalar | Array, bool]:
        """The element at `indices`, and whether it is initialised."""
        return self.peek_flat(site, self._flat(site, indices, "read"))

    def peek_flat(self, site: int, flat: int) -> tuple[Scalar | Array, bool]:
        """As `peek`, at a place that is known to be inside."""
        self._touch(site, flat, False)
        return self._element(flat), self.ready is None or flat in self.ready

    def read_lanes(
        self, site: int, indices: tuple[Index, ...], mask: Array | None, other: Array | Scalar
    ) -> Array:
        """The elements at `indices` lane by lane; lanes that are off have the value `other`."""
        values, flags = self.peek_lanes(site, indices, mask, other)
        if not np.all(flags):
            lane = int(np.argmin(flags))
            raise self._unready(site, _lane(indices, lane))
        return values

    def peek_lanes(
        self, site: int, indices: tuple[Index, ...], mask: Array | None, other: Array | Scalar
    ) -> tuple[Array, Array]:
        """As `read_lanes`, with a truth value per lane: whether it is initialised."""
        lanes = _lane_count(indices)
        values: Array = np.empty(lanes, dtype=self.data.dtype)
        values[...] = other
        flags = np.ones(lanes, dtype=bool)
        for lane, point in _points(indices, mask):
            flat = self._flat(site, point, "read")
            self._touch(site, flat, False)
            values[lane] = self.data[flat]
            flags[lane] = self.ready is None or flat in self.ready
        return values, flags

    def write(
        self,
        site: int,
        indices: tuple[Index, ...],
        value: Scalar | Array,
        flags: Flags = True,
        mask: Array | bool | None = None,
    ) -> None:
        """Write a scalar, or a vector lane by lane; `flags`: whether the value is initialised."""
        if any(isinstance(index, np.ndarray) for index in indices):
            lanes = _lane_count(indices)
            values, ready = np.broadcast_to(value, lanes), np.broadcast_to(flags, lanes)
            on = None if mask is None or isinstance(mask, bool | np.bool_) else mask
            for lane, point in _points(indices, on):
                self.write_at(site, point, values[lane], bool(ready[lane]))
        elif mask is None or isinstance(mask, bool | np.bool_):
            if mask is None or mask:
                self.write_at(site, _lane(indices, 0), value, flags)
        else:
            point = _lane(indices, 0)
            kept = self.data[self._flat(site, point, "written")]
            self.write_at(site, point, np.where(mask, value, kept), flags)

    def close(self) -> None:
        """End the run: every element of this output must have been written."""
        missing = [] if self.ready is None else sorted(set(range(len(self.data))) - self.ready)
        if missing:
            raise InterpreterError(
                f"interpreter: output {self._named(self._point(missing[0]))} is never written; "
                f"expected all {self.buffer.size} elements, got {self.buffer.size - len(missing)}.",
                code="interpreter-unwritten",
                where=f"in {self.watch.name}:",
            )

    def write_at(
        self,
        site: int,
        indices: tuple[int, ...],
        value: Scalar | Array | np.generic,
        ready: Flags = True,
    ) -> None:
        """Write to the element at `indices`."""
        self.write_flat(site, self._flat(site, indices, "written"), value, ready)

    def write_flat(
        self, site: int, flat: int, value: Scalar | Array | np.generic, ready: Flags
    ) -> None:
        """Write to a place that is known to be inside."""
        if len(self.watch.levels) > self.depth:
            self._touch(site, flat, True)
        self.data[flat] = value
        if self.ready is not None:
            (self.ready.add if ready is True or np.all(ready) else self.ready.discard)(flat)

    def _point(self, flat: int) -> tuple[int, ...]:
        return tuple(int(index) for index in np.unravel_index(flat, self.buffer.shape))

    def _element(self, flat: int) -> Scalar | Array:
        if self.data.ndim > 1:
            row: Array = self.data[flat].copy()
            return row
        found: Scalar = self.data[flat] if self.buffer.type.is_float else self.data.item(flat)
        return found

    def _flat(self, site: int, indices: tuple[int, ...], verb: str) -> int:
        flat = 0
        for index, extent in zip(indices, self._shape, strict=True):
            if not 0 <= index < extent:
                raise InterpreterError(
                    f"interpreter: {self._named(indices)} is {verb}{self.watch.at(site)}; expected "
                    f"indices inside its shape {list(self.buffer.shape)}.",
                    code="interpreter-bounds",
                    where=self.watch.where(site),
                )
            flat = flat * extent + index
        return int(flat)

    def _touch(self, site: int, flat: int, writing: bool) -> None:
        levels, found = self.watch.levels, self._marks
        if self.depth:
            levels = levels[self.depth :]
        for number, level in enumerate(levels):
            if number == len(found):
                found.append(Marks(level.epoch))
            marks = found[number]
            if marks.epoch != level.epoch:
                marks = found[number] = Marks(level.epoch)
            agent, writers, readers = level.agent, marks.writers, marks.readers
            if writers:
                writer = writers.get(flat, agent)
                if writer is not agent and writer != agent:
                    raise self._race(
                        site, flat, level, writer, ("writes", "writes" if writing else "reads")
                    )
            if not writing:
                reader = readers.setdefault(flat, agent)
                if reader is not agent and type(reader) is not Two and reader != agent:
                    readers[flat] = Two(reader, agent)
                continue
            if readers:
                reader = readers.get(flat, agent)
                if reader is not agent and reader != agent:
                    raise self._race(site, flat, level, _other(reader, agent), ("reads", "writes"))
            writers[flat] = agent

    def _race(
        self, site: int, flat: int, level: Level, first: object, verbs: tuple[str, str]
    ) -> InterpreterError:
        a, b = (_agent(level.name, agent) for agent in (first, level.agent))
        point = self._point(flat)
        return InterpreterError(
            f"interpreter: {a} {verbs[0]} {self._named(point)} and {b} {verbs[1]} it"
            f"{self.watch.at(site)}, with no barrier between; "
            "expected iterations that may run at once to touch different elements.",
            code="interpreter-race",
            where=self.watch.where(site),
        )

    def _unready(self, site: int, indices: tuple[int, ...]) -> InterpreterError:
        return InterpreterError(
            f"interpreter: {self._named(indices)} is read{self.watch.at(site)} "
            "before it is written.",
            code="interpreter-uninitialised",
            where=self.watch.where(site),
        )

    def _named(self, indices: Sequence[int]) -> str:
        return f"'{self.buffer.name}'[{', '.join(str(int(i)) for i in indices) or '()'}]"


@dataclass(slots=True)
class Points:
    """The points at which the blocks of one family have run."""

    watch: Watch
    _done: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = field(default_factory=dict)

    def inside(
        self,
        site: int,
        block: str,
        names: Sequence[str],
        point: tuple[int, ...],
        extents: Sequence[int],
    ) -> None:
        """Check that a point lies in the block's domain."""
        for name, value, extent in zip(names, point, extents, strict=True):
            if not 0 <= value < extent:
                raise InterpreterError(
                    f"interpreter: block '{block}' runs at {name} = {value}{self.watch.at(site)}; "
                    f"expected 0 to {extent - 1}, or a block marked padded.",
                    code="interpreter-domain",
                    where=self.watch.where(site),
                )

    def once(self, site: int, block: str, names: Sequence[str], point: tuple[int, ...]) -> None:
        """Record a point that must not have run before."""
        if point in self._done:
            text = ", ".join(f"{name} = {value}" for name, value in zip(names, point, strict=True))
            raise InterpreterError(
                f"interpreter: block '{block}' runs its point ({text}) twice,"
                f"{self.watch.at(*self._done[point])} and{self.watch.at(site)}; "
                "expected once, or a block marked recomputed.",
                code="interpreter-twice",
                where=self.watch.where(site),
            )
        self._done[point] = site, tuple(self.watch.values)


def _agent(name: str, agent: object) -> str:
    if isinstance(agent, tuple):
        return f"iteration {agent[1]} of a parallel loop over {agent[0]}"
    return "the serial part" if agent == SERIAL else f"iteration {name} = {agent}"


def _other(found: object, agent: object) -> object:
    """One of the iterations that were found, which is not `agent`."""
    if isinstance(found, Two):
        return found.first if found.first != agent else found.second
    return found


def _lane_count(indices: Sequence[Index]) -> int:
    return max(len(index) for index in indices if isinstance(index, np.ndarray))


def _lane(indices: Sequence[Index], lane: int) -> tuple[int, ...]:
    return tuple(int(index[lane]) if isinstance(index, np.ndarray) else index for index in indices)


def _points(indices: Sequence[Index], mask: Array | None) -> Iterator[tuple[int, tuple[int, ...]]]:
    for lane in range(_lane_count(indices)):
        if mask is None or mask[lane]:
            yield lane, _lane(indices, lane)
