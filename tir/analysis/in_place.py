"""Which inputs of a function its output may overwrite."""

from __future__ import annotations

from ..buffer import Buffer
from ..func import PrimFunc
from ..stmt import Block, IterKind, Role
from ..visit import loads, stores


def overwritable_inputs(func: PrimFunc) -> tuple[Buffer, ...]:
    """The inputs that may share their memory with the output: element i is read for no other
    element than i.

    Sufficient, for a function at stage TENSOR with one output, each element of which is computed
    once: all blocks are pointwise, and the input, with every intermediate tensor that depends on
    it, is read at the own element only.
    """
    if len(func.outputs) != 1 or not all(map(_is_pointwise, func.blocks)):
        return ()
    output = func.outputs[0]
    sources: dict[Buffer, set[Buffer]] = {buffer: {buffer} for buffer in func.inputs}
    elsewhere: set[Buffer] = set()  # inputs of which an element serves another one
    for block in func.blocks:
        own = stores(block.body)[0]
        behind: set[Buffer] = set()
        for load in loads(block.body):
            reached = sources.get(load.buffer, set())
            behind |= reached
            if own.buffer.extents != output.extents or load.indices != own.indices:
                elsewhere |= reached
        sources[own.buffer] = behind
    fitting = (b for b in func.inputs if (b.type, b.extents) == (output.type, output.extents))
    return tuple(buffer for buffer in fitting if buffer not in elsewhere)


def _is_pointwise(block: Block) -> bool:
    plain = all(axis.kind is IterKind.SPATIAL for axis in block.iters)
    found = stores(block.body)
    once = len(found) == 1 and found[0].indices == tuple(axis.var for axis in block.iters)
    return plain and once and block.role is Role.COMPUTE
