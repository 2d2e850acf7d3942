"""Where the threads of a run wait for each other: Syncs are placed, and what is placed is verified.

A step waits for those since the last Sync where it touches what one of them wrote, or writes what
one of them touched. What a branch or a loop asks is read by every thread, so it waits like a step.
An iteration ends with a Sync: what the next one does depends on nothing before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ..dim import Dim
from ..errors import IRError
from ..sizes import dims_in
from .program import (
    Action,
    Branch,
    Effects,
    KeepLargest,
    Launch,
    Program,
    ProgramCheck,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
    checks_of,
    effects_of,
    functions_by_name,
    kept_words,
    step_text,
)
from .touched_memory import TouchedMemory


def place_syncs(program: Program) -> Program:
    """The program with a Sync wherever a step touches what one since the last Sync wrote, or writes
    what one touched, at the end of each iteration, and nowhere else. The same program when they
    stand there already.
    """
    body = _Placer(program).placed(program.body, _Since())
    return program if body == program.body else replace(program, body=body)


def verify_program(program: Program) -> None:
    """Check that every step is well formed, that steps without a Sync between them are independent,
    and that nothing takes the place of a check's result.

    Raises: IRError naming the step.
    """
    functions = functions_by_name(program)
    for launch in program.prepare:
        effects = effects_of(functions, launch)
        _check_slices(program, launch, effects, ("constant",), ("constant",))
    _Verifier(program).steps(program.body, _Since(), {}, nested=False)


class _Since:
    """What the steps since a Sync touch and write, and these steps."""

    def __init__(self) -> None:
        self._touched = TouchedMemory()
        self._written = TouchedMemory()
        self._steps: list[tuple[Step, Effects]] = []

    def conflicts_with(self, effects: Effects) -> bool:
        """Whether a step may not overlap one of them."""
        return any(map(self._touched.meets, effects.written)) or any(
            map(self._written.meets, effects.touched)
        )

    def in_conflict(self, effects: Effects) -> Step:
        """The first step that one with these effects may not overlap."""
        return next(step for step, other in self._steps if effects.conflicts_with(other))

    def add(self, step: Step, effects: Effects) -> None:
        """One step more."""
        for item in effects.touched:
            self._touched.add(item)
        for item in effects.written:
            self._written.add(item)
        self._steps.append((step, effects))

    def clear(self) -> None:
        """A Sync."""
        self._touched, self._written, self._steps = TouchedMemory(), TouchedMemory(), []

    def copy(self) -> _Since:
        """The same, for steps that go on in another way."""
        made = _Since()
        made.join(self)
        return made

    def join(self, other: _Since) -> None:
        """The steps of one of several ways."""
        self._touched.update(other._touched)
        self._written.update(other._written)
        known = {id(step) for step, _ in self._steps}
        self._steps += [pair for pair in other._steps if id(pair[0]) not in known]


def _asked(step: Branch | Repeat) -> Effects:
    """What every thread reads to know how a run goes on."""
    read = (step.condition,) if isinstance(step, Branch) else step.before_first
    return Effects(read, ())


class _Placer:
    def __init__(self, program: Program) -> None:
        self._functions = functions_by_name(program)

    def placed(self, steps: Sequence[Step], since: _Since) -> tuple[Step, ...]:
        """The steps with their Syncs; `since` goes on to their end."""
        found: list[Step] = []
        for step in steps:
            if isinstance(step, Sync):
                continue
            if isinstance(step, Branch | Repeat):
                effects = _asked(step)
            else:
                effects = effects_of(self._functions, step)
            if since.conflicts_with(effects):
                found.append(Sync())
                since.clear()
            since.add(step, effects)
            match step:
                case Branch():
                    found.append(self._branch(step, since))
                case Repeat():
                    found += self._loop(step, since)
                case _:
                    found.append(step)
        return tuple(found)

    def _branch(self, step: Branch, since: _Since) -> Step:
        ways = since.copy(), since.copy()
        then = self.placed(step.then, ways[0])
        otherwise = self.placed(step.otherwise, ways[1])
        since.clear()
        since.join(ways[0])
        since.join(ways[1])
        if (then, otherwise) == (step.then, step.otherwise):
            return step
        return replace(step, then=then, otherwise=otherwise)

    def _loop(self, step: Repeat, since: _Since) -> Iterator[Step]:
        """A Sync that only the first iteration needs stands before the loop."""
        later = _Since()
        later.add(step, _asked(step))
        body = self.placed(step.body, later)
        if self.placed(step.body, since.copy()) != body:
            yield Sync()
            since.clear()
            since.add(step, _asked(step))
        if step.always_runs:
            since.clear()
        body = (*body, Sync())
        yield step if body == step.body else replace(step, body=body)


Loops = Mapping[int, Repeat]  # those around a step, by their numbers


class _Verifier:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._functions = functions_by_name(program)
        self._kept = kept_words(program.body)
        self._held: list[ProgramCheck] = []
        self._loops: set[int] = set()  # all so far
        self._dims: set[Dim] = {*program.dims}  # that are known so far

    def steps(self, steps: Sequence[Step], since: _Since, loops: Loops, *, nested: bool) -> None:
        """Check steps within the loops `loops`; `since` goes on to their end. nested: whether they
        may run several times or not at all.
        """
        for step in steps:
            match step:
                case Sync():
                    since.clear()
                case Branch():
                    self._asked(step, since, loops)
                    ways = [since.copy(), since.copy()]
                    for way, body in zip(ways, (step.then, step.otherwise), strict=True):
                        self.steps(body, way, loops, nested=True)
                    since.clear()
                    for way in ways:
                        since.join(way)
                case Repeat():
                    self._asked(step, since, loops)
                    self._check_loop(step)
                    self.steps(step.body, since.copy(), {**loops, step.loop: step}, nested=True)
                    if step.always_runs:
                        since.clear()
                case _:
                    self._action(step, since, loops, nested=nested)

    def _action(self, step: Action, since: _Since, loops: Loops, *, nested: bool) -> None:
        effects = effects_of(self._functions, step)
        _check_slices(self._program, step, effects, _READABLE, _WRITABLE)
        self._check_rows(step, effects, loops)
        self._check_held(step, effects)
        self._check_dims(step, effects, nested=nested)
        if isinstance(step, Launch):
            func = self._functions[step.function]
            found = tuple(checks_of(func, step, self._kept))
            for item in found:
                self._check_word(item, step, nested=nested)
            self._held += found
        self._check_apart(step, effects, since)
        since.add(step, effects)

    def _asked(self, step: Branch | Repeat, since: _Since, loops: Loops) -> None:
        effects = _asked(step)
        _check_slices(self._program, step, effects, _READABLE, ())
        self._check_rows(step, effects, loops)
        kinds = [(step.condition, "bool")] if step.condition is not None else []
        if isinstance(step, Repeat) and isinstance(step.count, Slice):
            kinds.append((step.count, "int64"))
        for item, kind in kinds:
            if str(item.dtype) != kind or item.bytes != item.dtype.bytes:
                raise IRError(
                    f"program: '{step_text(step)}' asks {item}; expected one {kind}.",
                    code="program-asked",
                )
        self._check_apart(step, effects, since)
        since.add(step, effects)

    def _check_apart(self, step: Step, effects: Effects, since: _Since) -> None:
        if since.conflicts_with(effects):
            other = since.in_conflict(effects)
            raise IRError(
                f"program: '{step_text(step)}' and '{step_text(other)}' touch the same memory; "
                "expected a sync between them.",
                code="program-sync",
            )

    def _check_loop(self, step: Repeat) -> None:
        if step.loop in self._loops:
            raise IRError(
                f"program: two loops have the number {step.loop}; expected one each.",
                code="program-loop",
            )
        self._loops.add(step.loop)
        if not step.body or not isinstance(step.body[-1], Sync):
            raise IRError(
                f"program: an iteration of '{step_text(step)}' ends without a sync; expected one, "
                "so that the next one finds all that it did.",
                code="program-iteration",
            )

    def _check_rows(self, step: Step, effects: Effects, loops: Loops) -> None:
        """Rows and numbers of iterations are those of the loops around; there is a row for each
        iteration.
        """
        used = {move.loop for item in effects.touched for move in item.moves}
        used |= {step.loop} if isinstance(step, WriteIteration) else set()
        if not used <= loops.keys():
            raise IRError(
                f"program: '{step_text(step)}' follows loop {min(used - loops.keys())}; expected "
                "one that it is in.",
                code="program-row",
            )
        for move in (move for item in effects.touched for move in item.moves):
            if loops[move.loop].count != move.rows:
                raise IRError(
                    f"program: '{step_text(step)}' follows the rows of an array of {move.rows} "
                    f"through '{step_text(loops[move.loop])}'; expected as many iterations.",
                    code="program-rows",
                )

    def _check_dims(self, step: Action, effects: Effects, *, nested: bool) -> None:
        """A size is read once, in each run, and before a step takes it."""
        if isinstance(step, ReadSize):
            source = step.source
            single = str(source.dtype) == "int64" and source.bytes == source.dtype.bytes
            if nested or not single or step.dim in self._dims:
                raise IRError(
                    f"program: '{step_text(step)}' reads a size; expected one int64, outside of "
                    "branches and loops, and each size once.",
                    code="program-read-size",
                )
            self._dims.add(step.dim)
        taken = step.sizes if isinstance(step, Launch) else ()
        shapes = (size for item in effects.touched for size in item.shape)
        for dim in dims_in((*taken, *shapes)):
            if dim not in self._dims:
                raise IRError(
                    f"program: '{step_text(step)}' takes the size '{dim.name}', which nothing "
                    "before it tells.",
                    code="program-size-early",
                )

    def _check_word(self, item: ProgramCheck, step: Launch, *, nested: bool) -> None:
        """The results of checks lie in the arena, where who runs a program finds them: of a launch
        in a branch or a loop what a KeepLargest keeps.
        """
        if item.word.space != "arena":
            raise IRError(
                f"program: '{step_text(step)}' leaves the check of '{item.check.what}' in "
                f"{item.word}; expected memory of the arena.",
                code="program-check-space",
            )
        if nested and item.word in step.arguments:
            raise IRError(
                f"program: '{step_text(step)}' may run several times or not at all; expected the "
                f"largest result of its check of '{item.check.what}' to be kept.",
                code="program-check-kept",
            )

    def _check_held(self, step: Action, effects: Effects) -> None:
        """No step writes where the result of an earlier check lies."""
        for item in effects.written:
            lost = next((check for check in self._held if check.word.overlaps(item)), None)
            if lost is not None and not (isinstance(step, KeepLargest) and lost.word == item):
                raise IRError(
                    f"program: '{step_text(step)}' writes {item}, where the check of "
                    f"'{lost.check.what}' of {lost.label} lies; expected memory of its own for it.",
                    code="program-check",
                )


def _check_slices(
    program: Program,
    step: Step,
    effects: Effects,
    readable: tuple[str, ...],
    writable: tuple[str, ...],
) -> None:
    """Refuse slices that do not exist, or lie in other spaces than those."""
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
        return item.position >= 0 and item.position + item.reach <= program.arena_bytes
    known = {"input": program.inputs, "constant": program.constants, "output": program.outputs}
    tensors = known.get(item.space, ())
    if not 0 <= item.position < len(tensors):
        return False
    tensor = tensors[item.position]
    return (tensor.dtype, tensor.bytes) == (item.dtype, item.reach)


_READABLE = ("input", "constant", "output", "arena")
_WRITABLE = ("output", "arena")
