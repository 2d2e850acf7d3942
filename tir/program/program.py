"""Program: a whole model for one device, as launches over memory that is planned beforehand.

Every tensor is a Slice of one of four spaces: "input" and "output" (the caller's arrays),
"constant" (known when the program is built) and "arena" (one allocation per context, of
`arena_bytes`). Launches run in order; two launches between the same two Syncs touch no common
memory, one of them writing, so that they may overlap. Meaning: as if each launch were
`functions[name]` called on the slices, one after the other. A Branch runs one of two lists of
steps, a Repeat one list again and again, as data say; steps in a loop may work on the row of an
array that the iteration is at. A ReadSize makes a number that the run has computed a size of what
follows.

Some constants are computed: `prepare` lists launches that read and write constants only and run
once, when the program is built. A constant that one of them writes is prepared; the others are
bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, assert_never

from ..dim import Dim
from ..dtype import DType
from ..errors import IRError, known_names
from ..index_check import IndexCheck
from ..sizes import AnySize, at_most, closed, dims_in, interval, largest, product_of
from ..text.display import printable

if TYPE_CHECKING:  # a program that is only run holds none
    from ..func import PrimFunc

SPACES = ("input", "constant", "output", "arena")


@dataclass(frozen=True, slots=True)
class LoopRow:
    """Which of `rows` equal parts of an array a step in a loop works on: the one that loop number
    `loop` is at, counted from the last one where `reverse`.
    """

    loop: int
    rows: AnySize
    reverse: bool = False

    def of(self, iterations: Mapping[int, int]) -> int:
        """The number of the row in these iterations of the loops around. Sizes are numbers."""
        number = iterations[self.loop]
        return closed(self.rows) - 1 - number if self.reverse else number

    def __str__(self) -> str:
        return f"{self.rows - 1} - i{self.loop}" if self.reverse else f"i{self.loop}"


@dataclass(frozen=True, slots=True)
class Slice:
    """A dense row-major array: the tensor number `position` of its space, or, in the arena, the
    bytes from `position` on.

    moves: it is one row of that array, of `shape`, in each iteration of the loops around another
    one; a row of a row where there are several, that of the whole array first.
    """

    space: str
    position: int
    dtype: DType
    shape: tuple[AnySize, ...]
    moves: tuple[LoopRow, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of the array; the most that it may have, where a run decides."""
        return self.dtype.bytes * largest(product_of(self.shape))

    @property
    def whole(self) -> Slice:
        """The array that all rows make together; itself where it does not move."""
        if not self.moves:
            return self
        shape = (*(move.rows for move in self.moves), *self.shape)
        return Slice(self.space, self.position, self.dtype, shape)

    @property
    def reach(self) -> int:
        """Bytes of the array that all rows make together; the most that it may have."""
        return self.whole.bytes

    def offset(self, iterations: Mapping[int, int]) -> int:
        """Where its first byte lies in the whole array, in these iterations of the loops. Sizes are
        numbers.
        """
        row = 0
        for move in self.moves:
            row = row * closed(move.rows) + move.of(iterations)
        return row * self.bytes

    def overlaps(self, other: Slice) -> bool:
        """Whether the two share a byte, in whichever iterations of the loops around."""
        if self.space != other.space or not self.bytes or not other.bytes:
            return False
        if self.space != "arena":
            return self.position == other.position
        return (
            self.position < other.position + other.reach
            and other.position < self.position + self.reach
        )

    def __str__(self) -> str:
        rows = "".join(f"[{move}]" for move in self.moves)
        at = f"{self.space}[{self.position}]{rows}"
        return f"{at}: {self.dtype}[{', '.join(map(str, self.shape)) or '()'}]"


