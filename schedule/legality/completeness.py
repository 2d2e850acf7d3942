"""Is what a block reads complete where it reads it?

The theorems: a block that moves finds its operands written (`check_operands`), the parts that it
is cut into do not overlap (`check_parts`), and a copy of a tensor is made after all of its writers
and before all of its readers (`check_before`, `check_only_read`, `check_readers_after`), of what is
stored there (`check_stored`); what runs ahead of a loop reads nothing that the loop computes
(`check_ahead`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.analysis.regions import Span, disjoint
from ...tir.buffer import Buffer
from ...tir.func import PrimFunc, split_allocations
from ...tir.stmt import Block, For, Role, Stmt
from ...tir.visit import blocks
from ..errors import Kind, refuse
from ..nest import buffers_read, readers, root_statement, targets_of, writers
from ..proof.forms.nest import Access
from ..proof.relations.order import ANY, Order, orders_before
from .conflict import SEEN, conflict_notes, flow_notes, runs_twice


def check_operands(
    func: PrimFunc,
    block: Block,
    destination: Stmt,
    primitive: str,
    *,
    given: Sequence[Buffer] = (),
    same_points: bool = False,
) -> None:
    """What the block reads is written before it would run inside the root statement `destination`.

    An operand (other than those `given`) comes from a root statement before the destination. One
    that the destination computes may be complete there in time; that is not looked into. One of the
    block's own nest may be there only in the parts that the nest reads, which later steps would
    take for a whole tensor; so it may come from that nest only where the block stays and reads the
    `same_points` there.
    """
    own = root_statement(func, block)
    order = {id(statement): n for n, statement in enumerate(split_allocations(func.body)[1])}
    for buffer in buffers_read(block):
        for writer in writers(func, buffer) if buffer not in given else ():
            source = root_statement(func, writer)
            if source is own:
                if same_points and destination is own:
                    continue
                raise refuse(
                    func,
                    f"{primitive}: block '{block.name}' reads '{buffer.name}', which block "
                    f"'{writer.name}' computes in its nest; expected it to be complete before.",
                    code="operand-inside",
                    kind=Kind.LIMIT,
                    hints=(f"move or inline '{writer.name}' first.",),
                )
            if source is destination:
                raise refuse(
                    func,
                    f"{primitive}: block '{block.name}' reads '{buffer.name}', which block "
                    f"'{writer.name}' computes in the nest that it would move to; expected it to "
                    "be complete before that nest.",
                    code="operand-inside",
                    kind=Kind.LIMIT,
                    hints=(f"move or inline '{writer.name}' first.",),
                )
            if order[id(source)] > order[id(destination)]:
                raise refuse(
                    func,
                    f"{primitive}: block '{block.name}' reads '{buffer.name}', which block "
                    f"'{writer.name}' computes later; expected it to be complete before.",
                    code="operand-later",
                    kind=Kind.CONFLICT,
                    notes=flow_notes(func, buffer, (writer,), (block,)),
                    hints=(f"move or inline '{writer.name}' first.",),
                )


def check_parts(
    func: PrimFunc,
    after: PrimFunc,
    reader: Block,
    tensor: Buffer,
    parts: Sequence[Span],
    loops: Sequence[For],
) -> None:
    """Different iterations of `loops` complete different parts of a tensor: in `after`, where its
    reader has moved below them, it runs once for each of its points.
    """
    if disjoint(parts, [(loop.var, loop.extent) for loop in loops]):
        return
    notes = runs_twice(after, reader.name, tensor, [loop.var for loop in loops])
    if notes is None:
        return
    still = next(
        (x for x in reversed(loops) if not disjoint(parts, [(x.var, x.extent)])), loops[-1]
    )
    raise refuse(
        func,
        f"reverse_compute_at: iterations of loop '{still.var.name}' do not complete separate parts "
        f"of '{tensor.name}'{'' if notes else SEEN}: its reader would run "
        "more than once for an element.",
        code="reverse-overlap",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=(f"choose a loop outside of '{still.var.name}'.",),
    )


def check_ahead(func: PrimFunc, after: PrimFunc, first: Block, loop: For) -> None:
    """In `after`, the part of a window that now runs ahead of `loop` reads nothing that the loop
    computes.

    func: the function before the step; first: the block of that part in `after`.
    """
    inside = {block.name for block in blocks(loop)}

    def orders(a: Access, b: Access) -> Sequence[Order]:
        later = a.write and a.statement.block.name in inside
        return (ANY,) if later and not b.write and b.statement.block.name == first.name else ()

    operands = {target.name for b in blocks(loop) for target in targets_of(b)}
    read = [buffer.name for buffer in buffers_read(first) if buffer.name in operands]
    notes = conflict_notes(after, orders) if read else None
    if notes is None:
        return
    raise refuse(
        func,
        f"rolling_buffer: block '{first.name}' would read '{read[0]}' ahead of loop "
        f"'{loop.var.name}', which computes it{'' if notes else SEEN}; expected it to be complete "
        "before.",
        code="operand-ahead",
        kind=Kind.CONFLICT,
        notes=notes,
        hints=(f"call rolling_buffer of '{read[0]}' first: along a chain, from its beginning.",),
    )


def check_before(func: PrimFunc, block: Block, tensor: Buffer, primitive: str) -> None:
    """Everyone who writes the tensor has done so before the nest of the block begins."""
    own = root_statement(func, block)
    for writer in writers(func, tensor):
        if root_statement(func, writer) is own:
            raise refuse(
                func,
                _writes_inside(block, tensor, writer, primitive),
                code="writer-inside",
                kind=Kind.CONFLICT,
                notes=flow_notes(func, tensor, (writer,), (block,)),
                hints=(f"call {primitive} before '{writer.name}' is moved there.",),
            )


def check_only_read(func: PrimFunc, block: Block, tensor: Buffer, loop: For) -> None:
    """Nobody writes the tensor in the nest of the block, which is to be staged at `loop` as one
    that is read.
    """
    own = root_statement(func, block)
    for writer in writers(func, tensor):
        if writer in blocks(loop):
            raise refuse(
                func,
                f"stage: block '{block.name}' reads '{tensor.name}', which block '{writer.name}' "
                f"writes below loop '{loop.var.name}'; expected the block that writes it.",
                code="stage-reader",
                kind=Kind.ARGUMENT,
                hints=(
                    f"stage it for '{writer.name}': what stands below the loop reads the staged "
                    "buffer too.",
                ),
            )
        if root_statement(func, writer) is own:
            raise refuse(
                func,
                _writes_inside(block, tensor, writer, "stage"),
                code="writer-beside",
                kind=Kind.LIMIT,
                hints=(f"call stage before '{writer.name}' is moved there.",),
            )


def kept_in_stages(func: PrimFunc, tensor: Buffer) -> dict[Buffer, Block]:
    """The staged buffers in which elements of a tensor are computed and from which nothing brings
    them back, each with a block that computes them.
    """
    copies = [b for b in writers(func, tensor) if b.role is Role.COPY]
    back = {buffer for block in copies for buffer in buffers_read(block)}
    return {
        target: block
        for block in func.blocks
        for target in targets_of(block)
        if block.role is Role.COMPUTE and target.origin is tensor and target not in back
    }


def check_stored(func: PrimFunc, after: PrimFunc, copy: str, tensor: Buffer) -> None:
    """In `after`, which a stage made of `func`, the block `copy` reads no element of a tensor that
    has been computed in a staged buffer and stays there.
    """
    for staged, block in kept_in_stages(after, tensor).items():

        def orders(a: Access, b: Access, staged: Buffer = staged) -> Sequence[Order]:
            ours = b.statement.name == copy and b.buffer is tensor and not b.write
            made = a.write and a.buffer is staged and a.statement.role is Role.COMPUTE
            return orders_before(a.statement, b.statement) if ours and made else ()

        notes = conflict_notes(after, orders, anywhere=True)
        if notes is None:
            continue
        raise refuse(
            func,
            f"stage: the copy '{copy}' would read more of '{tensor.name}' than its readers do"
            f"{'' if notes else SEEN}, elements that block '{block.name}' computes in "
            f"'{staged.name}' and that stay there.",
            code="stage-part",
            kind=Kind.LIMIT,
            notes=notes,
            hints=(
                "split without a tail, or choose a loop further in, so that the box that is copied "
                "is what is read.",
            ),
        )


def _writes_inside(block: Block, tensor: Buffer, writer: Block, primitive: str) -> str:
    return (
        f"{primitive}: block '{writer.name}' writes '{tensor.name}' in the nest of block "
        f"'{block.name}'; expected it to be complete before the nest begins."
    )


def check_readers_after(func: PrimFunc, block: Block, tensor: Buffer, primitive: str) -> None:
    """Everyone who reads the tensor does so after the nest of the block."""
    own = root_statement(func, block)
    for reader in readers(func, tensor):
        if root_statement(func, reader) is own:
            raise refuse(
                func,
                f"{primitive}: block '{reader.name}' reads '{tensor.name}' in the nest of block "
                f"'{block.name}'; expected readers to stand after the nest.",
                code="reader-inside",
                kind=Kind.CONFLICT,
                notes=flow_notes(func, tensor, (block,), (reader,)),
                hints=(f"call {primitive} before '{reader.name}' is moved there.",),
            )
