"""Check the memory of a program by walking through it beside its graph: no step reads bytes that
another tensor has taken.

It shares nothing with the planner: no lifetimes, no list of uses. What each launch reads and writes
is derived from the graph's nodes, where that lies from the program's own slices, and each byte of
the arena and of the outputs knows which tensor was written there last. Behind a branch is what both
of its blocks left; an iteration finds what the steps before the loop and the one before it left.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NoReturn

from ...tir.analysis.in_place import overwritable_inputs
from ...tir.errors import InternalError
from ...tir.program.byte_owners import ByteOwners
from ...tir.program.program import (
    Branch,
    Copy,
    KeepLargest,
    Launch,
    LoopRow,
    Program,
    ReadSize,
    Repeat,
    Slice,
    Step,
    Sync,
    WriteIteration,
    kept_words,
    sizes_read,
)
from ..ir.data_dims import size_makers
from ..ir.ir import Graph
from ..ir.views import storage
from .choose import KernelChoice
from .flatten import ArrayRows, FlatBlock, FlatBranch, FlatLoop, FlatModel, flatten, loops_in

ALIGNMENT = 64


def check_memory(
    model: Graph | FlatModel,
    parts: Sequence[KernelChoice],
    program: Program,
    claims: Mapping[str, Slice] | None = None,
) -> None:
    """Raise InternalError unless every launch of `program`, and who reads the outputs when it has
    run, find what the graph says that they read.

    parts: what each launch computes, in order. claims: where what loops carry and collect lies, as
    the plan has it: not believed, but where these values are looked for at the ends of an
    iteration. A launch may write over what it reads where that is the very same place, and its
    function reads no element there after it has written it. What it writes shares no memory.
    """
    flat = flatten(model) if isinstance(model, Graph) else model
    _Walk(flat, program, claims or {}).run(parts)


class _Walk:
    def __init__(self, model: FlatModel, program: Program, claims: Mapping[str, Slice]) -> None:
        self.model = model
        self.program = program
        self.claims = claims
        self.roots: dict[str, Hashable] = {**storage(model.graph)}
        self.parts: dict[str, KernelChoice] = {}
        makers = size_makers(model.graph)
        self.sizes = {dim: node.inputs[0] for dim, node in makers.items()}
        self.size_values = {node.outputs[0] for node in makers.values()}
        self.rows: dict[str, tuple[str, LoopRow]] = {}  # of what is a row: of which array
        self.arena = ByteOwners()
        self.outputs = ByteOwners()
        self.number = 0  # of the step, for messages
        # where each output of the model begins, were they one after the other
        self.starts = [0]
        for tensor in program.outputs:
            self.starts.append(self.starts[-1] + tensor.bytes)

    def run(self, parts: Sequence[KernelChoice]) -> None:
        """Walk through all steps, then look at the outputs."""
        if len(self.program.launches) != len(parts):
            _refuse(f"{len(self.program.launches)} launches compute {len(parts)} groups")
        self.parts = {part.group.outputs[0]: part for part in parts}
        self._block(self.model.block, self.program.body)
        for position, name in enumerate(self.model.outputs):
            tensor = self.program.outputs[position]
            item = Slice("output", position, tensor.dtype, tensor.shape)
            self._read("whoever called it", item, name)
        for step in sizes_read(self.program.body):
            self._read("whoever called it", step.source, self.sizes[step.dim])

    # -- steps, beside what the graph says -------------------------------------------------------

    def _block(self, block: FlatBlock, steps: Sequence[Step]) -> None:
        waiting = iter(filter(self._has_step, block.items))
        for step in steps:
            if isinstance(step, Sync):
                continue
            who = f"step {self.number}"
            self.number += 1
            match step:
                case Launch():
                    found = next(waiting, None)
                    if not isinstance(found, str) or found not in self.parts:
                        _refuse(f"{who} is a launch; the graph has none there")
                    self._launch(who, step, self.parts[found])
                case Copy():
                    self._move(who, step.source, step.target)
                case ReadSize():
                    found = next(waiting, None)
                    if found not in self.size_values:
                        _refuse(f"{who} reads a size; the graph has none there")
                    self._read(who, step.source, self.sizes[step.dim])
                case KeepLargest():
                    kept = self._owner(step.target)  # what it was before the run began
                    if kept is None or self._owner(step.source) is None:
                        _refuse(f"{who} keeps a check beside what is not there")
                    self._write(who, step.target, kept, step.target.bytes)
                case WriteIteration():
                    loops = {loop.number: loop for loop in loops_in(self.model.block)}
                    self._write(who, step.target, loops[step.loop].iteration, ALIGNMENT)
                case Branch():
                    branch = next(waiting, None)
                    if not isinstance(branch, FlatBranch):
                        _refuse(f"{who} is a branch; the graph has none there")
                    self._branch(who, step, branch)
                case Repeat():
                    loop = next(waiting, None)
                    if not isinstance(loop, FlatLoop) or loop.number != step.loop:
                        _refuse(f"{who} is a loop; the graph has none there")
                    self._loop(who, step, loop)
        left = next(waiting, None)
        if left is not None:
            _refuse(f"no step does '{left if isinstance(left, str) else left.label}'")

    def _has_step(self, item: str | FlatBranch | FlatLoop) -> bool:
        """Whether there is a step for it: a loop that never runs gives what it is given."""
        if isinstance(item, FlatLoop) and item.count == 0:
            self.roots |= {carried.last: carried.first for carried in item.carried}
            return False
        return not isinstance(item, str) or item in self.parts or item in self.size_values

    def _branch(self, who: str, step: Branch, branch: FlatBranch) -> None:
        self._read(who, step.condition, branch.condition)
        before = self.arena.copy(), self.outputs.copy()
        self._block(branch.then, step.then)
        after = self.arena, self.outputs
        self.arena, self.outputs = before
        self._block(branch.otherwise, step.otherwise)
        results: dict[tuple[Hashable, Hashable], str] = {}
        for result, *values in zip(
            branch.results, branch.then.outputs, branch.otherwise.outputs, strict=True
        ):
            one, other = (self._name(value) for value in values)
            same = one if one == other else results.setdefault((other, one), result)
            if same != result:
                self.roots[result] = same

        def given(mine: Hashable, theirs: Hashable) -> Hashable:
            if not isinstance(mine, _RowOwner) or not isinstance(theirs, _RowOwner):
                return results.get((mine, theirs))
            found = results.get((mine.value, theirs.value))
            same = found is not None and mine.moves == theirs.moves
            return _RowOwner(found, mine.moves) if same else None

        self.arena.meet(after[0], given)
        self.outputs.meet(after[1], given)

    def _loop(self, who: str, step: Repeat, loop: FlatLoop) -> None:
        """What the first iteration finds, then what each one behind another finds."""
        if isinstance(step.count, Slice) and isinstance(loop.count, str):
            self._read(who, step.count, loop.count)
        elif step.count != loop.count:
            _refuse(f"{who} runs {step.count} times; the graph says {loop.count}")
        condition = f"the condition of loop {loop.number}"
        if (step.condition is None) != (loop.begins is None):
            _refuse(f"{who} asks a condition that the graph does not have, or none")
        if step.condition is not None and loop.begins is not None:
            self._read(who, step.condition, loop.begins)
            self._write(who, step.condition, condition, 1)
        for rows in loop.rows:
            length = self.model.graph.types[rows.array].shape[0]
            self.rows[rows.row] = rows.array, LoopRow(loop.number, length, rows.reverse)
        for item in loop.carried:
            self._renamed(f"{who} begins and", item.now, item.first)
        before = self.arena.copy(), self.outputs.copy()
        for _ in range(2):
            self._block(loop.body, step.body)
            if step.condition is not None and loop.goes_on is not None:
                self._read(f"{who} goes on and", step.condition, loop.goes_on)
                self._write(who, step.condition, condition, 1)
            for rows in loop.collected:
                self._collect(who, loop, rows)
            for item in loop.carried:
                self._renamed(f"{who} goes on and", item.now, item.next)
            last = self.arena.copy(), self.outputs.copy()
            self.arena.meet(before[0])
            self.outputs.meet(before[1])
        if step.always_runs:
            self.arena, self.outputs = last
        elif not isinstance(step.count, Slice) and step.condition is None:
            for rows in loop.collected:  # where it does not run they have no elements
                self._own(self.claims[rows.array], rows.array)
        for item in loop.carried:
            self._renamed(f"{who} ends and", item.last, item.now)

    def _renamed(self, who: str, value: str, found: str) -> None:
        """What lies in the place of a value, which is what the graph says, has its name now."""
        place = self.claims.get(value)
        if place is None or not place.bytes:
            return
        self._read(who, place, found)
        self._own(place, value)

    def _collect(self, who: str, loop: FlatLoop, rows: ArrayRows) -> None:
        place = self.claims[rows.array]
        if not place.bytes:
            return
        move = LoopRow(loop.number, place.shape[0], rows.reverse)
        row = Slice(place.space, place.position, place.dtype, place.shape[1:], (*place.moves, move))
        self._read(f"{who} goes on and", row, rows.row)
        self._own(place, rows.array)

    def _launch(self, who: str, step: Launch, part: KernelChoice) -> None:
        func = self.program.function(step.function)
        free = overwritable_inputs(func)
        pairs = list(zip(func.parameters, step.arguments, strict=True))
        read = [(p.buffer, item) for p, item in pairs if p.role != "output"]
        results = [item for p, item in pairs if p.role == "output" and p.check is None]
        words = [item for p, item in pairs if p.check is not None]
        values, made = self._operands(part), part.group.outputs
        if len(results) != len(made):
            names = ", ".join(f"'{name}'" for name in made)
            _refuse(f"{who} writes {len(results)} tensors for {names}")
        for value, (_, item) in zip(values, read, strict=True):
            self._read(who, item, value)
        for item in (*results, *words):
            for buffer, source in read:
                place = (item.position, item.bytes) == (source.position, source.bytes)
                same = place and item.moves == source.moves and buffer in free
                if item.overlaps(source) and not same:
                    _refuse(f"{who} writes {item} over {source}, which it reads")
        for one, other in combinations((*results, *words), 2):
            if one.overlaps(other):
                _refuse(f"{who} writes {one} and {other}, which share memory")
        for value, item in zip(made, results, strict=True):
            self._write(who, item, value, ALIGNMENT)
        for item in words:
            self._write(who, item, f"a check of {who}", item.bytes)

    @staticmethod
    def _operands(part: KernelChoice) -> list[str]:
        """The values that a launch reads, in order: a scalar stands in its code."""
        pairs = zip(part.values, part.fused.operands, strict=True)
        return [value for value, operand in pairs if operand.scalar is None]

    def _move(self, who: str, source: Slice, target: Slice) -> None:
        """A copy: there is then, too, what was in its source."""
        owner = self._owner(source)
        if owner is None:
            _refuse(f"{who} copies {source}, where no value lies whole")
        self._write(who, target, owner, self._alignment(target))

    def _alignment(self, target: Slice) -> int:
        """Of what is copied: rows lie behind each other, and so do checks."""
        is_word = target in kept_words(self.program.body).values()
        return target.dtype.bytes if target.moves or is_word else ALIGNMENT

    # -- memory ----------------------------------------------------------------------------------

    def _name(self, value: str) -> Hashable:
        """What a value is called where it is written: of a row, which row of what."""
        root: Hashable = value
        while isinstance(root, str) and self.roots.get(root, root) != root:
            root = self.roots[root]
        if isinstance(root, str) and root in self.rows:
            array, move = self.rows[root]
            return self._name(array), move
        return root

    def _owner(self, item: Slice) -> Hashable:
        """The value that lies in a slice; None where there is none, or are several."""
        match item.space:
            case "input":
                owner: Hashable = self.program.inputs[item.position].name
            case "constant":
                owner = self.program.constants[item.position].name
            case _:
                memory, start = self._at(item)
                found = {owner for _, _, owner in memory.read(start, start + item.reach)}
                owner = found.pop() if len(found) == 1 else None
        moves = item.moves
        if isinstance(owner, _RowOwner):
            count = len(owner.moves)
            if moves[:count] != owner.moves:
                return None
            owner, moves = owner.value, moves[count:]  # the others are of a row of that row
        for move in moves if owner is not None else ():
            owner = owner, move
        return owner

    def _read(self, who: str, item: Slice, value: str) -> None:
        """Who reads a tensor finds it there."""
        if item.bytes and self._owner(item) != self._name(value):
            root = self.roots.get(value, value)
            _refuse(f"{who} reads '{root}' in {item}, which was not written there or is taken")

    def _write(self, who: str, item: Slice, value: Hashable, alignment: int) -> None:
        if item.space == "arena":
            end, size = item.position + item.reach, self.program.arena_bytes
            if end > size or item.position % alignment:
                _refuse(
                    f"{who} writes '{value}' to {item}; expected a multiple of {alignment} in "
                    f"an arena of {size} bytes"
                )
        elif item.space != "output":
            _refuse(f"{who} writes '{value}' to {item}; expected memory of the arena or an output")
        self._own(item, value)

    def _own(self, item: Slice, value: Hashable) -> None:
        owner = self._name(value) if isinstance(value, str) else value
        memory, start = self._at(item)
        moved = _RowOwner(owner, item.moves) if item.moves else owner
        memory.write(start, start + item.reach, moved)

    def _at(self, item: Slice) -> tuple[ByteOwners, int]:
        if item.space == "output":
            return self.outputs, self.starts[item.position]
        return self.arena, item.position


@dataclass(frozen=True, slots=True)
class _RowOwner:
    """What lies in one row of an array, in each iteration another one."""

    value: Hashable
    moves: tuple[LoopRow, ...]


def _refuse(problem: str) -> NoReturn:
    raise InternalError(f"memory plan: {problem}.", code="plan-check")
