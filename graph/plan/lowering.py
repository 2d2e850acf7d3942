"""From chosen kernels to a Program: functions, each once; slices for every argument; the arena
planned and checked.

Launches stand in an order in which each finds what it reads; where a thread must wait for another
is for the driver to say. A value that is an output of the model is computed in the caller's array.
An output that is another name for an input, a constant or another output becomes a Copy. A launch
writes every output of its kernel: one that nobody reads lies in the arena while it runs. Kernels
whose results have no elements are not launched. The number that a size is stays in its place until
a run is over. Branches and loops are steps around launches (`homes`); the check of indices of a
launch in them is kept apart, where a run begins with none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...tir.analysis.in_place import overwritable_inputs
from ...tir.dtype import UINT64, dtype
from ...tir.func import PrimFunc
from ...tir.program.program import (
    Branch,
    Copy,
    KeepLargest,
    Launch,
    LoopRow,
    Program,
    ProgramTensor,
    ReadSize,
    Repeat,
    Slice,
    Step,
    WriteIteration,
)
from ...tir.stmt import Parameter
from ..ir.ir import Graph
from ..ir.views import storage
from ..regions.loop import ITERATION
from ..types import Array, TensorType, array_of
from .choose import KernelChoice
from .flatten import FlatModel, flatten, loops_in
from .homes import (
    CopyValue,
    Home,
    IfSteps,
    LoopSteps,
    NumberIteration,
    PlannedStep,
    SizeStep,
    copied_or_asked,
    parts_in,
    plan_steps,
)
from .lives import Lives
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


def lower(
    model: Graph | FlatModel, parts: Sequence[KernelChoice], *, in_place: bool = False
) -> LoweredModel:
    """The Program of a graph, computed by `parts` in order; of one that `flatten` made, where it
    has branches or loops.

    in_place: let a result take the place of an input that nobody needs afterwards. Each launch of
    such a pair gets one slice twice, which the code of its function has to allow.

    Raises: InternalError when the memory plan does not pass its check.
    """
    flat = flatten(model) if isinstance(model, Graph) else model
    return _Lowering(flat, parts, in_place).run()


class _Lowering:
    def __init__(self, model: FlatModel, parts: Sequence[KernelChoice], in_place: bool) -> None:
        self.model = model
        self.graph = graph = model.graph
        self.in_place = in_place and not model.has_flow
        launched = [
            part for part in parts if any(graph.types[v].elements != 0 for v in part.group.outputs)
        ]
        self.steps = plan_steps(model, launched)
        self.parts = list(parts_in(self.steps.steps))
        self.roots = storage(graph)
        self.inputs = {name: n for n, name in enumerate(model.inputs)}
        self.outputs = {name: n for n, name in enumerate(model.outputs)}
        # computed value -> the output of the model in whose array it lies
        self.homes: dict[str, str] = {}
        self.copies: list[str] = []  # outputs that are copied
        for name in model.outputs:
            root = self.roots[name]
            fixed = root in self.inputs or root in graph.constants or root in self.homes
            if fixed and graph.types[name].elements != 0:
                self.copies.append(name)
            elif not fixed:
                self.homes[root] = name
        used = [value for part in self.parts for value in _arguments(part)]
        used += copied_or_asked(self.steps.steps)
        constants = dict.fromkeys(self.roots.get(v, v) for v in (*used, *self.copies))
        self.constants = {
            name: n for n, name in enumerate(v for v in constants if v in graph.constants)
        }
        self.words: list[Slice] = []  # where the results of checks lie
        self.kept: list[Slice] = []  # of these, what outlives a branch or a loop
        # workload key -> the function, under its name in the program
        self.functions: dict[str, PrimFunc] = {}
        self.taken: set[str] = set()  # their names
        self.numbers: dict[str, int] = {}  # name of a function -> the last number appended to it

    def run(self) -> LoweredModel:
        """The program, planned and checked."""
        for part in self.parts:
            self._function(part.kernel.key, part.kernel.func)
        uses = self._uses()
        sizes = {name: self._type(name).bytes for use in uses for name in use.writes}
        arrays = {name: array_of(self.graph.constants[name]) for name in self.constants}
        weights = sum(self.graph.types[name].bytes for name in self.constants)
        plan = plan_memory(uses, sizes, weight_bytes=weights)
        body = self._body(self.steps.steps, plan, nested=False)
        body += [self._copy(name, plan) for name in self.copies]
        constants = self._tensors(self.constants)
        if self.kept:
            zero = self._zero(constants)
            constants, arrays = (*constants, zero), {**arrays, zero.name: np.zeros((), np.uint64)}
            source = Slice("constant", len(constants) - 1, zero.dtype, zero.shape)
            body = [*(Copy(source, word) for word in self.kept), *body]
        end = max((word.position + word.bytes for word in self.words), default=plan.arena_bytes)
        program = Program(
            self.graph.name,
            self._tensors(self.model.inputs),
            self._tensors(self.model.outputs),
            constants,
            tuple(self.functions.values()),
            tuple(body),
            end,
        )
        check_memory(self.model, self.parts, program, self._claims(plan))
        return LoweredModel(program, arrays, plan, uses, sizes)

    def _uses(self) -> tuple[StepUse, ...]:
        copies = map(self._copy_use, self.copies)
        sizes = [step.source for step in self.steps.steps if isinstance(step, SizeStep)]
        if not self.model.has_flow:
            kept = [self.roots[value] for value in sizes if self._in_arena(value)]
            end = (StepUse(tuple(kept)),) if kept else ()  # sizes are read when the run is over
            return (*map(self._use, self.parts), *copies, *end)
        lives = Lives(self._base)
        lives.walk(self.steps.steps)
        lives.end((*(self.roots[name] for name in self.copies), *sizes))
        return (*lives.uses(), *copies)

    def _base(self, value: str) -> str | None:
        """The tensor of the arena in whose place a value lies; None where that is elsewhere."""
        root = self._home(value).value
        fixed = root in self.inputs or root in self.graph.constants or root in self.homes
        return None if fixed or self._type(root).elements == 0 else root

    def _home(self, value: str) -> Home:
        """The value that has a place, and the row of it where another one lies."""
        root, moves = self.roots.get(value, value), tuple[LoopRow, ...]()
        while root in self.steps.homes:
            home = self.steps.homes[root]
            root, moves = self.roots.get(home.value, home.value), (*home.moves, *moves)
        return Home(root, moves)

    def _type(self, value: str) -> TensorType:
        return self.graph.types[self.steps.extra.get(value, value)]

    def _claims(self, plan: ArenaPlan) -> dict[str, Slice]:
        """Where what loops carry and collect lies."""
        loops = loops_in(self.model.block)
        values = [v for loop in loops for v in (*loop.results, *(c.now for c in loop.carried))]
        return {value: self._slice(value, self._type(value), plan) for value in values}

    def _zero(self, constants: Sequence[ProgramTensor]) -> ProgramTensor:
        """The constant that a check which has not run has found."""
        name, taken = "none", {tensor.name for tensor in constants}
        while name in taken:
            name += "_"
        return ProgramTensor(name, UINT64, ())

    def _body(self, steps: Sequence[PlannedStep], plan: ArenaPlan, *, nested: bool) -> list[Step]:
        found: list[Step] = []
        for step in steps:
            match step:
                case KernelChoice():
                    found += self._launches(step, plan, nested=nested)
                case CopyValue():
                    type_ = self._type(step.source)
                    target = self._place(step.target, type_, plan)
                    found.append(Copy(self._slice(step.source, type_, plan), target))
                case NumberIteration():
                    target = self._slice(step.loop.iteration, ITERATION, plan)
                    found.append(WriteIteration(step.loop.number, target))
                case SizeStep():
                    found.append(ReadSize(step.dim, self._scalar(step.source, plan)))
                case IfSteps():
                    sides = (step.then, step.otherwise)
                    then, otherwise = (self._body(side, plan, nested=True) for side in sides)
                    condition = self._scalar(step.branch.condition, plan)
                    label = step.branch.label
                    found.append(Branch(condition, tuple(then), tuple(otherwise), label))
                case LoopSteps():
                    loop = step.loop
                    count = loop.count
                    most = self._scalar(count, plan) if isinstance(count, str) else count
                    until = None if step.condition is None else self._scalar(step.condition, plan)
                    body = self._body(step.body, plan, nested=True)
                    found.append(Repeat(loop.number, most, until, tuple(body), loop.label))
        return found

    def _launches(self, part: KernelChoice, plan: ArenaPlan, *, nested: bool) -> Iterator[Step]:
        launch = self._launch(part, plan)
        yield launch
        if nested:
            for parameter, word in zip(part.kernel.func.parameters, launch.arguments, strict=True):
                if parameter.check is not None:
                    self.kept.append(self._word(parameter, plan))
                    yield KeepLargest(word, self.kept[-1])

    def _scalar(self, value: str, plan: ArenaPlan) -> Slice:
        return self._slice(value, replace(self._type(value), shape=()), plan)

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
        return self._place(Home(value), type_, plan)

    def _place(self, wanted: Home, type_: TensorType, plan: ArenaPlan) -> Slice:
        """What has that type in the place of a value, or in a row of it."""
        home = self._home(wanted.value)
        root, moves = home.value, (*home.moves, *wanted.moves)
        kind = dtype(type_.dtype)
        if root in self.inputs:
            return Slice("input", self.inputs[root], kind, type_.shape, moves)
        if root in self.constants:
            return Slice("constant", self.constants[root], kind, type_.shape, moves)
        if root in self.homes:
            position = self.outputs[self.homes[root]]
            return Slice("output", position, kind, type_.shape, moves)
        return Slice("arena", plan.offsets.get(root, 0), kind, type_.shape, moves)

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
