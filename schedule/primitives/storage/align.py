"""Primitive storage_align: how far apart the rows of a tensor lie in memory."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ....tir.buffer import Alignment, Buffer
from ....tir.func import PrimFunc
from ....tir.visit import replace_buffers
from ...drawing import Arguments, ScheduleView, choose_tensor
from ...errors import Kind, refuse
from ...nest import Rewrite, buffers_read, targets_of
from ..parameters import PLAIN, STORAGE
from ..primitive import Primitive, nothing


def storage_align(
    func: PrimFunc, buffer: Buffer, axis: int, factor: int, offset: int = 0
) -> Rewrite:
    """Let the stride of `axis` be the least one that leaves `offset` when divided by `factor`.

    P = alloc(float32[64, 1024])   ->   P = alloc(float32[64, 1024], align={0: (1024, 16)})

    Here rows lie 1040 elements apart, so a tile of neighbouring columns does not meet in one set of
    a cache. Strides are those of the storage that lowering leaves; they count elements, and those
    of the axes inside come first. No value changes; the tensor shares its storage with no other.
    Requires: memory that the function allocates in each call; an axis before the last one, whose
    elements stay neighbours; 0 <= offset < factor. Raises: ScheduleError.
    """
    _check_allocated(func, buffer)
    _check_axis(func, buffer, axis)
    _check_factor(func, buffer, factor, offset)
    others = tuple(item for item in buffer.aligned if item.axis != axis)
    aligned = sorted((*others, Alignment(axis, factor, offset)), key=lambda item: item.axis)
    moved = {buffer: replace(buffer, aligned=tuple(aligned))}
    for copy in func.allocations:  # staged copies name what they keep closer
        if copy.origin in moved:
            moved[copy] = replace(copy, origin=moved[copy.origin])
    return Rewrite(func.with_body(replace_buffers(func.body, moved)))


def _check_allocated(func: PrimFunc, buffer: Buffer) -> None:
    """The buffer is memory of each call: no parameter, no register, nothing that is computed when
    the kernel is built.
    """
    if buffer not in func.allocations:
        wrong, hint = "is a parameter of the function", "cache_read or cache_write makes a copy."
    elif buffer.scope == "register":
        wrong, hint = "lives in registers, which have no strides", "set_scope names a memory."
    elif buffer.swizzled:
        wrong, hint = "is swizzled, in dense rows", "either one keeps rows apart in the banks."
    elif buffer.scope == "global" and buffer in _made_once(func):
        wrong = "is made of constants alone, once, and handed to each call as a dense array"
        hint = "transform_layout or pad gives it another form."
    else:
        return
    raise refuse(
        func,
        f"storage_align: '{buffer.name}' {wrong}; expected memory that each call allocates.",
        code="align-storage",
        kind=Kind.ARGUMENT,
        hints=(hint,),
    )


def _made_once(func: PrimFunc) -> frozenset[Buffer]:
    """The constants, and the tensors that are computed from nothing else."""
    made = set(func.constants)
    for block in func.blocks:
        read = buffers_read(block)
        if read and made.issuperset(read):
            made.update(targets_of(block))
    return frozenset(made)


def _check_axis(func: PrimFunc, buffer: Buffer, axis: int) -> None:
    """The buffer has the axis, and another one inside of it."""
    last = len(buffer.shape) - 1
    if type(axis) is int and 0 <= axis < last:
        return
    known = f"0 <= axis < {last}" if last > 0 else "a tensor of two axes or more"
    raise refuse(
        func,
        f"storage_align: axis {axis!r} of '{buffer.name}' of rank {last + 1}; expected {known}: "
        "the elements of the last axis stay neighbours.",
        code="align-axis",
        kind=Kind.ARGUMENT,
    )


def _check_factor(func: PrimFunc, buffer: Buffer, factor: int, offset: int) -> None:
    """Some number leaves `offset` when it is divided by `factor`."""
    numbers = type(factor) is int and type(offset) is int
    if numbers and 0 <= offset < factor:
        return
    raise refuse(
        func,
        f"storage_align: factor is {factor!r} and offset {offset!r} for '{buffer.name}'; expected "
        "integers with 0 <= offset < factor.",
        code="align-factor",
        kind=Kind.ARGUMENT,
        hints=("a stride of n * factor + offset elements is what they ask for.",),
    )


def draw_storage_align(sch: ScheduleView, rng: Random) -> Arguments:
    """An allocation of several axes, nearly always."""
    allocated = [b for b in sch.func.allocations if len(b.shape) > 1]
    if not allocated or rng.random() < 0.05:
        return {"buffer": choose_tensor(sch, rng), "axis": rng.randint(-1, 2), "factor": 8}
    buffer, factor = rng.choice(allocated), rng.randint(1, 9)
    axis = rng.randrange(len(buffer.shape) - 1)
    return {
        "buffer": buffer.name,
        "axis": axis,
        "factor": factor,
        "offset": rng.randrange(factor),
    }


STORAGE_ALIGN = Primitive(
    "storage_align",
    storage_align,
    {"buffer": STORAGE, "axis": PLAIN, "factor": PLAIN, "offset": PLAIN},
    gives=nothing,
    draw=draw_storage_align,
)
