"""Primitive rolling_buffer: keep what the next iteration reads, instead of computing it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from ....tir.analysis.linear import linear
from ....tir.analysis.regions import disjoint, region
from ....tir.conditions import conjuncts
from ....tir.expr import Expr, Var, index
from ....tir.func import PrimFunc
from ....tir.stmt import Block, For, ForKind, Stmt, seq
from ....tir.visit import (
    enclosing_path,
    free_vars,
    fresh_copy,
    loops_below,
    replace_stmt,
    substitute,
)
from ...drawing import Arguments, NothingToTry, ScheduleView, choose_loop, choose_pair
from ...errors import Kind, refuse
from ...legality import completeness
from ...legality.blocks import check_compute, check_holds, check_unstaged
from ...legality.loops import check_serial
from ...legality.tensors import check_allocated_outside, check_intermediate
from ...nest import (
    Rewrite,
    bound,
    loop_of,
    loops_around,
    ranges_of,
    target_of,
    unique_name,
    write_indices,
)
from ..parameters import BLOCK, LOOP
from ..primitive import Primitive, one_block


@dataclass(frozen=True, slots=True)
class Window:
    """What an iteration makes of a tensor along one axis: the loop over it, below `nest`, and how
    many of the elements are `new`.
    """

    nest: For
    loop: For
    new: int

    @property
    def again(self) -> int:
        """How many the iteration before has made already."""
        return self.loop.extent - self.new


def rolling_buffer(func: PrimFunc, block: str, loop: Var) -> Rewrite:
    """Let each iteration of `loop` compute only what the iterations before it have not.

    for y in range(n): { for r in range(3): P[y + r];  C(P[y], P[y + 1], P[y + 2]) }
    ->  for r in range(2): P[r]
        for y in range(n): { for r in range(1): P[y + 2 + r];  C(P[y], P[y + 1], P[y + 2]) }

    What only the first iteration makes stands in front of the loop, in a new block of the same
    family. Lowering keeps no more elements than an iteration touches: the indices go round.
    Requires: a block that compute_at moved below `loop`, whose parts overlap along one axis; a
    serial loop; storage that outlives an iteration; operands that the loop does not compute, so
    that a chain of windows rolls from its beginning. Returns the new block. Raises: ScheduleError.
    """
    node = loop_of(func, loop)
    moved = func.block(block)
    check_compute(func, moved, "rolling_buffer")
    check_holds(func, node, moved, "rolling_buffer")
    check_serial(func, node, "rolling_buffer")
    check_intermediate(func, target_of(moved), "rolling_buffer")
    check_unstaged(func, moved, "rolling_buffer")
    check_allocated_outside(func, node, target_of(moved), "rolling_buffer")
    window = _check_window(func, moved, node)
    once = moved if _overlaps(func, moved, node) else replace(moved, recomputed=False)
    first = replace(once, name=unique_name(func, f"{block}_first"))
    ahead = _over(window, moved, first, window.again, {loop: index(0)})
    steady = _over(
        window, moved, once, window.new, {window.loop.var: window.loop.var + window.again}
    )
    changed = replace_stmt(node, window.nest, steady)
    body = replace_stmt(func.body, node, seq(fresh_copy(ahead), changed))
    rolled = func.with_body(body)
    completeness.check_ahead(func, rolled, rolled.block(first.name), node)
    return Rewrite(rolled, blocks=(first.name,))


def _over(window: Window, old: Block, new: Block, extent: int, values: Mapping[Var, Expr]) -> Stmt:
    """The nest of the window with `extent` of its elements: the block `new` for the old one."""
    inner = replace(window.loop, extent=extent, tail=None)
    inner = replace(inner, body=substitute(replace_stmt(window.loop.body, old, new), values))
    return (
        replace_stmt(window.nest, window.loop, inner) if window.nest is not window.loop else inner
    )


def _check_window(func: PrimFunc, block: Block, node: For) -> Window:
    """The block stands below `node` in loops of its own, of which one runs over the elements of an
    axis that an iteration needs, and each iteration needs some that the one before has made.
    """
    path = enclosing_path(node, block)[1:]
    chain = [x for x in path if isinstance(x, For)]
    alone = chain and all(isinstance(x, For) for x in path[path.index(chain[0]) :])
    found = [_window(binding, chain, node) for binding in block.bindings] if alone else []
    windows = [window for window in found if window is not None]
    along = [binding for binding in block.bindings if node.var in free_vars(binding)]
    # else what was made lies elsewhere along another axis, or a split lets a part of the window run
    if len(windows) == len(along) == 1 and not _is_cut(block, windows[0].loop.var, loop=node.var):
        return windows[0]
    raise refuse(
        func,
        f"rolling_buffer: iterations of loop '{node.var.name}' do not each need, along one axis, "
        f"elements of block '{block.name}' that the iteration before has made.",
        code="rolling-window",
        kind=Kind.ARGUMENT,
        hints=(f"compute_at('{block.name}', {node.var.name}) first, before other steps on it.",),
    )


def _is_cut(block: Block, inner: Var, *, loop: Var) -> bool:
    """Whether a block runs in some iterations of `inner` alone, in each of `loop`: those of axes
    that end say something of both.
    """
    used = map(free_vars, conjuncts(block.predicate))
    return any(inner in names and loop not in names for names in used)


def _window(binding: Expr, chain: list[For], node: For) -> Window | None:
    """The window of an axis, node * new + loop + ...; None where it has none, or none that
    overlaps.
    """
    form = linear(binding)
    new = form.coefficient(node.var)
    inner = [loop for loop in chain if form.coefficient(loop.var)]
    if len(inner) != 1 or form.coefficient(inner[0].var) != 1:
        return None
    window = Window(chain[0], inner[0], new)
    plain = inner[0].kind is ForKind.SERIAL and inner[0].tail is None
    return window if plain and new > 0 and window.again > 0 else None


def _overlaps(func: PrimFunc, block: Block, node: For) -> bool:
    """Whether the parts that all iterations of `node` make overlap for different iterations of the
    loops around it.
    """
    target = target_of(block)
    outer = loops_around(func, node)
    written = [tuple(bound(block, item) for item in write_indices(block, target)[0])]
    moving = ranges_of((node, *loops_below(node.body)))
    box = region(written, moving, ranges_of(outer), target.shape)
    return not disjoint(box, [(loop.var, loop.extent) for loop in outer])


def draw_rolling_buffer(sch: ScheduleView, rng: Random) -> Arguments:
    """A block that stands in a loop of its reader, nearly always."""
    block, user = choose_pair(sch, rng)
    around = sch.loops(user)
    shared = [loop for loop in sch.loops(block) if loop in around]
    if not shared and rng.random() < 0.95:
        raise NothingToTry
    return {
        "block": block,
        "loop": rng.choice(shared) if shared else choose_loop(sch, rng, user),
    }


ROLLING_BUFFER = Primitive(
    "rolling_buffer",
    rolling_buffer,
    {"block": BLOCK, "loop": LOOP},
    gives=one_block,
    draw=draw_rolling_buffer,
    weight=2,
)
