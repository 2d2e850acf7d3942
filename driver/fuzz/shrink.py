"""Make a failing case small: fewer steps, fewer tensors, smaller extents, shorter expressions, as
long as it fails in the same way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...schedule.trace.trace import Step, Trace
from ...tir.analysis.specialise import specialise
from ...tir.buffer import Buffer, Load
from ...tir.dim import Dim
from ...tir.expr import Const, Expr, Var, const
from ...tir.func import PrimFunc, split_allocations
from ...tir.node import Node
from ...tir.stmt import Alloc, Block, For, IterKind, IterVar, Parameter, Stmt, seq
from ...tir.visit import free_vars, loads, replace_buffers, replace_node, stores, transform, walk
from .case import Case, size_choices

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, seconds: float = 60.0) -> Case:
    """The smallest case found, within about `seconds`, for which `fails` still holds."""
    deadline = time.perf_counter() + seconds
    changed = True
    while changed:
        changed = False
        for smaller in (_fewer_steps, _fewer_tensors, _shorter_values, _smaller_extents):
            again = True
            while again:
                again = False
                for candidate in smaller(case):
                    if time.perf_counter() > deadline:
                        return case
                    if _is_told(candidate.function) and fails(candidate):
                        case, again, changed = candidate, True, True
                        break
    return case


def _is_told(func: PrimFunc) -> bool:
    """Whether inputs tell each size that a call decides: one of them may have gone."""
    used: set[Var] = set()
    for node in walk(func.body):
        match node:
            case Buffer():
                used.update(dim for dim in node.dims if dim is not None)
            case IterVar(dim=Dim() as dim) | (Dim() as dim):
                used.add(dim)
    told = {dim for buffer in func.inputs for dim in buffer.dims}
    return {*used, *func.dims} <= told


# -- steps ----------------------------------------------------------------------------------------


def _fewer_steps(case: Case) -> Iterator[Case]:
    """Halves, then single steps, the last first; what refers to a dropped step goes with it."""
    count = len(case.trace.steps)
    size = count
    while size:
        for start in range(count - size, -1, -size):
            yield replace(case, trace=without(case.trace, range(start, start + size), {}))
        size //= 2


def without(trace: Trace, dropped: Sequence[int], names: Mapping[str, str | None]) -> Trace:
    """The trace without some steps and those that refer to what is gone; what is left is numbered
    anew.

    names: what the function's own blocks ("b1") and parameters ("p0") are called now; None: gone.
    """
    known = dict(names)
    kept: list[Step] = []
    for number, step in enumerate(trace.steps):
        arguments = tuple((key, _renamed(value, known)) for key, value in step.arguments)
        if number in dropped or any(_is_lost(value) for _, value in arguments):
            known[f"s{number}"] = None
            continue
        known[f"s{number}"] = f"s{len(kept)}"
        kept.append(replace(step, arguments=arguments))
    return Trace(tuple(kept))


def _renamed(value: object, names: Mapping[str, str | None]) -> object:
    if isinstance(value, tuple):
        return tuple(_renamed(item, names) for item in value)
    if not isinstance(value, dict):
        return value
    made: dict[str, object] = {}
    for field, key in value.items():
        prefix, dot, rest = str(key).partition(".")
        if field == "name":
            made[field] = key
        elif names.get(prefix, prefix) is None:
            made[field] = None
        else:
            made[field] = f"{names.get(prefix, prefix)}{dot}{rest}"
    return made


def _is_lost(value: object) -> bool:
    if isinstance(value, tuple):
        return any(_is_lost(item) for item in value)
    return isinstance(value, dict) and any(item is None for item in value.values())


# -- tensors --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parts:
    """A function of stage TENSOR: the nests, and which of their tensors are outputs."""

    func: PrimFunc
    nests: tuple[Stmt, ...]
    outputs: tuple[Buffer, ...]

    @staticmethod
    def of(func: PrimFunc) -> _Parts:
        """The parts of a function."""
        return _Parts(func, split_allocations(func.body)[1], func.outputs)

    def case(self, trace: Trace) -> Case:
        """The case of these parts, without what nothing needs."""
        needed: set[Buffer] = set(self.outputs)
        kept: list[tuple[tuple[Buffer, ...], Stmt]] = []
        names: dict[str, str | None] = {}
        for nest in reversed(self.nests):
            made = tuple(dict.fromkeys(store.buffer for store in stores(nest)))
            if needed.intersection(made):
                needed |= {load.buffer for load in loads(nest)}
                kept.insert(0, (made, nest))
        for number, block in enumerate(self.func.blocks):
            place = next((n for n, (made, _) in enumerate(kept) if _makes(block, made[0])), None)
            names[f"b{number}"] = None if place is None else f"b{place}"
        parameters: list[Parameter] = []
        for number, parameter in enumerate(self.func.parameters):
            wanted = self.outputs if parameter.role == "output" else needed
            gone = parameter.buffer not in wanted
            names[f"p{number}"] = None if gone else f"p{len(parameters)}"
            parameters += [] if gone else [parameter]
        body = seq(*(nest for _, nest in kept))
        listed = {parameter.buffer for parameter in parameters}
        for buffer in (one for made, _ in reversed(kept) for one in reversed(made)):
            if buffer not in listed:
                body = Alloc(buffer, body)
        func = replace(self.func, parameters=tuple(parameters), body=body)
        return Case(func, without(trace, (), names))


def _makes(block: Block, tensor: Buffer) -> bool:
    return stores(block.body)[0].buffer is tensor


def _fewer_tensors(case: Case) -> Iterator[Case]:
    """One output less, or the end of the function gone."""
    parts = _Parts.of(case.function)
    for output in parts.outputs:
        rest = tuple(buffer for buffer in parts.outputs if buffer is not output)
        if rest:
            yield replace(parts, outputs=rest).case(case.trace)
    last = stores(parts.nests[-1])[0].buffer
    if len(parts.nests) > 1 and parts.outputs == (last,):
        before = stores(parts.nests[-2])[0].buffer
        func = case.function
        parameters = tuple(
            replace(p, buffer=before) if p.buffer is last else p for p in func.parameters
        )
        shorter = _Parts(replace(func, parameters=parameters), parts.nests[:-1], (before,))
        yield shorter.case(case.trace)


# -- expressions ----------------------------------------------------------------------------------


def _shorter_values(case: Case) -> Iterator[Case]:
    """A part of a value replaced by one of its operands, or by 1."""
    parts = _Parts.of(case.function)
    for position, nest in enumerate(parts.nests):
        block = next(node for node in walk(nest) if isinstance(node, Block))
        own = stores(block.body)[0].buffer
        for old in _values(block.body):
            for new in _simpler(old, own):
                changed = replace_node(nest, old, new)
                nests = (*parts.nests[:position], changed, *parts.nests[position + 1 :])
                yield replace(parts, nests=nests).case(case.trace)


def _values(body: Stmt) -> list[Expr]:
    """The parts of the values that are stored, the largest first; no indices."""
    found: list[Expr] = []
    stack: list[Node] = [store.value for store in stores(body)]
    while stack:
        node = stack.pop(0)
        if isinstance(node, Expr) and not isinstance(node, Const):
            found.append(node)
        if not isinstance(node, Load):
            stack += node.children()
    return found


def _simpler(old: Expr, own: Buffer) -> Iterator[Expr]:
    """What may stand for an expression; a reduction goes on reading its accumulator."""
    mine = any(load.buffer is own for load in loads(old))
    for child in old.children():
        keeps = not mine or any(load.buffer is own for load in loads(child))
        if isinstance(old, Load) or not isinstance(child, Expr):
            continue
        if child.dtype == old.dtype and keeps and free_vars(child) <= free_vars(old):
            yield child
    if not mine and not isinstance(old, Var):
        yield const(1, old.dtype)


# -- extents --------------------------------------------------------------------------------------


def _smaller_extents(case: Case) -> Iterator[Case]:
    """Numbers for what a call decides; all extents of one size smaller; then the reduction loops of
    one block.
    """
    func = case.function
    if func.dims:
        yield from (Case(specialise(func, sizes), case.trace) for sizes in size_choices(func))
        return
    sizes = {node.extent for node in walk(func.body) if isinstance(node, For)}
    sizes |= {n for p in func.parameters for n in p.buffer.shape}
    for old in sorted(sizes, reverse=True):
        for new in dict.fromkeys((1, 2, old // 2, old - 1)):
            if 0 < new < old:
                yield Case(_resized(func, {old: new}), case.trace)
    for block in func.blocks:
        for it in block.iters:
            if it.kind is IterKind.REDUCE and it.extent > 1:
                yield Case(_tightened(func, block, it), case.trace)


def _resized(func: PrimFunc, sizes: Mapping[int, int]) -> PrimFunc:
    buffers = {
        buffer: replace(buffer, shape=tuple(sizes.get(n, n) for n in buffer.shape))
        for buffer in (*(p.buffer for p in func.parameters), *func.allocations)
    }

    def rule(node: Node) -> Node:
        if isinstance(node, For | IterVar):
            return replace(node, extent=sizes.get(node.extent, node.extent))
        return node

    parameters = tuple(replace(p, buffer=buffers[p.buffer]) for p in func.parameters)
    body = replace_buffers(transform(func.body, rule), buffers)
    return replace(func, parameters=parameters, body=body)


def _tightened(func: PrimFunc, block: Block, it: IterVar) -> PrimFunc:
    """One reduction axis of one block of extent 1."""
    binding = dict(zip(block.iters, block.bindings, strict=True))[it]

    def rule(node: Node) -> Node:
        if (isinstance(node, For) and node.var is binding) or (
            isinstance(node, IterVar) and node.var is it.var
        ):
            return replace(node, extent=1)
        return node

    return replace(func, body=transform(func.body, rule))
