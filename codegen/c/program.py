"""A program of LOWERED functions as C text: its kernels, each once, and one entry that launches
them in order, with a barrier exactly where the program has a Sync.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...tir.func import PrimFunc
from ...tir.program.program import (
    Copy,
    Launch,
    Program,
    Slice,
    Step,
    Sync,
    verify_program,
)
from ...tir.sizes import product_of
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
from .program_frame import COPY, ENTRY, LAUNCH, SIZE, SYNC
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
    body = tuple(_with_symbol(step, symbols) for step in program.body)
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


def _with_symbol(step: Step, symbols: Mapping[str, str]) -> Step:
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
    used = most = Scratch(0, 0)
    for step in body:
        if isinstance(step, Sync):
            used = Scratch(0, 0)
        elif isinstance(step, Launch):
            kernel = kernels[step.function]
            offsets.append(used)
            used = Scratch(
                used.bytes + _aligned(kernel.workspace_bytes),
                used.thread_bytes + _aligned(kernel.thread_workspace_bytes),
            )
            most = Scratch(max(most.bytes, used.bytes), max(most.thread_bytes, used.thread_bytes))
    return tuple(offsets), most


def _entry_text(artifact: ProgramArtifact) -> str:
    """The model's entry."""
    rest = iter(artifact.scratch)
    first = len(artifact.entry.parameters)
    names = size_names(artifact.dims)
    lines = [
        SIZE.format(name=names[dim], position=first + n) for n, dim in enumerate(artifact.dims)
    ]
    for step in artifact.body:
        match step:
            case Sync():
                lines.append(SYNC)
            case Copy():
                given = f"{_pointer(artifact, step.target)}, {_pointer(artifact, step.source)}"
                count = product_of((step.source.dtype.bytes, *step.source.shape))
                lines.append(f"    tw_copy({given}, {size_text(count, names)}, thread, threads);\n")
            case Launch():
                pointers = [_pointer(artifact, item) for item in step.arguments]
                pointers += (f"(void *)(intptr_t)({size_text(n, names)})" for n in step.sizes)
                pointers.append(_scratch_pointer(artifact, next(rest)))
                lines.append(
                    LAUNCH.format(
                        label=comment(step.label or step.function)[:_LABEL_LENGTH],
                        arguments=", ".join(pointers),
                        symbol=step.function,
                    )
                )
    scratch = first + len(artifact.dims)
    body = "".join(lines).rstrip("\n")
    copy = f"{COPY}\n" if any(isinstance(step, Copy) for step in artifact.body) else ""
    return copy + ENTRY.format(symbol=artifact.symbol, scratch=scratch, body=body)


def _pointer(artifact: ProgramArtifact, item: Slice) -> str:
    match item.space:
        case "arena":
            return f"scratch + {item.position}"
        case "input":
            position = item.position
        case "constant":
            position = len(artifact.inputs) + artifact.read.index(item.position)
        case _:
            position = len(artifact.inputs) + len(artifact.read) + item.position
    return f"args[{position}]"


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
