"""Replace tensorized nests by the instructions that compute them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ....tir.analysis.linear import Ranges
from ....tir.analysis.simplify import simplify
from ....tir.conditions import all_of, conjuncts
from ....tir.errors import InternalError, TargetError
from ....tir.expr import LT, TRUE, Call, Expr, Var, floordiv, floormod, index
from ....tir.func import PrimFunc
from ....tir.instructions.instructions import INSTRUCTIONS
from ....tir.instructions.tensor_intrinsics import TensorIntrinsic
from ....tir.instructions.tensor_match import Match, Operand, match_intrinsic
from ....tir.instructions.warp_products import WarpProduct
from ....tir.instructions.word_bits import WordBits
from ....tir.lowered import Broadcast, Reinterpret
from ....tir.stmt import For, ForKind, If, Stmt, Store
from ....tir.target.target import Target
from ....tir.visit import free_vars, loads, substitute
from .vector_body import VectorBody
from .warp_sums import warp_sum


@dataclass(frozen=True, slots=True)
class Tensorize:
    """Turn each TENSORIZED loop into one store of what its intrinsic makes of vectors.

    for j in tensorized(16, intrinsic="vpdpbusd"): for k in range(4): C[j] += A[k] * B[4*j + k]
    ->  C[ramp(0, 1, 16)] = vpdpbusd(C[ramp(0, 1, 16)],
                                     broadcast(reinterpret(A[ramp(0, 1, 4)], "int32"), 16),
                                     reinterpret(B[ramp(0, 1, 64)], "int32x16"))

    An operand of numbers of few bits in words becomes a shift and a conjunction of these
    (tir/instructions/word_bits.py). A product of a warp becomes a WarpSum (warp_sums.py).

    A condition on the lanes becomes a mask of what is stored. One on the points takes zeros for
    those that are off, so that nothing is added; memory that is off is not read, but for words that
    a buffer has.
    Requires: stage NEST without blocks. Ensures: no loop is TENSORIZED.
    Raises: TargetError where the target lacks the intrinsic, or registers of so many lanes.
    """

    target: Target

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return func.with_body(self._stmt(func.body, ()))

    def _stmt(self, stmt: Stmt, around: tuple[For, ...]) -> Stmt:
        if isinstance(stmt, For) and stmt.kind is ForKind.TENSORIZED:
            return self._unit(stmt, around)
        inner = (*around, stmt) if isinstance(stmt, For) else around
        return stmt.map_children(lambda c: self._stmt(c, inner) if isinstance(c, Stmt) else c)

    def _unit(self, loop: For, around: Sequence[For]) -> Stmt:
        ranges = {outer.var: (0, outer.extent - 1) for outer in around}
        intrinsic = INSTRUCTIONS[loop.intrinsic]
        if not intrinsic.is_on(self.target):
            raise TargetError(
                f"loop '{loop.var.name}' is computed by '{intrinsic.name}', which '{self.target}' "
                f"lacks; expected {intrinsic.needs}.",
                code="lower-intrinsic",
                hints=(intrinsic.hint,),
            )
        if isinstance(intrinsic, WarpProduct):
            return warp_sum(intrinsic, loop, around, ranges)
        nest, conditions, inner = _without_guards(loop)
        found = match_intrinsic(intrinsic, nest, ranges)
        if not isinstance(found, Match):
            raise InternalError(
                f"tensorize: the nest of loop '{loop.var.name}' is no longer '{intrinsic.name}': "
                f"{found.found}; expected {found.expected}.",
                code="lower-tensorize",
            )
        if found.lanes.extent not in intrinsic.lanes_on(self.target):
            lanes = " or ".join(map(str, intrinsic.lanes_on(self.target)))
            raise TargetError(
                f"'{intrinsic.name}' computes {found.lanes.extent} lanes of loop "
                f"'{loop.var.name}', more than a register of '{self.target}' holds; expected "
                f"{lanes}.",
                code="lower-lanes",
                hints=("schedule for the target: Schedule(func, target) refuses such a step.",),
            )
        store = _store(intrinsic, found, inner, ranges)
        return If(all_of(*conditions), store) if conditions else store


def _without_guards(loop: For) -> tuple[For, list[Expr], list[Expr]]:
    """The nest without conditions; those that all its points share, and the others."""
    shared: list[Expr] = []
    inner: list[Expr] = []
    bound: set[Var] = set()

    def inside(stmt: Stmt) -> Stmt:
        if isinstance(stmt, If) and stmt.orelse is None:
            for condition in conjuncts(stmt.condition):
                (inner if free_vars(condition) & bound else shared).append(condition)
            return inside(stmt.then)
        if isinstance(stmt, For):
            bound.add(stmt.var)
            return stmt.map_children(lambda c: inside(c) if isinstance(c, Stmt) else c)
        return stmt

    nest = inside(loop)
    assert isinstance(nest, For)
    return nest, shared, inner


def _store(
    intrinsic: TensorIntrinsic, found: Match, conditions: Sequence[Expr], ranges: Ranges
) -> Stmt:
    """What the nest stores, with a lane per iteration of its outer loop."""
    lanes = found.lanes.extent
    lane = Var(found.lanes.var.name)
    body = VectorBody(lane, lanes, ranges)
    own = substitute(found.store, {found.lanes.var: lane})
    of_lanes = [c for c in conditions if found.points.var not in free_vars(c)]
    on = substitute(all_of(*of_lanes), {found.lanes.var: lane}) if of_lanes else None
    (accumulator,) = (load for load in loads(own.value) if load.buffer is own.buffer)
    operands = (
        _operand(intrinsic, found, operand, conditions, ranges) for operand in found.operands
    )
    value = Call(intrinsic, (body.vector(accumulator, on), *operands))
    written = body.stmt(replace(own, value=accumulator, mask=None), on)
    assert isinstance(written, Store)
    return replace(written, value=value)


def _operand(
    intrinsic: TensorIntrinsic,
    found: Match,
    operand: Operand,
    conditions: Sequence[Expr],
    ranges: Ranges,
) -> Expr:
    """The bits of an operand, as many elements as neighbours as the lanes, or all of them, read."""
    assert intrinsic.carried is not None
    points, lanes = intrinsic.points, found.lanes.extent
    if operand.bits is not None:
        return _numbers(found, operand.bits, conditions, ranges)
    count = points * lanes if operand.lanes_differ else points
    element = Var(operand.load.buffer.name)
    number: dict[Var, Expr] = {
        found.lanes.var: floordiv(element, index(points)) if operand.lanes_differ else index(0),
        found.points.var: floormod(element, index(points)) if operand.lanes_differ else element,
    }
    own = {found.points.var} | ({found.lanes.var} if operand.lanes_differ else set())
    masks = [substitute(c, number) for c in conditions if free_vars(c) & own]
    on = all_of(*masks) if masks else None
    vector = VectorBody(element, count, ranges).vector(substitute(operand.load, number), on)
    if operand.lanes_differ:
        return Reinterpret(vector, intrinsic.carried.with_lanes(lanes))
    return Broadcast(Reinterpret(vector, intrinsic.carried), lanes)


def _numbers(found: Match, bits: WordBits, conditions: Sequence[Expr], ranges: Ranges) -> Expr:
    """The numbers that words have, a word for each lane. Of points that are off they count nothing:
    the other operand is 0 there. Lanes that are off read words, too, where there are some.
    """
    lane = Var(found.lanes.var.name)
    own = [c for c in conditions if found.points.var not in free_vars(c)]
    here: dict[Var, Expr] = {found.lanes.var: lane}
    on = substitute(all_of(*own), here) if own else None
    known = {**ranges, found.lanes.var: (0, found.lanes.extent - 1)}
    word = bits.word
    ends = zip(word.indices, word.buffer.shape, strict=True)
    if all(simplify(LT(item, index(extent)), known) == TRUE for item, extent in ends):
        on = None
    body = VectorBody(lane, found.lanes.extent, ranges)
    return body.vector(substitute(bits.together, here), on)
