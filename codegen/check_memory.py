"""Check the memory of a model's run by walking through its artifact, when it is written and when it
is loaded: nothing of what the planner or the back end thought is asked.

- Every launch and copy finds in the arena just what one step before it wrote there, whole.
- What a step writes overlaps nothing that it reads, but for the very same place.
- Between two barriers no step touches what another one writes.
- Every launch's scratch memory lies inside of what a run is given behind the arena, and apart from
  that of the launches that may run beside it, on any number of threads.
- Inputs and constants are only read; every output is written; `prepare` writes each prepared
  constant once, and reads what is there by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from ..tir.errors import IRError
from ..tir.program.byte_owners import ByteOwners
from ..tir.program.program import (
    Copy,
    Effects,
    Launch,
    Slice,
    Step,
    Sync,
    launch_effects,
    step_text,
)
from ..tir.program.touched_memory import TouchedMemory
from .artifact import Entry
from .program_artifact import ProgramArtifact, Scratch


def check_memory(artifact: ProgramArtifact) -> None:
    """Walk through the steps of `prepare` and of a run. Raises: IRError naming the step."""
    kernels = {kernel.symbol: kernel for kernel in artifact.kernels}
    _check_prepare(artifact, kernels)
    _Run(artifact, kernels).walk()
    if artifact.scratch:
        _check_scratch(artifact, kernels)


class _Run:
    """A walk through a run. touched, written: by the steps after the last barrier."""

    def __init__(self, artifact: ProgramArtifact, kernels: dict[str, Entry]) -> None:
        self.artifact = artifact
        self.kernels = kernels
        self.arena = ByteOwners()
        self.outputs: set[int] = set()
        self.touched, self.written = TouchedMemory(), TouchedMemory()

    def walk(self) -> None:
        """All steps, then the outputs."""
        for step in self.artifact.body:
            if isinstance(step, Sync):
                self.touched, self.written = TouchedMemory(), TouchedMemory()
                continue
            effects = _effects(step, self.kernels)
            for item in effects.read:
                self._check_read(item, step)
            for item in effects.written:
                self._check_write(item, effects.read, step)
            for item in effects.written:
                self._write(item)
                self.written.add(item)
            for item in effects.touched:
                self.touched.add(item)
        for position, parameter in enumerate(self.artifact.outputs):
            missing = position not in self.outputs and 0 not in parameter.shape
            if missing and self.artifact.body:
                _refuse(f"nothing writes output '{parameter.name}'")

    def _check_read(self, item: Slice, step: Step) -> None:
        if self.written.meets(item):
            _refuse(f"'{step_text(step)}' reads {item} beside what writes it, without a barrier")
        if item.space == "arena" and not self.arena.holds(item.position, _end(item), _place(item)):
            _refuse(f"'{step_text(step)}' reads {item}, which is not what was written there")
        if item.space == "output" and item.bytes and item.position not in self.outputs:
            _refuse(f"'{step_text(step)}' reads {item}, which nothing has written")

    def _check_write(self, item: Slice, read: Sequence[Slice], step: Step) -> None:
        if item.space not in ("arena", "output"):
            _refuse(f"'{step_text(step)}' writes {item}, which a run only reads")
        if item.space == "arena" and _end(item) > self.artifact.arena_bytes:
            _refuse(
                f"'{step_text(step)}' writes {item}, beyond the {self.artifact.arena_bytes} bytes "
                "of the arena"
            )
        if any(item.overlaps(other) and _place(item) != _place(other) for other in read):
            _refuse(f"'{step_text(step)}' writes {item} over what it reads")
        if self.touched.meets(item):
            _refuse(f"'{step_text(step)}' writes {item} beside what uses it, without a barrier")

    def _write(self, item: Slice) -> None:
        if item.space == "output":
            self.outputs.add(item.position)
        else:
            self.arena.write(item.position, _end(item), _place(item))


def _end(item: Slice) -> int:
    return item.position + item.bytes


def _place(item: Slice) -> tuple[str, int, int]:
    return item.space, item.position, item.bytes


def _effects(step: Launch | Copy, kernels: dict[str, Entry]) -> Effects:
    if isinstance(step, Copy):
        return step.effects
    return launch_effects(kernels[step.function].parameters, step)


def _check_prepare(artifact: ProgramArtifact, kernels: dict[str, Entry]) -> None:
    """What `prepare` reads is bound, or was prepared; each prepared constant that a run reads is
    written, once.
    """
    there = {n for n, p in enumerate(artifact.constants) if p.role == "constant"}
    for launch in artifact.prepare:
        effects = _effects(launch, kernels)
        for item in effects.read:
            if item.position not in there:
                _refuse(f"'{step_text(launch)}' reads {item} before it is prepared")
        for item in effects.written:
            if item.position in there:
                _refuse(f"'{step_text(launch)}' writes {item}, which is there already")
        there |= {item.position for item in effects.written}
    for position in artifact.read:
        if position not in there:
            name = artifact.constants[position].name
            _refuse(f"a run reads '{name}', which nothing prepares")


def _check_scratch(artifact: ProgramArtifact, kernels: dict[str, Entry]) -> None:
    """Each launch has scratch memory of its own, of the size that its kernel asks for.

    Sizes and offsets are b + t * threads: what holds for both numbers holds for any threads.
    """
    rest = iter(artifact.scratch)
    whole = Scratch(artifact.workspace_bytes, artifact.thread_workspace_bytes)
    beside: list[tuple[Scratch, Scratch]] = []
    for step in (*artifact.body, Sync()):
        if isinstance(step, Launch):
            start, kernel = next(rest), kernels[step.function]
            end = Scratch(
                start.bytes + kernel.workspace_bytes,
                start.thread_bytes + kernel.thread_workspace_bytes,
            )
            if min(start.bytes, start.thread_bytes) < 0 or not _before(end, whole):
                _refuse(f"the scratch memory of '{step_text(step)}' lies outside of the run's")
            beside.append((start, end))
        elif isinstance(step, Sync):
            beside.sort(key=lambda pair: (pair[0].bytes, pair[0].thread_bytes))
            if not all(_before(one, other) for (_, one), (other, _) in pairwise(beside)):
                _refuse("two launches that may run at once have the same scratch memory")
            beside = []


def _before(one: Scratch, other: Scratch) -> bool:
    return one.bytes <= other.bytes and one.thread_bytes <= other.thread_bytes


def _refuse(problem: str) -> NoReturn:
    raise IRError(f"memory of a run: {problem}.", code="memory-run")
