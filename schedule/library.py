"""Conveniences made of primitives only: what a schedule author would otherwise write out again and
again.
"""

from __future__ import annotations

from typing import Protocol

from ..tir.func import PrimFunc
from .errors import refuse
from .nest import readers
from .references import LoopRef


class Packer(Protocol):
    """The steps that these conveniences take: a Schedule has them."""

    @property
    def func(self) -> PrimFunc: ...
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
            hints=("cache_read and transform_layout pack it for one block at a time.",),
        )
    if not tensor.shape or width < 1:
        raise refuse(
            func,
            f"pack: panels of {width} of '{buffer}', which has {len(tensor.shape)} axes; expected "
            "a positive width and one axis or more.",
            code="pack-width",
        )
    block = sch.cache_read(users[0].name, buffer, name or f"{buffer}_packed")
    axes = [f"i{axis}" for axis in range(len(tensor.shape))]
    last = axes[-1]
    panels = ", ".join([f"{last} // {width}", *axes[:-1], f"{last} % {width}"])
    text = f"lambda {', '.join(axes)}: ({panels})"
    loops = sch.transform_layout(block, text)
    sch.parallel(loops[0])
    sch.vectorize(loops[-1])
    return block
