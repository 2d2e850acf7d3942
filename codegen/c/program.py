"""A program of LOWERED functions as C text: its kernels, each once, and one entry that launches
them in order, with a barrier exactly where the program has a Sync. A Branch is an `if`, a Repeat a
`for`: all threads read what they ask, and go the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent

from ...tir.dim import Dim
from ...tir.func import PrimFunc
from ...tir.program.flow import with_actions
from ...tir.program.program import (
    Action,
    Branch,
    Copy,
    KeepLargest,
    Launch,
    Program,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
    actions,
)
from ...tir.program.syncs import verify_program
from ...tir.sizes import Size, product_of
from ...tir.target.target import Target
from ..artifact import Entry
from ..check_memory import check_memory
from ..program_artifact import (
    ProgramArtifact,
    Scratch,
    constant_parameters,
    constants_of,
    parameters_with,
)
from ..text.comments import comment
from ..text.names import mangle
from .build import entry, using
from .emit import emit_function
from .program_frame import (
    COPY,
    COUNT,
    ELSE,
    END,
    ENTRY,
    FOR,
    IF,
    ITERATION,
    LARGEST,
    LAUNCH,
    READ_SIZE,
    SIZE,
    SYNC,
)
from .size_text import size_names, size_text
from .workspace import ALIGNMENT

_LABEL_LENGTH = 70


@dataclass(frozen=True, slots=True)
class KernelText:
    """One function of a program as C: what it is called, its definitions, and the target with the
    features that they use.
    """

    symbol: str
    text: str
    target: Target


class KernelTexts:
    """The functions of a program as C, each written as soon as it is there."""

    def __init__(self, name: str, target: Target) -> None:
        """For the program called `name`."""
        self._target = target
        self._base = program_symbol(name)
        self._taken = {self._base}
        self._written: dict[str, KernelText] = {}

    def add(self, func: PrimFunc, note: str = "") -> KernelText:
        """Write a function of stage LOWERED, with a comment above it."""
        wanted = symbol = f"{self._base}_{mangle(func.name)}"
        count = 0
        while symbol in self._taken or f"{symbol}_body" in self._taken:  # emission adds the second
            count += 1
            symbol = f"{wanted}_{count}"
        self._taken |= {symbol, f"{symbol}_body"}
        target = using(self._target, func)
        text = _comment(note) + emit_function(func, target, symbol)
        self._written[func.name] = made = KernelText(symbol, text, target)
        return made

    def __getitem__(self, name: str) -> KernelText:
        """What was written of the function called `name`."""
        return self._written[name]


def emit_program(
    program: Program, target: Target, *, texts: KernelTexts | None = None
) -> ProgramArtifact:
    """The C definitions of a program.

    Requires: functions of stage LOWERED, for this target; Syncs where launches depend.
    texts: what was written of them already.
    Raises: IRError for a program that is not well formed.
    """
    verify_program(program)
    if texts is None:
        texts = KernelTexts(program.name, target)
        for func in program.functions:
            texts.add(func)
    written = {f.name: texts[f.name] for f in program.functions}
    symbols = {name: made.symbol for name, made in written.items()}
    kernels = {f.name: entry(f, symbols[f.name]) for f in program.functions}
    body = with_actions(program.body, lambda step: _with_symbol(step, symbols))
    offsets, most = _scratch(body, {kernel.symbol: kernel for kernel in kernels.values()})
    made = ProgramArtifact(
        name=program.name,
        symbol=program_symbol(program.name),
        target=using(target, *program.functions),
        inputs=parameters_with("input", program.inputs),
        constants=constant_parameters(program),
        read=constants_of(program.body),
        outputs=parameters_with("output", program.outputs),
        kernels=tuple(kernels.values()),
        texts=tuple(text.text for text in written.values()),
        main="",
        body=body,
        prepare=tuple(replace(p, function=symbols[p.function]) for p in program.prepare),
        scratch=offsets,
        arena_bytes=_aligned(program.arena_bytes),
        workspace_bytes=most.bytes,
        thread_workspace_bytes=most.thread_bytes,
    )
    check_memory(made)
    return replace(made, main=_entry_text(made))


def program_symbol(name: str) -> str:
    """The symbol of the entry of a program called `name`."""
    return f"tw_model_{mangle(name)}"


def _with_symbol(step: Action, symbols: Mapping[str, str]) -> Action:
    return replace(step, function=symbols[step.function]) if isinstance(step, Launch) else step


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _scratch(
    body: Sequence[Step], kernels: Mapping[str, Entry]
) -> tuple[tuple[Scratch, ...], Scratch]:
    """Where each launch's scratch memory begins, and what all need; launches that may overlap have
    memory of their own.
    """
    offsets: list[Scratch] = []
    most = Scratch(0, 0)

    def place(steps: Sequence[Step], used: Scratch) -> Scratch:
        nonlocal most
        for step in steps:
            match step:
                case Sync():
                    used = Scratch(0, 0)
                case Branch():
                    used = _larger(place(step.then, used), place(step.otherwise, used))
                case Repeat():
                    place(step.body, used)  # ends with a Sync
                case Launch():
                    kernel = kernels[step.function]
                    offsets.append(used)
                    used = Scratch(
                        used.bytes + _aligned(kernel.workspace_bytes),
                        used.thread_bytes + _aligned(kernel.thread_workspace_bytes),
                    )
                    most = _larger(most, used)
        return used

    place(body, Scratch(0, 0))
    return tuple(offsets), most


def _larger(one: Scratch, other: Scratch) -> Scratch:
    return Scratch(max(one.bytes, other.bytes), max(one.thread_bytes, other.thread_bytes))


def _entry_text(artifact: ProgramArtifact) -> str:
    """The model's entry."""
    read = (step.dim for step in artifact.sizes_read)
    first, names = len(artifact.entry.parameters), size_names((*artifact.dims, *read))
    sizes = (
        SIZE.format(name=names[dim], position=first + n) for n, dim in enumerate(artifact.dims)
    )
    lines = _steps_text(artifact, artifact.body, iter(artifact.scratch), names)
    body = indent("".join([*sizes, *lines]).rstrip("\n"), "    ")
    copy = any(isinstance(step, Copy) for step in actions(artifact.body))
    text = ENTRY.format(symbol=artifact.symbol, scratch=first + len(artifact.dims), body=body)
    return f"{COPY}\n{text}" if copy else text


