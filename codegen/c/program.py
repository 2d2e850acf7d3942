"""A program of LOWERED functions as C text: its kernels, each once, and one entry that launches
them in order, with a barrier exactly where the program has a Sync.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...tir.program import Copy, Launch, Program, Slice, Step, Sync, Tensor, verify_program
from ...tir.target import Target
from ..artifact import Entry, Parameter
from ..program_artifact import ProgramArtifact
from .build import entry
from .emit import emit_function
from .frame import prelude
from .names import mangle
from .program_frame import COPY, ENTRY, FUNCTION_TYPE, LAUNCH, SYNC
from .workspace import ALIGNMENT

_LABEL_LENGTH = 70


@dataclass(frozen=True, slots=True)
class Scratch:
    """Where a launch's scratch memory begins: `bytes + threads * thread_bytes` after the arena."""

    bytes: int
    thread_bytes: int


def emit_program(
    program: Program,
    target: Target,
    *,
    units: int = 1,
    static: bool = False,
    notes: Mapping[str, str] | None = None,
) -> ProgramArtifact:
    """The C text of a program.

    Requires: functions of stage LOWERED, for this target; Syncs where launches depend.
    units: translation units at most, of about equal length, so that they compile at once.
    static: one unit in which the model's entry alone is visible; the functions of `prepare` are
    left out.
    notes: a comment for a function, by name.
    Raises: IRError for a program that is not well formed.
    """
    verify_program(program)
    symbols = _symbols(program)
    prepares = {launch.function for launch in program.prepare}
    functions = [f for f in program.functions if not (static and f.name in prepares)]
    kernels = {f.name: entry(f, symbols[f.name]) for f in functions}
    texts = {
        f.name: _comment((notes or {}).get(f.name, ""))
        + emit_function(f, target, symbols[f.name], static=static)
        for f in functions
    }
    body = tuple(_with_symbol(step, symbols) for step in program.body)
    offsets, most = _scratch(body, {kernel.symbol: kernel for kernel in kernels.values()})
    arena = _aligned(program.arena_bytes)
    made = ProgramArtifact(
        name=program.name,
        symbol=program_symbol(program.name),
        sources=(),
        target=target,
        inputs=_parameters(program.inputs, "input"),
        constants=_constants(program),
        read=_read(program),
        outputs=_parameters(program.outputs, "output"),
        kernels=tuple(kernels.values()),
        body=body,
        prepare=tuple(replace(p, function=symbols[p.function]) for p in program.prepare),
        arena_bytes=arena,
        workspace_bytes=most.bytes,
        thread_workspace_bytes=most.thread_bytes,
    )
    main = _entry_text(made, offsets)
    return replace(made, sources=_units(made, main, list(texts.values()), 1 if static else units))


def program_symbol(name: str) -> str:
    """The symbol of the entry of a program called `name`."""
    return f"tw_model_{mangle(name)}"


def _symbols(program: Program) -> dict[str, str]:
    """Function name -> symbol, all different."""
    base = program_symbol(program.name)
    taken = {base}
    symbols: dict[str, str] = {}
    for func in program.functions:
        wanted = symbol = f"{base}_{mangle(func.name)}"
        count = 0
        while symbol in taken:
            count += 1
            symbol = f"{wanted}_{count}"
        taken |= {symbol, f"{symbol}_body"}
        symbols[func.name] = symbol
    return symbols


def _with_symbol(step: Step, symbols: Mapping[str, str]) -> Step:
    return replace(step, function=symbols[step.function]) if isinstance(step, Launch) else step


def _parameters(tensors: Sequence[Tensor], role: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(t.name, t.dtype, t.shape, role) for t in tensors)


def _constants(program: Program) -> tuple[Parameter, ...]:
    prepared = program.prepared
    return tuple(
        Parameter(t.name, t.dtype, t.shape, "prepared" if position in prepared else "constant")
        for position, t in enumerate(program.constants)
    )


def _read(program: Program) -> tuple[int, ...]:
    """The constants that a run reads."""
    slices: list[Slice] = []
    for step in program.body:
        match step:
            case Launch():
                slices += step.arguments
            case Copy():
                slices.append(step.source)
    return tuple(sorted({item.position for item in slices if item.space == "constant"}))


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


def _entry_text(artifact: ProgramArtifact, offsets: Sequence[Scratch]) -> str:
    """The model's entry."""
    rest = iter(offsets)
    lines: list[str] = []
    for step in artifact.body:
        match step:
            case Sync():
                lines.append(SYNC)
            case Copy():
                given = f"{_pointer(artifact, step.target)}, {_pointer(artifact, step.source)}"
                lines.append(f"    tw_copy({given}, {step.source.bytes}, thread, threads);\n")
            case Launch():
                pointers = [_pointer(artifact, item) for item in step.arguments]
                pointers.append(_scratch_pointer(artifact, next(rest)))
                lines.append(
                    LAUNCH.format(
                        label=_plain(step.label or step.function)[:_LABEL_LENGTH],
                        arguments=", ".join(pointers),
                        symbol=step.function,
                    )
                )
    scratch = len(artifact.entry.parameters)
    body = "".join(lines).rstrip("\n")
    return ENTRY.format(symbol=artifact.symbol, scratch=scratch, body=body)


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


def _units(artifact: ProgramArtifact, main: str, kernels: list[str], units: int) -> tuple[str, ...]:
    """The sources: the entry stands in the first; kernels go, the longest first, to the shortest."""
    parts: list[list[int]] = [[] for _ in range(max(1, min(units, len(kernels))))]
    sizes = [0] * len(parts)
    for index in sorted(range(len(kernels)), key=lambda index: -len(kernels[index])):
        shortest = sizes.index(min(sizes))
        parts[shortest].append(index)
        sizes[shortest] += len(kernels[index])
    called = dict.fromkeys(launch.function for launch in artifact.launches)
    copies = any(isinstance(step, Copy) for step in artifact.body)
    sources = []
    for number, part in enumerate(parts):
        texts = [kernels[index] for index in sorted(part)]
        if number == 0:
            declared = f"{FUNCTION_TYPE}tw_function {', '.join(called)};\n" if called else ""
            if len(parts) > 1:
                texts.insert(0, declared)
            texts += [COPY] if copies else []
            texts.append(main)
        body = "\n".join(texts)
        head = f"/* {_plain(artifact.name)} for {artifact.target}, generated by tilewright. */\n"
        sources.append(f"{head}{prelude(artifact.target, body)}\n{body}")
    return tuple(sources)


def _comment(text: str) -> str:
    lines = [_plain(line) for line in text.splitlines()]
    return (
        "".join([f"/* {lines[0]}", *(f"\n * {line}" for line in lines[1:]), " */\n"])
        if lines
        else ""
    )


def _plain(text: str) -> str:
    """Text that can stand in a comment, whatever a model calls its nodes."""
    return re.sub(r"[^A-Za-z0-9 _.,:;=+()\[\]<>'-]", "_", text)
