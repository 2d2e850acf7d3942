"""Whether storage may belong to one iteration of a loop: it reads nothing that another iteration
has written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ....tir.analysis.linear import linear
from ....tir.analysis.regions import region
from ....tir.buffer import Buffer, Load
from ....tir.conditions import conjuncts, names_dim
from ....tir.expr import Expr, Var
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, For, If, IterKind, Role, Seq, Stmt, Store
from ....tir.visit import blocks, enclosing_path, free_vars, loads, statements, stores, substitute
from ..vector.vector_body import negated


def starts_afresh(loop: For, buffer: Buffer) -> bool:
    """Whether an iteration reads only what it wrote itself: the loop is not reduced over, and a
    block below writes it whole.
    """
    writers = [b for b in blocks(loop.body) if any(s.buffer is buffer for s in stores(b.body))]
    if not writers or not isinstance(below_tests(loop.body), Seq | Alloc | For):
        return False
    for block in writers:
        pairs = zip(block.iters, block.bindings, strict=True)
        if any(
            it.kind is IterKind.REDUCE and loop.var in free_vars(binding) for it, binding in pairs
        ):
            return False
        if not _reads_own_part(block, buffer, loop.var):
            return False
        if block.role is Role.COPY and not _copies_whole_sums(block, loop):
            return False
    parts = [b for b in writers if b.role is not Role.INIT]
    if len({b.name for b in parts}) > 1 and not _parts_suffice(loop, buffer, parts):
        return False
    if len(parts) == 1 and _reads_behind(loop, buffer, parts[0]):
        return False
    return len(blocks(loop.body)) > len(writers) or any(b.is_ordered for b in writers)


def below_tests(body: Stmt) -> Stmt:
    """What stands in the body of a loop below the tests of dims that end it."""
    while isinstance(body, If) and body.orelse is None and names_dim(body.condition):
        body = body.then
    return body


def _parts_suffice(loop: For, buffer: Buffer, parts: Sequence[Block]) -> bool:
    """Whether several blocks that make a tensor write, in each iteration of a loop, all that others
    read in it. What a rolling buffer keeps from the iteration before is read and not written.

    A part counts where its box moves as that which is read does, and where its conditions on the
    iteration are those of all readers, too. Parts are joined along one axis.
    """
    moving = {n.var: (0, n.extent - 1) for n in statements(loop.body) if isinstance(n, For)}
    reading = (b for b in blocks(loop.body) if any(x.buffer is buffer for x in loads(b.body)))
    own = set(map(id, parts))
    readers = [b for b in reading if id(b) not in own]
    read = [at for reader in readers for at in _touched(reader, buffer, loads)]
    if not read:
        return True
    common = set[Expr].intersection(*(set(_conditions_on(loop, b)) for b in readers))
    counted = [
        region(_touched(part, buffer, stores), moving, {}, buffer.shape)
        for part in parts
        if common.issuperset(_conditions_on(loop, part))
    ]
    cut = 0  # axes along which some part is not enough alone
    for axis, wanted in enumerate(region(read, moving, {}, buffer.shape)):
        found = []
        for box in counted:
            offset = linear(box[axis].low) - linear(wanted.low)
            if not offset.terms:
                found.append((offset.constant, offset.constant + box[axis].extent))
        end = 0
        for low, high in sorted(found):
            end = max(end, high) if low <= end else end
        whole = [low <= 0 and high >= wanted.extent for low, high in found]
        cut += len(whole) < len(counted) or not all(whole)
        if end < wanted.extent or cut > 1:
            return False
    return True


def _reads_behind(loop: For, buffer: Buffer, part: Block) -> bool:
    """Whether others read, along an axis on which what a block writes moves with a loop, more than
    it writes in an iteration: a rolling buffer whose first rows nobody needs.
    """
    moving = {n.var: (0, n.extent - 1) for n in statements(loop.body) if isinstance(n, For)}
    readers = [b for b in blocks(loop.body) if b is not part]
    read = [at for reader in readers for at in _touched(reader, buffer, loads)]
    if not read:
        return False
    written = region(_touched(part, buffer, stores), moving, {}, buffer.shape)
    for own, wanted in zip(written, region(read, moving, {}, buffer.shape), strict=True):
        offset = linear(own.low) - linear(wanted.low)
        if loop.var in free_vars(own.low) and not offset.terms:
            first = offset.constant
            if first > 0 or first + own.extent < wanted.extent:
                return True
    return False


def _touched(
    block: Block, buffer: Buffer, kind: Callable[[Node], tuple[Load | Store, ...]]
) -> list[tuple[Expr, ...]]:
    """The indices at which a block loads from a buffer, or stores to it, in variables of loops."""
    values = {it.var: at for it, at in zip(block.iters, block.bindings, strict=True)}
    found = (item.indices for item in kind(block.body) if item.buffer is buffer)
    return [tuple(substitute(index, values) for index in indices) for indices in found]


def _conditions_on(loop: For, block: Block) -> list[Expr]:
    """The conditions under which an iteration of a loop runs a block below it."""
    around = branch_conditions(enclosing_path(loop, block), block)
    each = (c for condition in (*around, block.predicate) for c in conjuncts(condition))
    return [condition for condition in each if loop.var in free_vars(condition)]


def _copies_whole_sums(copy: Block, loop: For) -> bool:
    """Whether a copy takes out what blocks below the loop accumulate, none of them goes on with it
    in another iteration, and nobody copies it back.
    """
    copied = {load.buffer for load in loads(copy.body)}
    taken_out = {store.buffer for store in stores(copy.body)}
    for block in blocks(loop.body):
        fills = any(store.buffer in copied for store in stores(block.body))
        if fills and any(load.buffer in taken_out for load in loads(block.body)):
            return False
    makers = [
        b
        for b in blocks(loop.body)
        if b.role is Role.COMPUTE and any(s.buffer in copied for s in stores(b.body))
    ]
    carried = (
        it.kind is not IterKind.SPATIAL and loop.var in free_vars(binding)
        for block in makers
        for it, binding in zip(block.iters, block.bindings, strict=True)
    )
    return bool(makers) and not any(carried)


def _reads_own_part(block: Block, buffer: Buffer, var: Var) -> bool:
    """Whether what a recurrence reads of its own tensor has the same place as what it sets, along
    each axis that runs with the loop of `var`, and there is such an axis.
    """
    if not block.is_ordered:
        return True
    moving = {
        it.var
        for it, binding in zip(block.iters, block.bindings, strict=True)
        if var in free_vars(binding)
    }
    own = next(store for store in stores(block.body) if store.buffer is buffer)
    axes = [n for n, at in enumerate(own.indices) if free_vars(at) & moving]
    read = [load.indices for load in loads(block.body) if load.buffer is buffer]
    return bool(axes) and all(at[n] == own.indices[n] for at in read for n in axes)


def branch_conditions(path: Sequence[Node], block: Block) -> Iterator[Expr]:
    """The conditions under which a block is reached, by the branches of a path that it stands
    in.
    """
    for node in path:
        if isinstance(node, If):
            inside = any(b is block for b in blocks(node.then))
            yield node.condition if inside else negated(node.condition)
