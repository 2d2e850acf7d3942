"""What stands around the one reduction of a function: who reads its result, and what makes its
operands.
"""

from __future__ import annotations

from ....tir.analysis.simplify import simplify
from ....tir.buffer import Buffer, Load
from ....tir.expr import Const, Select
from ....tir.func import PrimFunc
from ....tir.stmt import Block
from ....tir.visit import loads, stores
from ...nest import is_reduction, read_indices, readers, target_of, writers
from ...schedule import Schedule
from ..shape.structure import inline_chains, is_pointwise, pointwise_output


def with_reader(sch: Schedule) -> tuple[str, str]:
    """Let one block read the result of the only reduction element by element, if none does: one
    that copies. Returns the names of the reduction and of that block.
    """
    inline_chains(sch)
    (block,) = (block for block in sch.func.blocks if is_reduction(block))
    tensor, user = target_of(block), pointwise_output(sch.func, block)
    if user is not None and tensor not in sch.func.outputs and _reads_own_element(user, tensor):
        return block.name, user.name
    copy = sch.cache_write(block.name)
    (name,) = (block.name for block in sch.func.blocks if is_reduction(block))
    return name, copy


def _reads_own_element(user: Block, tensor: Buffer) -> bool:
    """Whether an element of the block is made of the same element of the tensor."""
    ranges = {it.var: (0, it.extent - 1) for it in user.iters}
    own = [simplify(it.var, ranges) for it in user.iters]
    found = read_indices(user, tensor)
    return all([simplify(index, ranges) for index in indices] == own for indices in found)


def moved_for(func: PrimFunc, tensor: Buffer) -> Block | None:
    """The block that makes a tensor for one reader alone, where it does nothing but move elements
    of another one, or set those that have no source to a constant.
    """
    made = [block for block in writers(func, tensor) if is_pointwise(block)]
    alone = tensor in func.allocations and len(readers(func, tensor)) == 1
    return made[0] if made and alone and moves(made[0]) else None


def moves(block: Block) -> bool:
    """Whether a pointwise block does nothing but read, or set what has no source to a constant."""
    value = stores(block.body)[0].value
    if isinstance(value, Select) and isinstance(value.on_false, Const):
        value = value.on_true
    return isinstance(value, Load) and not any(map(loads, value.indices))
