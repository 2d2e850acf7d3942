"""Check the memory of a program by walking through it beside its graph: no step reads bytes that
another tensor has taken.

It shares nothing with the planner: no lifetimes, no list of uses. What each launch reads and writes
is derived from the graph's nodes, where that lies from the program's own slices, and each byte of
the arena and of the outputs knows which tensor was written there last.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ...tir.analysis.in_place import overwritable_inputs
from ...tir.errors import InternalError
from ...tir.program.byte_owners import ByteOwners
from ...tir.program.program import Copy, Launch, Program, Slice, Sync
from ..ir.ir import Graph
from ..ir.views import storage
from .choose import KernelChoice

ALIGNMENT = 64


def check_memory(graph: Graph, parts: Sequence[KernelChoice], program: Program) -> None:
    """Raise InternalError unless every launch of `program`, and who reads the outputs when it has
    run, find what the graph says that they read.

    parts: what each launch computes, in order. A launch may write over what it reads where that is
    the very same place, and its function reads no element there after it has written it. What it
    writes shares no memory.
    """
    _Walk(graph, program).run(parts)


class _Walk:
    def __init__(self, graph: Graph, program: Program) -> None:
        self.graph = graph
        self.program = program
        self.roots = storage(graph)
        self.arena = ByteOwners()
        self.outputs = ByteOwners()
        # where each output of the model begins, were they one after the other
        self.starts = [0]
        for tensor in program.outputs:
            self.starts.append(self.starts[-1] + tensor.bytes)

    def run(self, parts: Sequence[KernelChoice]) -> None:
        """Walk through all steps, then look at the outputs."""
        steps = [step for step in self.program.body if not isinstance(step, Sync)]
        if len(self.program.launches) != len(parts):
            _refuse(f"{len(self.program.launches)} launches compute {len(parts)} groups")
        waiting = iter(parts)
        for number, step in enumerate(steps):
            if isinstance(step, Launch):
                self._launch(number, step, next(waiting))
            else:
                self._copy(number, step)
        for position, name in enumerate(self.graph.outputs):
            tensor = self.program.outputs[position]
            item = Slice("output", position, tensor.dtype, tensor.shape)
            self._read("whoever called it", item, self.roots[name])

    def _launch(self, number: int, step: Launch, part: KernelChoice) -> None:
        func = self.program.function(step.function)
        free = overwritable_inputs(func)
        pairs = list(zip(func.parameters, step.arguments, strict=True))
        read = [(p.buffer, item) for p, item in pairs if p.role != "output"]
        results = [item for p, item in pairs if p.role == "output" and p.check is None]
        words = [item for p, item in pairs if p.check is not None]
        values, made = self._operands(part), part.group.outputs
        if len(results) != len(made):
            names = ", ".join(f"'{name}'" for name in made)
            _refuse(f"step {number} writes {len(results)} tensors for {names}")
        for value, (_, item) in zip(values, read, strict=True):
            self._read(f"step {number}", item, self.roots[value])
        for item in (*results, *words):
            for buffer, source in read:
                place = (item.position, item.bytes) == (source.position, source.bytes)
                same = place and buffer in free
                if item.overlaps(source) and not same:
                    _refuse(f"step {number} writes {item} over {source}, which it reads")
        for one, other in combinations((*results, *words), 2):
            if one.overlaps(other):
                _refuse(f"step {number} writes {one} and {other}, which share memory")
        for value, item in zip(made, results, strict=True):
            self._write(number, item, self.roots[value], ALIGNMENT)
        for item in words:
            self._write(number, item, f"a check of step {number}", item.bytes)

    @staticmethod
    def _operands(part: KernelChoice) -> list[str]:
        """The values that a launch reads, in order: a scalar stands in its code."""
        pairs = zip(part.values, part.fused.operands, strict=True)
        return [value for value, operand in pairs if operand.scalar is None]

    def _copy(self, number: int, step: Copy) -> None:
        name = self.graph.outputs[step.target.position]
        self._read(f"step {number}", step.source, self.roots[name])
        self._write(number, step.target, self.roots[name], ALIGNMENT)

    def _read(self, who: str, item: Slice, root: str) -> None:
        """Who reads a tensor finds it there."""
        match item.space:
            case "input":
                found = self.program.inputs[item.position].name == root
            case "constant":
                found = self.program.constants[item.position].name == root
            case "arena":
                found = self.arena.holds(item.position, item.position + item.bytes, root)
            case _:
                start = self.starts[item.position]
                found = self.outputs.holds(start, start + item.bytes, root)
        if not found:
            _refuse(f"{who} reads '{root}' in {item}, which was not written there or is taken")

    def _write(self, number: int, item: Slice, root: str, alignment: int) -> None:
        if item.space == "output":
            start = self.starts[item.position]
            self.outputs.write(start, start + item.bytes, root)
            return
        end, size = item.position + item.bytes, self.program.arena_bytes
        if item.space != "arena" or end > size or item.position % alignment:
            _refuse(
                f"step {number} writes '{root}' to {item}; expected a multiple of {alignment} in "
                f"an arena of {size} bytes"
            )
        self.arena.write(item.position, end, root)


def _refuse(problem: str) -> None:
    raise InternalError(f"memory plan: {problem}.", code="plan-check")
