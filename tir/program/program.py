"""Program: a whole model for one device, as launches over memory that is planned beforehand.

Every tensor is a Slice of one of four spaces: "input" and "output" (the caller's arrays),
"constant" (known when the program is built) and "arena" (one allocation per context, of
`arena_bytes`). Launches run in order; two launches between the same two Syncs touch no common
memory, one of them writing, so that they may overlap. Meaning: as if each launch were
`functions[name]` called on the slices, one after the other.

Some constants are computed: `prepare` lists launches that read and write constants only and run
once, when the program is built. A constant that one of them writes is prepared; the others are
bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..dim import Dim
from ..dtype import DType
from ..errors import IRError, known_names
from ..index_check import IndexCheck
from ..sizes import AnySize, dims_in, interval, largest, product_of
from ..text.display import printable
from .touched_memory import TouchedMemory

if TYPE_CHECKING:  # a program that is only run holds none
    from ..func import PrimFunc

SPACES = ("input", "constant", "output", "arena")


@dataclass(frozen=True, slots=True)
class Slice:
    """A dense row-major array: the tensor number `position` of its space, or, in the arena, the
    bytes from `position` on.
    """

    space: str
    position: int
    dtype: DType
    shape: tuple[AnySize, ...]

    @property
    def bytes(self) -> int:
        """Bytes of the array; the most that it may have, where a run decides."""
        return self.dtype.bytes * largest(product_of(self.shape))

    def overlaps(self, other: Slice) -> bool:
        """Whether the two share a byte."""
        if self.space != other.space or not self.bytes or not other.bytes:
            return False
        if self.space != "arena":
            return self.position == other.position
        return (
            self.position < other.position + other.bytes
            and other.position < self.position + self.bytes
        )

    def __str__(self) -> str:
        at = f"{self.space}[{self.position}]"
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


Step = Launch | Sync | Copy


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
        functions = _by_name(self)
        return frozenset(
            item.position
            for launch in self.prepare
            for item in launch_effects(functions[launch.function].parameters, launch).written
        )

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches, in order."""
        return tuple(step for step in self.body if isinstance(step, Launch))

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The sizes that a run decides: those of the inputs, in their order."""
        return dims_in(size for tensor in self.inputs for size in tensor.shape)

    @property
    def checks(self) -> tuple[ProgramCheck, ...]:
        """The checks of indices that a run makes, in order."""
        functions = _by_name(self)
        found = (_checks_of(functions[step.function], step) for step in self.launches)
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
        return "\n".join([*lines, *(f"  {step_text(step)}" for step in self.body)])


def step_text(step: Step) -> str:
    """A step on one line."""
    match step:
        case Launch():
            label = f"  # {printable(step.label)}" if step.label else ""
            return f"{step.function}({'; '.join(map(str, step.arguments))}){label}"
        case Copy():
            return f"copy({step.source} -> {step.target})"
    return "sync()"


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


def place_syncs(program: Program) -> Program:
    """The program with a Sync wherever a step touches what one since the last Sync wrote, or writes
    what one touched, and nowhere else. The same program when they stand there already.
    """
    placed: list[Step] = []
    functions = _by_name(program)
    since = _Since()
    for step in program.body:
        if isinstance(step, Sync):
            continue
        effects = _effects(functions, step)
        if since.conflicts_with(effects):
            placed.append(Sync())
            since = _Since()
        placed.append(step)
        since.add(effects)
    body = tuple(placed)
    return program if body == program.body else replace(program, body=body)


def verify_program(program: Program) -> None:
    """Check that every step is well formed, that steps without a Sync between them are independent,
    and that nothing takes the place of a check's result.

    Raises: IRError naming the step.
    """
    held: list[ProgramCheck] = []
    functions = _by_name(program)
    for launch in program.prepare:
        _check_slices(program, launch, _effects(functions, launch), ("constant",), ("constant",))
    since, steps = _Since(), list[Launch | Copy]()
    for step in program.body:
        if isinstance(step, Sync):
            since, steps = _Since(), []
            continue
        effects = _effects(functions, step)
        _check_slices(program, step, effects, SPACES, ("output", "arena"))
        _check_held(held, step, effects)
        if isinstance(step, Launch):
            found = tuple(_checks_of(functions[step.function], step))
            _check_words(found, step)
            held += found
        if since.conflicts_with(effects):
            other = next(x for x in steps if effects.conflicts_with(_effects(functions, x)))
            raise IRError(
                f"program: '{step_text(step)}' and '{step_text(other)}' touch the same memory; "
                "expected a sync between them.",
                code="program-sync",
            )
        since.add(effects)
        steps.append(step)


def _checks_of(func: PrimFunc, launch: Launch) -> Iterator[ProgramCheck]:
    for parameter, word in zip(func.parameters, launch.arguments, strict=True):
        if parameter.check is not None:
            yield ProgramCheck(launch.label or launch.function, parameter.check, word)


def _check_words(checks: Sequence[ProgramCheck], step: Launch) -> None:
    """The results of checks lie in the arena, where who runs a program finds them."""
    for item in checks:
        if item.word.space != "arena":
            raise IRError(
                f"program: '{step_text(step)}' leaves the check of '{item.check.what}' in "
                f"{item.word}; expected memory of the arena.",
                code="program-check-space",
            )


def _check_held(held: Sequence[ProgramCheck], step: Launch | Copy, effects: Effects) -> None:
    """No step writes where the result of an earlier check lies."""
    for item in effects.written:
        lost = next((check for check in held if check.word.overlaps(item)), None)
        if lost is not None:
            raise IRError(
                f"program: '{step_text(step)}' writes {item}, where the check of "
                f"'{lost.check.what}' of {lost.label} lies; expected memory of its own for it.",
                code="program-check",
            )


class _Since:
    """What the steps since a Sync touch and write."""

    def __init__(self) -> None:
        self._touched = TouchedMemory()
        self._written = TouchedMemory()

    def conflicts_with(self, effects: Effects) -> bool:
        """Whether a step may not overlap one of them."""
        return any(map(self._touched.meets, effects.written)) or any(
            map(self._written.meets, effects.touched)
        )

    def add(self, effects: Effects) -> None:
        """One step more."""
        for item in effects.touched:
            self._touched.add(item)
        for item in effects.written:
            self._written.add(item)


def _by_name(program: Program) -> dict[str, PrimFunc]:
    return {func.name: func for func in program.functions}


def _effects(functions: Mapping[str, PrimFunc], step: Launch | Copy) -> Effects:
    if isinstance(step, Copy):
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


def _check_slices(
    program: Program,
    step: Step,
    effects: Effects,
    readable: tuple[str, ...],
    writable: tuple[str, ...],
) -> None:
    for item in effects.touched:
        if not _exists(program, item):
            raise IRError(
                f"program: '{step_text(step)}' names {item}, which does not exist.",
                code="program-slice",
            )
        allowed = writable if item in effects.written else readable
        if item.space not in allowed:
            verb = "writes" if item in effects.written else "reads"
            raise IRError(
                f"program: '{step_text(step)}' {verb} {item}; expected memory of "
                f"{' or '.join(allowed)}.",
                code="program-space",
            )


def _exists(program: Program, item: Slice) -> bool:
    if item.space == "arena":
        return item.position >= 0 and item.position + item.bytes <= program.arena_bytes
    known = {"input": program.inputs, "constant": program.constants, "output": program.outputs}
    tensors = known.get(item.space, ())
    if not 0 <= item.position < len(tensors):
        return False
    tensor = tensors[item.position]
    return (tensor.dtype, tensor.bytes) == (item.dtype, item.bytes)


def live_slices(program: Program) -> Iterator[tuple[int, Slice, bool]]:
    """(step number, slice, whether it is written) for every use of the arena, in order."""
    functions = _by_name(program)
    for number, step in enumerate(program.body):
        if isinstance(step, Sync):
            continue
        effects = _effects(functions, step)
        for item in effects.touched:
            if item.space == "arena":
                yield number, item, item in effects.written
