"""Calls of C functions, and scatters, as the proof sees them: loops that store each element of each
output, from every element of every input.

    Y = f(A, B)   ->   for i, j: Y[i, j] = (f, A[each, each], B[each])

So what holds for other blocks holds for them: their outputs are whole and theirs alone, what they
read is written before, and nobody reads what they have not written.
"""

from __future__ import annotations

from ....tir.buffer import Buffer, Load
from ....tir.dtype import INT64
from ....tir.expr import Cast, Const, Expr, Var, add
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Block, Extern, For, ForKind, Stmt, Store, elements_of, seq
from ....tir.visit import transform
from .data import each


def without_externs(func: PrimFunc) -> PrimFunc:
    """The function with loops in the place of each call; itself where it has none."""
    calls = any(isinstance(block.body, Extern) for block in func.blocks)
    return func.with_body(transform(func.body, _modelled)) if calls else func


def _modelled(node: Node) -> Node:
    if not isinstance(node, Block) or not isinstance(node.body, Extern):
        return node
    call, name = node.body, node.family or node.name
    alone = len(call.outputs) == 1
    # no name of a block or a tensor ends like that, so families stay apart
    families = [name if alone else f"{name}.{n}" for n in range(len(call.outputs))]
    pairs = zip(families, call.outputs, strict=True)
    return seq(*(_nest(node, call, family, output) for family, output in pairs))


def _nest(block: Block, call: Extern, family: str, output: Buffer) -> Stmt:
    loops = tuple(Var(f"i{axis}") for axis in range(len(output.shape)))
    iters = elements_of(output, tuple(Var(f"v{loop.name}") for loop in loops))
    value: Expr = Const(int(call.function.digest, 16) >> 1, INT64)  # tells functions apart
    for buffer in call.inputs:
        if buffer.size:
            indices = tuple(each(axis, extent) for axis, extent in enumerate(buffer.shape))
            value = add(value, Cast(Load(buffer, indices), INT64))
    store = Store(output, tuple(it.var for it in iters), Cast(value, output.type))
    nest: Stmt = Block(family, iters, loops, store, predicate=block.predicate, family=family)
    for loop, extent in zip(reversed(loops), reversed(output.shape), strict=True):
        nest = For(loop, extent, ForKind.SERIAL, nest)
    return nest
