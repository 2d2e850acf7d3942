"""What a step may do with the axes of a grid: checks that raise a ScheduleError. Nothing here
rewrites.
"""

from __future__ import annotations

from ...tir.analysis.threads import WARP, reduces_over
from ...tir.analysis.update import read_update
from ...tir.buffer import Buffer
from ...tir.errors import known_names
from ...tir.func import PrimFunc
from ...tir.stmt import AXES, BLOCK_AXES, THREAD_AXES, For, ForKind, Stmt
from ...tir.target.target import Target
from ...tir.visit import blocks, loops_below, statements
from ..errors import Kind, refuse
from ..nest import loops_around


def check_axis(func: PrimFunc, loop: For, axis: str) -> None:
    """There is such an axis."""
    if axis in AXES:
        return
    raise refuse(
        func,
        f"bind: axis {axis!r} of loop '{loop.var.name}'; expected one of "
        f"{known_names(str(axis), AXES)}.",
        code="bind-axis",
        kind=Kind.ARGUMENT,
    )


def check_place(func: PrimFunc, loop: For, axis: str) -> None:
    """A loop of blocks stands below other loops of blocks alone, and no loop inside another one of
    its axis; threads of a CPU run no part of a grid.
    """
    around, below = loops_around(func, loop), loops_below(loop.body)
    for other in (*around, *below):
        if other.kind is ForKind.PARALLEL:
            raise refuse(
                func,
                f"bind: loop '{other.var.name}', in the same nest as loop '{loop.var.name}', is "
                "parallel; expected a grid, or threads of a CPU, and not both.",
                code="bind-parallel",
                kind=Kind.ARGUMENT,
            )
        if other.axis == axis:
            raise refuse(
                func,
                f"bind: loop '{other.var.name}', in the same nest as loop '{loop.var.name}', is "
                f"bound to {axis} already.",
                code="bind-twice",
                kind=Kind.ARGUMENT,
                hints=(f"bind one of them to another axis, or fuse them: {', '.join(AXES)}.",),
            )
    if axis in BLOCK_AXES:
        outer = next((x for x in around if not x.is_of_blocks and x.extent != 1), None)
        if outer is not None:
            raise refuse(
                func,
                f"bind: loop '{loop.var.name}' stands inside loop '{outer.var.name}'; expected "
                "loops of blocks alone around a loop of blocks.",
                code="bind-inside",
                kind=Kind.LIMIT,
                hints=(f"reorder '{loop.var.name}' outside of '{outer.var.name}' first.",),
            )


def joins(func: PrimFunc, loop: For, axis: str) -> bool:
    """Whether threads that run the iterations of a loop join what one block computes there; each
    may then have the result.

    Raises: ScheduleError where they would, and that is no tree of the lanes of a warp.
    """
    found = [block for block in blocks(loop.body) if reduces_over(block, loop)]
    if not found or axis not in THREAD_AXES:
        return False
    block = found[0]
    if axis != THREAD_AXES[0]:
        raise refuse(
            func,
            f"bind: block '{block.name}' reduces over loop '{loop.var.name}', and threads along "
            f"{axis} are no neighbours; expected {THREAD_AXES[0]} for those that join values.",
            code="join-axis",
            kind=Kind.LIMIT,
            hints=(f"bind it to {THREAD_AXES[0]}, and the kept axes to others.",),
        )
    if loop.extent > WARP or loop.extent & (loop.extent - 1):
        raise refuse(
            func,
            f"bind: block '{block.name}' reduces over the {loop.extent} iterations of loop "
            f"'{loop.var.name}'; expected a power of two up to {WARP}, the threads of a warp.",
            code="join-lanes",
            kind=Kind.LIMIT,
            hints=(f"split it, rfactor the part of {WARP}, and bind the loop over the parts.",),
        )
    around = (*loops_around(func, loop), loop)
    reduced = [x for x in around if reduces_over(block, x)]
    plain = block.init is not None and read_update(block) is not None
    if loop.body is not block or len(reduced) > 1 or not plain:
        names = ", ".join(f"'{x.var.name}'" for x in reduced)
        raise refuse(
            func,
            f"bind: threads of loop '{loop.var.name}' would join values of block '{block.name}', "
            f"which reduces over {names}; expected a block that reduces over this loop alone, the "
            "innermost, with its initialisation inside.",
            code="join-block",
            kind=Kind.LIMIT,
            hints=("rfactor first: the new block joins one part of each thread.",),
        )
    return True


def check_limits(func: PrimFunc, loop: For, target: Target | None) -> None:
    """The nest of a bound loop has no more blocks and threads than the target allows."""
    limits = None if target is None else target.limits
    if target is None or limits is None:
        return
    root = (*loops_around(func, loop), loop)[0]
    threads = extents(root, THREAD_AXES)
    for number, axis in enumerate(AXES):
        most = (*limits.blocks, *limits.threads)[number]
        if loop.axis == axis and loop.extent > most:
            raise refuse(
                func,
                f"bind: loop '{loop.var.name}' has {loop.extent} iterations; expected at most "
                f"{most} along {axis} of {target.isa}.",
                code="bind-extent",
                kind=Kind.ARGUMENT,
                hints=(f"split it first: split({loop.var.name}, (None, {most})).",),
            )
    count = threads[0] * threads[1] * threads[2]
    if count > limits.threads_per_block:
        raise refuse(
            func,
            f"bind: with loop '{loop.var.name}' a block has {' x '.join(map(str, threads))} = "
            f"{count} threads; expected at most {limits.threads_per_block} on {target.isa}.",
            code="bind-threads",
            kind=Kind.ARGUMENT,
            hints=("bind a loop of fewer iterations: split it, and let a thread run a part.",),
        )


def extents(stmt: Stmt, axes: tuple[str, ...]) -> tuple[int, ...]:
    """The largest extent of the loops of each axis in a statement; 1 where there is none."""
    loops = [node for node in statements(stmt) if isinstance(node, For)]
    return tuple(max([x.extent for x in loops if x.axis == axis], default=1) for axis in axes)


def check_shared(func: PrimFunc, tensor: Buffer, loop: For, primitive: str) -> None:
    """What is shared by the threads of a block is allocated below a loop of blocks, and outside of
    the loops of its threads.
    """
    around = (*loops_around(func, loop), loop)
    threads = next((x for x in around if x.is_of_threads), None)
    if threads is None and any(x.is_of_blocks for x in around):
        return
    what = (
        f"all accesses to it stand below loop '{threads.var.name}', of {threads.axis}"
        if threads is not None
        else "no loop of blocks holds all accesses to it"
    )
    raise refuse(
        func,
        f"{primitive}: '{tensor.name}' is to be shared by the threads of a block, but {what}; "
        "expected a loop of blocks around, and the loops of threads inside.",
        code="scope-shared",
        kind=Kind.LIMIT,
        hints=("bind the loop of blocks first; compute_at a loop outside of those of threads.",),
    )
