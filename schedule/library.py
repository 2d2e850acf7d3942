"""Conveniences made of primitives only: what a schedule author would otherwise write out again and
again.
"""

from __future__ import annotations

from typing import Protocol

from ..tir.func import PrimFunc
from ..tir.stmt import IterKind
from ..tir.target.target import Target
from .errors import Kind, refuse
from .legality.loops import runs_over
from .nest import loops_around, readers
from .trace.references import LoopRef

SPATIAL = IterKind.SPATIAL


class Packer(Protocol):
    """The steps that these conveniences take: a Schedule has them."""

    @property
    def func(self) -> PrimFunc: ...
    @property
    def target(self) -> Target | None: ...
    def loops(self, block: str) -> tuple[LoopRef, ...]: ...
    def extent(self, loop: LoopRef) -> int: ...
    def fuse(self, *loops: LoopRef) -> LoopRef: ...
    def reorder(self, *loops: LoopRef) -> None: ...
    def split(self, loop: LoopRef, factors: tuple[int | None, ...]) -> tuple[LoopRef, ...]: ...
    def add_unit_loop(self, block: str) -> LoopRef: ...
    def bind(self, loop: LoopRef, axis: str) -> None: ...
    def cache_read(self, block: str, buffer: str, name: str | None = None) -> str: ...
    def transform_layout(self, buffer: str, index_map: str) -> tuple[LoopRef, ...]: ...
    def parallel(self, loop: LoopRef) -> None: ...
    def vectorize(self, loop: LoopRef) -> None: ...


def pack(sch: Packer, buffer: str, width: int, name: str | None = None) -> str:
    """Let the reader of `buffer` read it from panels of `width` along its last axis:
    [N/width][...][width].

    Made of cache_read and transform_layout; incomplete panels are padded with 0. For a constant it
    is computed once, when the kernel is built. Returns the new block. Raises: ScheduleError unless
    one block reads the buffer, which has an axis, and `width` is positive.
    """
    func = sch.func
    tensor = next(
        (b for b in (*(p.buffer for p in func.parameters), *func.allocations) if b.name == buffer),
        None,
    )
    users = readers(func, tensor) if tensor is not None else ()
    if tensor is None or len(users) != 1:
        names = ", ".join(f"'{user.name}'" for user in users) or "none"
        raise refuse(
            func,
            f"pack: '{buffer}' is read by {names}; expected exactly one block.",
            code="pack-readers",
            kind=Kind.LIMIT,
            hints=("cache_read and transform_layout pack it for one block at a time.",),
        )
    if not tensor.shape or width < 1:
        raise refuse(
            func,
            f"pack: panels of {width} of '{buffer}', which has {len(tensor.shape)} axes; expected "
            "a positive width and one axis or more.",
            code="pack-width",
            kind=Kind.ARGUMENT,
        )
    block = sch.cache_read(users[0].name, buffer, name or f"{buffer}_packed")
    axes = [f"i{axis}" for axis in range(len(tensor.shape))]
    last = axes[-1]
    panels = ", ".join([f"{last} // {width}", *axes[:-1], f"{last} % {width}"])
    text = f"lambda {', '.join(axes)}: ({panels})"
    loops = sch.transform_layout(block, text)
    if sch.target is not None and sch.target.has_grid:
        deal_out(sch, block)
    else:
        sch.parallel(loops[0])
        sch.vectorize(loops[-1])
    return block


def deal_out(sch: Packer, block: str, threads: int = 256, lanes: int = 1) -> None:
    """Let each thread of a grid compute one element of a block, or `lanes` neighbours, of which the
    last axis is made: its spatial loops, put outermost, are fused and bound to blocks of so many
    threads. Raises: ScheduleError.
    """
    written = sch.func.block(block)
    around = dict(zip(sch.loops(block), loops_around(sch.func, written), strict=True))
    outer = [loop for loop, node in around.items() if runs_over(written, node.var, SPATIAL)]
    outer = outer or [sch.add_unit_loop(block)]
    inner = [loop for loop in around if loop not in outer]
    if lanes > 1:
        outer[-1], lane = sch.split(outer[-1], (None, lanes))
        inner.append(lane)
    if inner:
        sch.reorder(*outer, *inner)
    fused = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    blocks, thread = sch.split(fused, (None, min(threads, sch.extent(fused))))
    sch.bind(blocks, "blockIdx.x")
    sch.bind(thread, "threadIdx.x")
    if lanes > 1:
        sch.vectorize(inner[-1])
