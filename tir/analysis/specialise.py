"""specialise: what a function of dims is at one choice of their values.

It is the meaning of such a function: the interpreter, the evaluator and the references run this
one. A tensor has as many elements as the values say, and a block runs at the points of its domain,
which they make smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from ..buffer import Buffer
from ..conditions import all_of
from ..dim import Dim
from ..errors import IRError
from ..expr import Expr, Var, index
from ..func import PrimFunc
from ..node import Node
from ..stmt import Block, For, IterVar, Stmt
from ..visit import blocks, free_vars, replace_buffers, substitute, walk
from .facts import agree

Values = Mapping[Dim, int]


def specialise(func: PrimFunc, values: Values) -> PrimFunc:
    """The function without dims that `func` is for `values`, of all its dims; itself without any.

    A loop that is one axis of each block below it becomes shorter; elsewhere a block gets the
    condition that its point exists.
    Raises: IRError for a value that is missing or out of bounds, and for values that no call has
    together.
    """
    for dim in func.dims:
        value = values.get(dim)
        if value is None or not dim.low <= value <= dim.high:
            raise IRError(
                f"specialise: '{dim.name}' of '{func.name}' is {value}; expected "
                f"{dim.low} to {dim.high}.",
                code="specialise-value",
            )
    if not func.dims:
        return func
    if not agree(func.facts, values):
        chosen = ", ".join(f"{dim.name} {values[dim]}" for dim in func.dims)
        raise IRError(
            f"specialise: the sizes {chosen} of '{func.name}' do not belong together; expected "
            f"{' and '.join(f'{fact} >= 0' for fact in func.facts)}.",
            code="specialise-facts",
        )
    return _specialised(func, tuple(values[dim] for dim in func.dims))


@lru_cache(maxsize=256)
def _specialised(func: PrimFunc, values: tuple[int, ...]) -> PrimFunc:
    chosen = dict(zip(func.dims, values, strict=True))
    buffers: dict[Buffer, Buffer] = {}
    for buffer in (*(p.buffer for p in func.parameters), *_buffers(func.body)):
        _resized(buffer, chosen, buffers)
    body = replace_buffers(_shortened(func.body, chosen), buffers)
    numbers: dict[Var, Expr] = {dim: index(value) for dim, value in chosen.items()}
    parameters = tuple(replace(p, buffer=buffers[p.buffer]) for p in func.parameters)
    return PrimFunc(func.name, parameters, substitute(body, numbers))


def exchange_dims(func: PrimFunc, dims: Mapping[Dim, Dim]) -> PrimFunc:
    """The function with other dims in the place of its own; the same object where they are."""
    if all(dim is dims[dim] for dim in func.dims):
        return func
    buffers = {
        b: replace(b, dims=tuple(None if dim is None else dims[dim] for dim in b.dims))
        for b in (*(p.buffer for p in func.parameters), *_buffers(func.body))
        if b.dims
    }
    parameters = (replace(p, buffer=buffers.get(p.buffer, p.buffer)) for p in func.parameters)
    values: dict[Var, Expr] = dict(dims.items())
    body = substitute(replace_buffers(func.body, buffers), values)
    sizes = tuple(dims[dim] for dim in func.sizes)
    facts = tuple(substitute(fact, values) for fact in func.facts)
    return PrimFunc(func.name, tuple(parameters), body, sizes, facts)


def at_most(expr: Expr) -> Expr:
    """The expression with the upper bound of each dim in its place."""
    found = (var for var in free_vars(expr) if isinstance(var, Dim))
    return substitute(expr, {dim: index(dim.high) for dim in found})


def sizes_of(shapes: Iterable[tuple[Buffer, tuple[int, ...]]]) -> dict[Dim, int]:
    """The values of dims at which buffers have these shapes, as far as the shapes tell."""
    return {
        dim: size
        for buffer, shape in shapes
        if len(shape) == len(buffer.shape)
        for dim, size in zip(buffer.dims, shape, strict=False)
        if dim is not None
    }


def _buffers(node: Node) -> list[Buffer]:
    return [item for item in walk(node) if isinstance(item, Buffer)]


def _resized(buffer: Buffer, values: Values, made: dict[Buffer, Buffer]) -> Buffer:
    """The buffer with numbers for dims; itself where it has none, and its origin neither."""
    if buffer not in made:
        origin = None if buffer.origin is None else _resized(buffer.origin, values, made)
        shape = tuple(values[e] if isinstance(e, Dim) else e for e in buffer.extents)
        same = origin is buffer.origin and not buffer.dims
        made[buffer] = buffer if same else replace(buffer, shape=shape, dims=(), origin=origin)
    return made[buffer]


def _shortened(stmt: Stmt, values: Values, short: frozenset[Var] = frozenset()) -> Stmt:
    """The statement with `short` loops, whose points all exist, and conditions elsewhere."""
    if isinstance(stmt, Block):
        return _with_points(stmt, values, short)
    dim = _only_axis(stmt) if isinstance(stmt, For) else None
    if isinstance(stmt, For) and dim is not None:
        body = _shortened(stmt.body, values, short | {stmt.var})
        return replace(stmt, extent=values[dim], body=body)

    def visit(child: Node) -> Node:
        return _shortened(child, values, short) if isinstance(child, Stmt) else child

    return stmt.map_children(visit)


def _only_axis(loop: For) -> Dim | None:
    """The dim over whose whole axis a loop runs in every block below it; None for another loop."""
    found: set[Dim | None] = set()
    for block in blocks(loop):
        pairs = zip(block.iters, block.bindings, strict=True)
        found |= {it.dim for it, binding in pairs if binding is loop.var} or {None}
    dim = found.pop() if len(found) == 1 else None
    return dim if dim is not None and dim.high == loop.extent else None


def _with_points(block: Block, values: Values, short: frozenset[Var]) -> Block:
    """The block with numbers for the dims of its axes."""
    iters: list[IterVar] = []
    conditions: list[Expr] = []
    for it, binding in zip(block.iters, block.bindings, strict=True):
        iters.append(it if it.dim is None else replace(it, extent=values[it.dim], dim=None))
        if it.dim is not None and binding not in short:
            conditions.append(binding < values[it.dim])
    predicate = all_of(block.predicate, *conditions)
    return replace(block, iters=tuple(iters), predicate=predicate)