def _steps_text(
    artifact: ProgramArtifact,
    steps: Sequence[Step],
    rest: Iterator[Scratch],
    names: Mapping[Dim, str],
) -> Iterator[str]:
    """Lines for steps. rest: where the scratch memory of the launches to come begins; names: what
    the sizes are called that the run decides.
    """

    def pointer(item: Slice) -> str:
        return _pointer(artifact, item, names)

    def truth(item: Slice) -> str:
        return f"*(const uint8_t *)({pointer(item)})"

    def block(inside: Sequence[Step]) -> str:
        return indent("".join(_steps_text(artifact, inside, rest, names)), "    ")

    for step in steps:
        match step:
            case Sync():
                yield SYNC
            case Copy():
                ends = f"{pointer(step.target)}, {pointer(step.source)}"
                count = product_of((step.source.dtype.bytes, *step.source.shape))
                yield f"tw_copy({ends}, {size_text(count, names)}, thread, threads);\n"
            case WriteIteration():
                yield ITERATION.format(loop=step.loop, target=pointer(step.target))
            case KeepLargest():
                yield LARGEST.format(source=pointer(step.source), target=pointer(step.target))
            case ReadSize():
                yield READ_SIZE.format(name=names[step.dim], source=pointer(step.source))
            case Launch():
                given = [pointer(item) for item in step.arguments]
                given += (f"(void *)(intptr_t)({size_text(n, names)})" for n in step.sizes)
                given.append(_scratch_pointer(artifact, next(rest)))
                yield LAUNCH.format(
                    label=_label(step.label or step.function),
                    arguments=", ".join(given),
                    symbol=step.function,
                )
            case Branch():
                then = block(step.then)
                otherwise = block(step.otherwise)
                yield IF.format(
                    label=_label(step.label), condition=truth(step.condition), then=then
                )
                yield ELSE.format(otherwise=otherwise) if otherwise else END
            case Repeat():
                most = _most(step, names)
                read, tests = "", [] if most is None else [f"i{step.loop} < {most}"]
                if isinstance(step.count, Slice):
                    read = COUNT.format(most=most, count=pointer(step.count))
                if step.condition is not None:
                    tests.append(truth(step.condition))
                yield FOR.format(
                    label=_label(step.label),
                    read=read,
                    number=f"i{step.loop}",
                    until=" && ".join(tests),
                )
                yield block(step.body)
                yield END


def _most(step: Repeat, names: Mapping[Dim, str]) -> str | None:
    """How often a loop runs at most: what its data say is read once, into a variable."""
    if isinstance(step.count, Slice):
        return f"n{step.loop}"
    return None if step.count is None else size_text(step.count, names)


def _label(text: str) -> str:
    return comment(text)[:_LABEL_LENGTH]


def _pointer(artifact: ProgramArtifact, item: Slice, names: Mapping[Dim, str]) -> str:
    row = _row(item, names)
    match item.space:
        case "arena":
            return f"scratch + {item.position}{row}"
        case "input":
            position = item.position
        case "constant":
            position = len(artifact.inputs) + artifact.read.index(item.position)
        case _:
            position = len(artifact.inputs) + len(artifact.read) + item.position
    return f"(char *)args[{position}]{row}" if row else f"args[{position}]"


def _row(item: Slice, names: Mapping[Dim, str]) -> str:
    """What is added to the address of an array for the row that an iteration is at."""
    terms, size = [], product_of((item.dtype.bytes, *item.shape))
    for move in reversed(item.moves):
        number = f"i{move.loop}"
        if move.reverse:
            is_open = isinstance(move.rows, Size)
            last = f"{size_text(move.rows, names)} - 1" if is_open else str(move.rows - 1)
            number = f"({last} - {number})"
        factor = size_text(size, names)
        if isinstance(size, Size) and len(size.terms) > 1:
            factor = f"({factor})"
        terms.append(f" + {number} * {factor}")
        size = size * move.rows
    return "".join(reversed(terms))


def _scratch_pointer(artifact: ProgramArtifact, offset: Scratch) -> str:
    start = artifact.arena_bytes + offset.bytes
    text = f"scratch + {start}"
    return text if not offset.thread_bytes else f"{text} + (size_t)threads * {offset.thread_bytes}"


def _comment(text: str) -> str:
    lines = [comment(line) for line in text.splitlines()]
    return (
        "".join([f"/* {lines[0]}", *(f"\n * {line}" for line in lines[1:]), " */\n"])
        if lines
        else ""
    )
