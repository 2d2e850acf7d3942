"""Check the memory of a model's run by walking through its artifact, when it is written and when it
is loaded: nothing of what the planner or the back end thought is asked.

- Every launch and copy finds in the arena just what one step before it wrote there, whole.
- What a step writes overlaps nothing that it reads, but for the very same place.
- Between two barriers no step touches what another one writes.
- Every launch's scratch memory lies inside of what a run is given behind the arena, and apart from
  that of the launches that may run beside it, on any number of threads.
- Of what is written in one branch alone, or in a loop that may not run, nothing is there behind it.
- Inputs and constants are only read; every output is written; `prepare` writes each prepared
  constant once, and reads what is there by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..tir.errors import IRError
from ..tir.program.byte_owners import ByteOwners
from ..tir.program.program import (
    Action,
    Branch,
    Effects,
    Launch,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
    launch_effects,
    step_text,
)
from ..tir.program.touched_memory import TouchedMemory
from .artifact import Entry
from .program_artifact import ProgramArtifact, Scratch, slices_of


def check_memory(artifact: ProgramArtifact) -> None:
    """Walk through the steps of `prepare` and of a run. Raises: IRError naming the step."""
    kernels = {kernel.symbol: kernel for kernel in artifact.kernels}
    _check_prepare(artifact, kernels)
    _Run(artifact, kernels).walk()
    if artifact.scratch:
        _check_scratch(artifact, kernels)


class _Run:
    """A walk through a run."""

    def __init__(self, artifact: ProgramArtifact, kernels: dict[str, Entry]) -> None:
        self.artifact = artifact
        self.kernels = kernels
        self.state = _State(ByteOwners(), frozenset(), TouchedMemory(), TouchedMemory())
        self.loops: frozenset[int] = frozenset()  # those around a step

    def walk(self) -> None:
        """All steps, then the outputs."""
        self._steps(self.artifact.body)
        for position, parameter in enumerate(self.artifact.outputs):
            missing = position not in self.state.outputs and 0 not in parameter.shape
            if missing and self.artifact.body:
                _refuse(f"nothing writes output '{parameter.name}'")

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            match step:
                case Sync():
                    self.state.touched, self.state.written = TouchedMemory(), TouchedMemory()
                case Branch():
                    self._ask((step.condition,), step)
                    before = self.state.copy()
                    self._steps(step.then)
                    after, self.state = self.state, before
                    self._steps(step.otherwise)
                    self.state.meet(after)
                case Repeat():
                    self._repeat(step)
                case _:
                    self._action(step)

    def _repeat(self, step: Repeat) -> None:
        """What an iteration finds is what the first one, and what each one after another, finds: it
        writes what it writes, so twice tells all.
        """
        self._ask(step.before_first, step)
        arrays = [i for i in slices_of(step) if any(m.loop == step.loop for m in i.moves)]
        rows = {m.rows for item in arrays for m in item.moves if m.loop == step.loop}
        if not rows <= {step.count}:
            _refuse(f"'{step_text(step)}' goes through arrays of {sorted(rows, key=str)} rows")
        before, around = self.state.copy(), self.loops
        self.loops |= {step.loop}
        self._steps(step.body)
        if not step.body or not isinstance(step.body[-1], Sync):
            _refuse(f"an iteration of '{step_text(step)}' ends without a barrier")
        self.state.meet(before)
        again = self.state.copy()
        if step.condition is not None:
            self._ask((step.condition,), step)
        self._steps(step.body)
        self.loops = around
        if not step.always_runs:
            done, self.state = self.state, again
            if step.condition is None:
                self.state.keep_rows(arrays, done)

    def _ask(self, items: Sequence[Slice], step: Step) -> None:
        """Every thread reads what a branch or a loop asks."""
        for item in items:
            self._check_read(item, step)
            self.state.touched.add(item)

    def _action(self, step: Action) -> None:
        effects = _effects(step, self.kernels)
        loops = {move.loop for item in effects.touched for move in item.moves}
        loops |= {step.loop} if isinstance(step, WriteIteration) else set()
        if not loops <= self.loops:
            _refuse(f"'{step_text(step)}' follows a loop that it is not in")
        for item in effects.read:
            self._check_read(item, step)
        for item in effects.written:
            self._check_write(item, effects.read, step)
        for item in effects.written:
            self._write(item)
            self.state.written.add(item)
        for item in effects.touched:
            self.state.touched.add(item)

    def _check_read(self, item: Slice, step: Step) -> None:
        state = self.state
        if state.written.meets(item):
            _refuse(f"'{step_text(step)}' reads {item} beside what writes it, without a barrier")
        if item.space == "arena" and not state.arena.holds(item.position, _end(item), _place(item)):
            _refuse(f"'{step_text(step)}' reads {item}, which is not what was written there")
        if item.space == "output" and item.bytes and item.position not in state.outputs:
            _refuse(f"'{step_text(step)}' reads {item}, which nothing has written")

    def _check_write(self, item: Slice, read: Sequence[Slice], step: Step) -> None:
        if item.space not in ("arena", "output"):
            _refuse(f"'{step_text(step)}' writes {item}, which a run only reads")
        if item.space == "arena" and _end(item) > self.artifact.arena_bytes:
            _refuse(
                f"'{step_text(step)}' writes {item}, beyond the {self.artifact.arena_bytes} bytes "
                "of the arena"
            )
        same = (item.moves, _place(item))
        if any(item.overlaps(other) and same != (other.moves, _place(other)) for other in read):
            _refuse(f"'{step_text(step)}' writes {item} over what it reads")
        if self.state.touched.meets(item):
            _refuse(f"'{step_text(step)}' writes {item} beside what uses it, without a barrier")

    def _write(self, item: Slice) -> None:
        if item.space == "output":
            self.state.outputs |= {item.position}
        else:
            self.state.arena.write(item.position, _end(item), _place(item))


@dataclass(slots=True)
class _State:
    """What a run has done so far: the place that each byte of the arena was written for, the
    outputs that were written; what was touched and written after the last barrier. A row counts as
    its whole array.
    """

    arena: ByteOwners
    outputs: frozenset[int]
    touched: TouchedMemory
    written: TouchedMemory

    def copy(self) -> _State:
        """The same, for steps that go on in another way."""
        touched, written = self.touched.copy(), self.written.copy()
        return _State(self.arena.copy(), self.outputs, touched, written)

    def keep_rows(self, arrays: Sequence[Slice], done: _State) -> None:
        """What was written of arrays that a loop which may not run goes through is there behind it:
        where it does not run they have no rows. done: where it ran.
        """
        for item in arrays:
            if item.space == "output" and item.position in done.outputs:
                self.outputs |= {item.position}
            held = (item.position, _end(item), _place(item))
            if item.space == "arena" and done.arena.holds(*held):
                self.arena.write(*held)

    def meet(self, other: _State) -> None:
        """What is true where one of two ways was gone."""
        self.arena.meet(other.arena)
        self.outputs &= other.outputs
        self.touched.update(other.touched)
        self.written.update(other.written)


def _end(item: Slice) -> int:
    return item.position + item.reach


def _place(item: Slice) -> tuple[str, int, int]:
    return item.space, item.position, item.reach


def _effects(step: Action, kernels: dict[str, Entry]) -> Effects:
    if not isinstance(step, Launch):
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

    def walk(steps: Sequence[Step], beside: list[_Span]) -> list[_Span]:
        """Walk on from where `beside` may still run; what may still run at the end."""
        for step in steps:
            match step:
                case Sync():
                    beside = []
                case Branch():
                    ways = walk(step.then, [*beside]), walk(step.otherwise, [*beside])
                    beside = [*ways[0], *(span for span in ways[1] if span not in ways[0])]
                case Repeat():
                    walk(step.body, [*beside])  # ends with a barrier
                case Launch():
                    kernel = kernels[step.function]
                    start = next(rest)
                    end = Scratch(
                        start.bytes + kernel.workspace_bytes,
                        start.thread_bytes + kernel.thread_workspace_bytes,
                    )
                    if min(start.bytes, start.thread_bytes) < 0 or not _before(end, whole):
                        _refuse(
                            f"the scratch memory of '{step_text(step)}' lies outside of the run's"
                        )
                    span = _Span(start, end)
                    if not all(map(span.is_apart_from, beside)):
                        _refuse("two launches that may run at once have the same scratch memory")
                    beside.append(span)
        return beside

    walk(artifact.body, [])


@dataclass(frozen=True, slots=True)
class _Span:
    """The scratch memory of a launch."""

    start: Scratch
    end: Scratch

    def is_apart_from(self, other: _Span) -> bool:
        """Whether the two share nothing, on any number of threads."""
        return _before(self.end, other.start) or _before(other.end, self.start)


def _before(one: Scratch, other: Scratch) -> bool:
    return one.bytes <= other.bytes and one.thread_bytes <= other.thread_bytes


def _refuse(problem: str) -> NoReturn:
    raise IRError(f"memory of a run: {problem}.", code="memory-run")
