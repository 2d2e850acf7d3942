"""Units: nests below a blockized or tensorized loop, which steps leave as they are.

`check_kept` holds for every step: a unit has the loops that it had, holds one block, and, where an
instruction computes it, still does what the instruction does. So no other check needs to know of
units.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.analysis.linear import linear
from ...tir.conditions import conjuncts
from ...tir.errors import known_names
from ...tir.expr import LE, LT, Expr, Var
from ...tir.func import PrimFunc
from ...tir.instructions.instructions import INSTRUCTIONS, Instruction
from ...tir.instructions.tensor_match import Match, Mismatch, match_intrinsic
from ...tir.instructions.warp_match import WarpMatch, match_warp_product
from ...tir.instructions.warp_products import WarpProduct
from ...tir.stmt import UNITS, Block, For, ForKind, Store, Tail
from ...tir.target.target import Target
from ...tir.text.printer import print_expr
from ...tir.visit import blocks, free_vars, loops_below, statements
from ..errors import Kind, refuse
from ..nest import bound, loops_around, ranges_of

Shape = tuple[tuple[tuple[Var, int, ForKind], ...], tuple[str, ...]]


def check_intrinsic(func: PrimFunc, name: str, target: Target | None) -> Instruction:
    """The intrinsic exists, and the target has it. Returns it."""
    if name not in INSTRUCTIONS:
        raise refuse(
            func,
            f"tensorize: no intrinsic {name!r}; expected one of "
            f"{known_names(str(name), INSTRUCTIONS)}.",
            code="tensorize-intrinsic",
            kind=Kind.ARGUMENT,
        )
    intrinsic = INSTRUCTIONS[name]
    if target is not None and not intrinsic.is_on(target):
        raise refuse(
            func,
            f"tensorize: target '{target}' lacks '{name}'; expected {intrinsic.needs}.",
            code="tensorize-target",
            kind=Kind.ARGUMENT,
            hints=(intrinsic.hint,),
        )
    return intrinsic


def check_one_block(func: PrimFunc, loop: For, primitive: str) -> None:
    """The loop holds loops, each directly in the other, and one block."""
    body = loop.body
    while isinstance(body, For):
        body = body.body
    if isinstance(body, Block):
        return
    names = ", ".join(f"'{block.name}'" for block in blocks(loop)) or "none"
    raise refuse(
        func,
        f"{primitive}: loop '{loop.var.name}' does not hold one block alone below its loops; "
        f"it holds {names}.",
        code="unit-block",
        kind=Kind.ARGUMENT,
        hints=("name a loop further in.",),
    )


def check_definition(
    func: PrimFunc,
    loop: For,
    intrinsic: Instruction,
    primitive: str,
    target: Target | None = None,
) -> None:
    """The nest of a loop is what an intrinsic's definition says, without a condition but those of
    tails, which are known where the loops around it are cut; one of a warp has none at all.

    target: in whose registers the lanes must fit, where there is one.
    """
    (block,) = blocks(loop)
    around = loops_around(func, loop)
    found: Mismatch | Match | WarpMatch
    if isinstance(intrinsic, WarpProduct):
        found = match_warp_product(intrinsic, loop, around, ranges_of(around))
    else:
        found = match_intrinsic(intrinsic, loop, ranges_of(around), target)
    if isinstance(found, Mismatch):
        raise refuse(
            func,
            f"{primitive}: the nest of loop '{loop.var.name}' is not '{intrinsic.name}': "
            f"{found.found}; expected {found.expected}.",
            code="tensorize-match",
            kind=Kind.ARGUMENT,
            hints=(found.hint,) if found.hint else (),
        )
    guards = (*conjuncts(block.predicate), *conjuncts(bound(block, block.counts)))
    if isinstance(found, WarpMatch):
        _check_whole(func, block, (found.lane, *loops_below(found.lane.body)), guards, primitive)
        return
    unit = found.lanes, found.points
    inside = {loop.var for loop in unit}
    for guard in guards:
        if free_vars(guard) & inside and not _is_tail(guard, unit, around):
            raise refuse(
                func,
                f"{primitive}: block '{block.name}' runs only where {print_expr(guard)}; expected "
                "no condition on the loops of an instruction but that of a tail that is cut.",
                code="tensorize-guard",
                kind=Kind.LIMIT,
                hints=(
                    'split with tail="mask", or by divisors of the extents, and keep each loop '
                    "inside of the one that it was split from.",
                ),
            )


def _check_whole(
    func: PrimFunc, block: Block, loops: Sequence[For], guards: Sequence[Expr], primitive: str
) -> None:
    """No condition tells the threads of a warp, or what one of them holds, apart."""
    for guard in guards:
        if free_vars(guard) & {loop.var for loop in loops}:
            raise refuse(
                func,
                f"{primitive}: block '{block.name}' runs only where {print_expr(guard)}; expected "
                "no condition on the loops of a warp's product.",
                code="tensorize-warp-guard",
                kind=Kind.LIMIT,
                hints=("pad_axes lets the block run over whole tiles, of padded factors.",),
            )


def _is_tail(guard: Expr, unit: tuple[For, For], around: tuple[For, ...]) -> bool:
    """Whether a condition of an instruction's lanes, or of its points, is one number at the end of
    loops that are cut there: a sum of their variables and of one of the two loops of `unit`.

    A cut leaves one iteration of a loop undecided, which then stands alone, where a step of the
    loop is worth no less than all that is still open: loops inside, unrolled ones, the unit's own.
    """
    if not isinstance(guard, LT | LE):
        return False
    form = linear(guard.a) - linear(guard.b)
    worth = {atom: abs(coefficient) for atom, coefficient in form.terms}
    own = [loop for loop in unit if loop.var in worth]
    named = [loop for loop in around if loop.var in worth]
    marks = {loop.tail for loop in named}
    whole = worth.keys() == {loop.var for loop in (*named, *own)}
    if len(own) != 1 or not whole or Tail.GUARD in marks:
        return False
    serial = [loop for loop in named if loop.kind is not ForKind.UNROLLED]
    unrolled = [loop for loop in named if loop.kind is ForKind.UNROLLED]
    still = sum(worth[loop.var] * (loop.extent - 1) for loop in (*own, *unrolled))
    for loop in reversed(serial):
        if worth[loop.var] < still:
            return False
        still += worth[loop.var] * (loop.extent - 1)
    return bool(marks & {Tail.PARTITION, Tail.MASK})


def check_kept(before: PrimFunc, after: PrimFunc, primitive: str) -> None:
    """The units of a function are as they were before a step."""
    units = _units(before)
    found = {loop.var: loop for loop in _units(after)}
    left = {block.name for block in after.blocks} if units else set()
    for loop in units:
        now = found.get(loop.var)
        gone = now is None and not any(block.name in left for block in blocks(loop))
        if not gone and (now is None or _shape(now) != _shape(loop)):
            raise refuse(
                before,
                f"{primitive}: loop '{loop.var.name}' is {loop.kind.value}, and the step would "
                "change what is inside; expected it to stay as it is.",
                code="unit-changed",
                kind=Kind.LIMIT,
                hints=(f"call {primitive} before the step that made it {loop.kind.value}.",),
            )
    for loop in found.values():
        if loop.kind is ForKind.TENSORIZED:
            check_definition(after, loop, INSTRUCTIONS[loop.intrinsic], primitive)


def _units(func: PrimFunc) -> list[For]:
    # by identity, since each step asks each loop, and the hash of a member of an Enum takes long
    first, second = UNITS
    return [x for x in loops_below(func.body) if x.kind is first or x.kind is second]


def _shape(loop: For) -> Shape:
    """The loops inside of a unit, and what else but stores stands there."""
    inner = [x for x in statements(loop.body) if not isinstance(x, Store)]
    loops = tuple((x.var, x.extent, x.kind) for x in inner if isinstance(x, For))
    return loops, tuple(type(node).__name__ for node in inner)