@dataclass(frozen=True, slots=True)
class ProgramTensor:
    """A named array of a program's interface: an input, an output or a constant."""

    name: str
    dtype: DType
    shape: tuple[AnySize, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the array."""
        return Slice("input", 0, self.dtype, self.shape).bytes


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a function on slices, one for each of its parameters, in order.

    label: the model's nodes that it computes, for reports. sizes: what the function's dims are.
    """

    function: str
    arguments: tuple[Slice, ...]
    label: str = ""
    sizes: tuple[AnySize, ...] = ()


@dataclass(frozen=True, slots=True)
class Sync:
    """Every thread arrives before one leaves: what follows depends on what came before."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy one slice to another of the same type."""

    source: Slice
    target: Slice

    @property
    def effects(self) -> Effects:
        """What it reads and writes."""
        return Effects((self.source,), (self.target,))


@dataclass(frozen=True, slots=True)
class WriteIteration:
    """Write which iteration loop number `loop` is at, an int64 from 0 on."""

    loop: int
    target: Slice

    @property
    def effects(self) -> Effects:
        """What it reads and writes."""
        return Effects((), (self.target,))


@dataclass(frozen=True, slots=True)
class KeepLargest:
    """Let `target` be the larger one of the two, a uint64 each: so the check of indices of a launch
    that runs several times, or not at all, outlives it.
    """

    source: Slice
    target: Slice

    @property
    def effects(self) -> Effects:
        """What it reads and writes."""
        return Effects((self.source, self.target), (self.target,))


@dataclass(frozen=True, slots=True)
class ReadSize:
    """Let the size `dim` be what `source`, one int64, holds: each step behind it, and who reads the
    outputs, takes it as so large. It is within the bounds of the dim, and stays where it is.
    """

    dim: Dim
    source: Slice

    @property
    def effects(self) -> Effects:
        """What it reads and writes."""
        return Effects((self.source,), ())


@dataclass(frozen=True, slots=True)
class Branch:
    """Run `then` where `condition`, one bool, is true, else `otherwise`.

    label: the model's node, for reports.
    """

    condition: Slice
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]
    label: str = ""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run `body` again and again, with a Sync at its end.

    loop: its number, which no other loop of the program has. count: how often at most, a size or
    one int64 that is read before the first iteration; None: no matter how often. condition: one
    bool, read before each iteration, which ends it when it is false; None: always true.
    label: the model's node, for reports.
    """

    loop: int
    count: AnySize | Slice | None
    condition: Slice | None
    body: tuple[Step, ...]
    label: str = ""

    @property
    def always_runs(self) -> bool:
        """Whether there is an iteration whatever the data say."""
        if self.count is None or isinstance(self.count, Slice) or self.condition is not None:
            return False
        return at_most(1, self.count) is True

    @property
    def before_first(self) -> tuple[Slice, ...]:
        """What is read before the first iteration."""
        given = (self.count, self.condition)
        return tuple(item for item in given if isinstance(item, Slice))


Action = Launch | Copy | WriteIteration | KeepLargest | ReadSize  # what reads and writes
Step = Action | Sync | Branch | Repeat
ACTION_TITLES = {
    Copy: "copy",
    WriteIteration: "iteration",
    KeepLargest: "check kept",
    ReadSize: "size read",
}


@dataclass(frozen=True, slots=True)
class Effects:
    """What a step reads, and what it writes."""

    read: tuple[Slice, ...]
    written: tuple[Slice, ...]

    @property
    def touched(self) -> tuple[Slice, ...]:
        """Both."""
        return (*self.read, *self.written)

    def conflicts_with(self, other: Effects) -> bool:
        """Whether the two steps may not overlap."""
        return any(w.overlaps(t) for w in self.written for t in other.touched) or any(
            w.overlaps(t) for w in other.written for t in self.touched
        )


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """A check of indices that a launch makes. label: the launch's; word: where its result lies when
    the program has run.
    """

    label: str
    check: IndexCheck
    word: Slice


@dataclass(frozen=True, slots=True)
class Program:
    """A model.

    functions: by name, each once, however often it is launched.
    prepare: launches that compute constants from constants, once, before the first run.
    """

    name: str
    inputs: tuple[ProgramTensor, ...]
    outputs: tuple[ProgramTensor, ...]
    constants: tuple[ProgramTensor, ...]
    functions: tuple[PrimFunc, ...]
    body: tuple[Step, ...]
    arena_bytes: int
    prepare: tuple[Launch, ...] = ()

    @property
    def prepared(self) -> frozenset[int]:
        """The positions of the constants that `prepare` computes."""
        functions = functions_by_name(self)
        return frozenset(
            item.position
            for launch in self.prepare
            for item in launch_effects(functions[launch.function].parameters, launch).written
        )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, in order, those within branches and loops once each."""
        return launches_of(self.body)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes that a call decides: those of the inputs, in their order."""
        return dims_in(size for tensor in self.inputs for size in tensor.shape)

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        functions, kept = functions_by_name(self), kept_words(self.body)
        found = (checks_of(functions[step.function], step, kept) for step in self.launches)
        return tuple(check for checks in found for check in checks)

    def function(self, name: str) -> PrimFunc:
        """The function called `name`; KeyError when there is none."""
        for func in self.functions:
            if func.name == name:
                return func
        raise KeyError(name)

    def __str__(self) -> str:
        lines = [f"program {self.name}: arena {self.arena_bytes} bytes"]
        for space, tensors in (
            ("input", self.inputs),
            ("constant", self.constants),
            ("output", self.outputs),
        ):
            for position, tensor in enumerate(tensors):
                lines.append(
                    f"  {tensor.name} = {Slice(space, position, tensor.dtype, tensor.shape)}"
                )
        lines += [f"  prepare {step_text(launch)}" for launch in self.prepare]
        return "\n".join([*lines, *(f"  {line}" for line in steps_text(self.body))])


def step_text(step: Step) -> str:
    """A step on one line; of a branch or a loop the head."""
    label = getattr(step, "label", "")
    note = f"  # {printable(label)}" if label else ""
    match step:
        case Launch():
            return f"{step.function}({'; '.join(map(str, step.arguments))}){note}"
        case Copy():
            return f"copy({step.source} -> {step.target})"
        case WriteIteration():
            return f"iteration(i{step.loop} -> {step.target})"
        case KeepLargest():
            return f"largest({step.source}; {step.target} -> {step.target})"
        case ReadSize():
            return f"size({step.dim.name} = {step.source})"
        case Branch():
            return f"if {step.condition}:{note}"
        case Repeat():
            often = "" if step.count is None else f" below {step.count}"
            until = "" if step.condition is None else f" while {step.condition}"
            return f"for i{step.loop}{often}{until}:{note}"
        case Sync():
            return "sync()"
    assert_never(step)


def action_title(step: Copy | WriteIteration | KeepLargest | ReadSize) -> str:
    """What a step that launches nothing is called."""
    return ACTION_TITLES[type(step)]


def steps_text(steps: Iterable[Step]) -> Iterator[str]:
    """Steps, a line for each, what is within branches and loops indented."""
    for step in steps:
        yield step_text(step)
        match step:
            case Branch():
                yield from (f"    {line}" for line in steps_text(step.then))
                yield "else:"
                yield from (f"    {line}" for line in steps_text(step.otherwise))
            case Repeat():
                yield from (f"    {line}" for line in steps_text(step.body))


def actions(steps: Iterable[Step]) -> Iterator[Action]:
    """The steps that read and write, in order, those within branches and loops once each."""
    for step in steps:
        match step:
            case Branch():
                yield from actions(step.then)
                yield from actions(step.otherwise)
            case Repeat():
                yield from actions(step.body)
            case Sync():
                pass
            case _:
                yield step


def launches_of(steps: Iterable[Step]) -> tuple[Launch, ...]:
    """The launches among `actions`."""
    return tuple(step for step in actions(steps) if isinstance(step, Launch))


def sizes_read(steps: Iterable[Step]) -> tuple[ReadSize, ...]:
    """The sizes among `actions` that a run computes."""
    return tuple(step for step in actions(steps) if isinstance(step, ReadSize))


def kept_words(steps: Iterable[Step]) -> dict[Slice, Slice]:
    """Where the largest result of each check lies that a KeepLargest keeps."""
    return {s.source: s.target for s in actions(steps) if isinstance(s, KeepLargest)}


class HasRole(Protocol):
    """A parameter of a function."""

    @property
    def role(self) -> str:
        """ "output" where the function writes it; whatever else where it reads it."""
        ...


def launch_effects(parameters: Sequence[HasRole], launch: Launch) -> Effects:
    """What a launch of a function with these parameters reads and writes."""
    pairs = list(zip(parameters, launch.arguments, strict=True))
    return Effects(
        tuple(item for parameter, item in pairs if parameter.role != "output"),
        tuple(item for parameter, item in pairs if parameter.role == "output"),
    )


def checks_of(
    func: PrimFunc, launch: Launch, kept: Mapping[Slice, Slice]
) -> Iterator[ProgramCheck]:
    """The checks of indices that a launch of a function makes. kept: see `kept_words`."""
    for parameter, word in zip(func.parameters, launch.arguments, strict=True):
        if parameter.check is not None:
            label = launch.label or launch.function
            yield ProgramCheck(label, parameter.check, kept.get(word, word))


def functions_by_name(program: Program) -> dict[str, PrimFunc]:
    """The functions of a program by name."""
    return {func.name: func for func in program.functions}


def effects_of(functions: Mapping[str, PrimFunc], step: Action) -> Effects:
    """What a step reads and writes. Raises: IRError for a launch that does not fit its function."""
    if not isinstance(step, Launch):
        return step.effects
    func = functions.get(step.function)
    if func is None:
        raise IRError(
            f"program: there is no function '{step.function}'; there are "
            f"{known_names(step.function, tuple(functions))}.",
            code="program-function",
        )
    if len(func.parameters) != len(step.arguments):
        raise IRError(
            f"program: '{step.function}' takes {len(func.parameters)} slices; got "
            f"{len(step.arguments)}.",
            code="program-arguments",
        )
    if len(func.dims) != len(step.sizes):
        named = ", ".join(dim.name for dim in func.dims) or "none"
        got = ", ".join(map(str, step.sizes)) or "none"
        raise IRError(
            f"program: '{step.function}' takes the sizes {named}; got {got}.",
            code="program-sizes",
        )
    for dim, size in zip(func.dims, step.sizes, strict=True):
        low, high = interval(size)
        if not dim.low <= low <= high <= dim.high:
            raise IRError(
                f"program: '{step.function}' takes a size '{dim.name}' of {dim.low} to {dim.high}; "
                f"got {size}, which is {low} to {high}.",
                code="program-size-bounds",
            )
    values = dict(zip(func.dims, step.sizes, strict=True))
    for parameter, argument in zip(func.parameters, step.arguments, strict=True):
        extents = parameter.buffer.extents
        wanted = product_of(values[e] if isinstance(e, Dim) else e for e in extents)
        if parameter.dtype != argument.dtype or wanted != product_of(argument.shape):
            raise IRError(
                f"program: '{step.function}' takes '{parameter.name}' of {wanted} x "
                f"{parameter.dtype}; got {argument}.",
                code="program-argument",
            )
    return launch_effects(func.parameters, step)
