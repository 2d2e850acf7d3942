"""From chosen kernels to a Program: functions, each once; slices for every argument; the arena
planned and checked.

Launches stand in an order in which each finds what it reads; where a thread must wait for another
is for the driver to say. A value that is an output of the model is computed in the caller's array.
An output that is another name for an input, a constant or another output becomes a Copy. A launch
writes every output of its kernel: one that nobody reads lies in the arena while it runs. Kernels
whose results have no elements are not launched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...tir.analysis.in_place import overwritable_inputs
from ...tir.dtype import dtype
from ...tir.func import PrimFunc
from ...tir.program.program import Copy, Launch, Program, ProgramTensor, Slice, Step
from ...tir.stmt import Parameter
from ..ir.ir import Graph
from ..ir.views import storage
from ..types import Array, TensorType, array_of
from .choose import KernelChoice
from .memory_check import check_memory
from .memory_plan import ArenaPlan, StepUse, plan_memory


@dataclass(frozen=True, slots=True)
class LoweredModel:
    """A Program with what belongs to it.

    constants: an array for each of the program's constants, by name; a splat is a view that repeats
    one element.
    plan: where the arena's tensors lie; uses: what each step does with them; sizes: their bytes.
    """

    program: Program
    constants: Mapping[str, Array]
    plan: ArenaPlan
    uses: tuple[StepUse, ...]
    sizes: Mapping[str, int]


def lower(graph: Graph, parts: Sequence[KernelChoice], *, in_place: bool = False) -> LoweredModel:
    """The Program of a graph, computed by `parts` in order.

    in_place: let a result take the place of an input that nobody needs afterwards. Each launch of
    such a pair gets one slice twice, which the code of its function has to allow.

    Raises: InternalError when the memory plan does not pass its check.
    """
    return _Lowering(graph, parts, in_place).run()


class _Lowering:
    def __init__(self, graph: Graph, parts: Sequence[KernelChoice], in_place: bool) -> None:
        self.graph = graph
        self.in_place = in_place
        self.parts = [
            part for part in parts if any(graph.types[v].elements != 0 for v in part.group.outputs)
        ]
        self.roots = storage(graph)
        self.inputs = {name: n for n, name in enumerate(graph.inputs)}
        self.outputs = {name: n for n, name in enumerate(graph.outputs)}
        # computed value -> the output of the model in whose array it lies
        self.homes: dict[str, str] = {}
        self.copies: list[str] = []  # outputs that are copied
        for name in graph.outputs:
            root = self.roots[name]
            fixed = root in self.inputs or root in graph.constants or root in self.homes
            if fixed and graph.types[name].elements != 0:
                self.copies.append(name)
            elif not fixed:
                self.homes[root] = name
        used = [value for part in self.parts for value in _arguments(part)]
        constants = dict.fromkeys(self.roots[value] for value in (*used, *self.copies))
        self.constants = {
            name: n for n, name in enumerate(v for v in constants if v in graph.constants)
        }
        self.words: list[Slice] = []  # where the results of checks lie
        # workload key -> the function, under its name in the program
        self.functions: dict[str, PrimFunc] = {}
        self.taken: set[str] = set()  # their names
        self.numbers: dict[str, int] = {}  # name of a function -> the last number appended to it

    def run(self) -> LoweredModel:
        """The program, planned and checked."""
        for part in self.parts:
            self._function(part.kernel.key, part.kernel.func)
        uses = (*map(self._use, self.parts), *map(self._copy_use, self.copies))
        sizes = {name: self.graph.types[name].bytes for use in uses for name in use.writes}
        arrays = {name: array_of(self.graph.constants[name]) for name in self.constants}
        weights = sum(self.graph.types[name].bytes for name in self.constants)
        plan = plan_memory(uses, sizes, weight_bytes=weights)
        launches = [self._launch(part, plan) for part in self.parts]
        body: list[Step] = [*launches, *(self._copy(name, plan) for name in self.copies)]
        end = max((word.position + word.bytes for word in self.words), default=plan.arena_bytes)
        program = Program(
            self.graph.name,
            self._tensors(self.graph.inputs),
            self._tensors(self.graph.outputs),
            self._tensors(self.constants),
            tuple(self.functions.values()),
            tuple(body),
            end,
        )
        check_memory(self.graph, self.parts, program)
        return LoweredModel(program, arrays, plan, uses, sizes)

    def _tensors(self, names: Sequence[str] | Mapping[str, int]) -> tuple[ProgramTensor, ...]:
        types = self.graph.types
        return tuple(ProgramTensor(n, dtype(types[n].dtype), types[n].shape) for n in names)

    def _function(self, key: str, func: PrimFunc) -> None:
        if key in self.functions:
            return
        number = self.numbers.get(func.name, 0)
        name = f"{func.name}_{number}" if number else func.name
        while name in self.taken:
            number += 1
            name = f"{func.name}_{number}"
        self.numbers[func.name] = number
        self.taken.add(name)
        self.functions[key] = func if name == func.name else replace(func, name=name)

    def _in_arena(self, value: str) -> bool:
        root = self.roots[value]
        fixed = root in self.inputs or root in self.graph.constants
        return not fixed and root not in self.homes and self.graph.types[value].elements != 0

    def _use(self, part: KernelChoice) -> StepUse:
        read = tuple(dict.fromkeys(self.roots[v] for v in part.values if self._in_arena(v)))
        stored = tuple(value for value in part.group.outputs if self._in_arena(value))
        reusable = self._reusable(part) if self.in_place and stored else ()
        return StepUse(read, stored, reusable)

    def _reusable(self, part: KernelChoice) -> tuple[str, ...]:
        """Tensors of the arena that the kernel reads at the element it computes, under all their
        names.
        """
        func = part.kernel.func
        free = overwritable_inputs(func)
        parameters = [p.buffer for p in func.parameters if p.role != "output"]
        read = [
            (buffer, self.roots[v]) for buffer, v in zip(parameters, _arguments(part), strict=True)
        ]
        kept = {root for buffer, root in read if buffer not in free}
        return tuple(root for _, root in read if root not in kept and self._in_arena(root))

    def _copy_use(self, name: str) -> StepUse:
        root = self.roots[name]
        return StepUse((root,) if self._in_arena(root) else ())

    def _slice(self, value: str, type_: TensorType, plan: ArenaPlan) -> Slice:
        root = self.roots[value]
        kind = dtype(type_.dtype)
        if root in self.inputs:
            return Slice("input", self.inputs[root], kind, type_.shape)
        if root in self.constants:
            return Slice("constant", self.constants[root], kind, type_.shape)
        if root in self.homes:
            return Slice("output", self.outputs[self.homes[root]], kind, type_.shape)
        return Slice("arena", plan.offsets.get(root, 0), kind, type_.shape)

    def _launch(self, part: KernelChoice, plan: ArenaPlan) -> Launch:
        arguments = [
            self._slice(value, operand.type, plan)
            for value, operand in zip(part.values, part.fused.operands, strict=True)
            if operand.scalar is None
        ]
        arguments += [
            self._slice(value, type_, plan)
            for value, type_ in zip(part.group.outputs, part.fused.results, strict=True)
        ]
        arguments += [
            self._word(parameter, plan)
            for parameter in part.kernel.func.parameters
            if parameter.check is not None
        ]
        name = self.functions[part.kernel.key].name
        return Launch(name, tuple(arguments), part.group.label, part.kernel.sizes)

    def _word(self, check: Parameter, plan: ArenaPlan) -> Slice:
        """Memory for the result of a check of indices, behind everything that is planned: it is
        read when the run is over.
        """
        planned = -(-plan.arena_bytes // check.buffer.bytes) * check.buffer.bytes
        end = self.words[-1].position + self.words[-1].bytes if self.words else planned
        self.words.append(Slice("arena", end, check.dtype, check.buffer.shape))
        return self.words[-1]

    def _copy(self, name: str, plan: ArenaPlan) -> Copy:
        type_ = self.graph.types[name]
        target = Slice("output", self.outputs[name], dtype(type_.dtype), type_.shape)
        return Copy(self._slice(self.roots[name], type_, plan), target)


def _arguments(part: KernelChoice) -> tuple[str, ...]:
    """The values that a kernel is called with: a scalar stands in its code."""
    pairs = zip(part.values, part.fused.operands, strict=True)
    return tuple(value for value, operand in pairs if operand.scalar is None)
