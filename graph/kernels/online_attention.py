"""Attention tile by tile of the keys, for machines on which the scores of all keys are too many to
keep: each tile has its own largest score, and what the tiles give is joined as a sum is.

A tile t of scores x gives m = max x, l = sum of exp(x - m) and o = sum of exp(x - m) v. Two such
triples join to one of both tiles: the largest m, and l and o each times exp(own m - largest m),
added up. That is associative and commutative, so the tiles are a reduction like any other, and
o / l of all of them is the result. Milakov and Gimelshein, "Online normalizer calculation for
softmax" (2018); Dao, Fu, Ermon, Rudra and Re, "FlashAttention" (2022).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ...tir.expr import Expr
from ...tir.sizes import AnySize, Size, axis_of, closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..ops.attention import Attention, Heads, Weight, weight
from ..ops.base import shape_of, tensor_type
from ..ops.elementwise import broadcast_read
from ..ops.softmax import exponential, power
from .fused_kernel import FusedKernel, KernelStep

TILE = 64  # keys
FEWEST_ROWS = 8  # of queries, for which tiles of keys pay


@dataclass(frozen=True, slots=True)
class OnlineAttention(Attention):
    """An Attention that takes `tile` keys at a time. Its shape rule and its NumPy meaning are those
    of the operator.
    """

    tile: int = TILE

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        q, k, v, *mask = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        batch, _, rows, depth = self.query.shape(shape_of(q))
        *_, open_places, width = self.value.shape(shape_of(v))
        places = closed(open_places)
        tiles, kept = -(-places // self.tile), (batch, self.heads, rows)
        keys = _whole(k, self.key, self.heads, tiles * self.tile, f"{name}_keys")
        values = _whole(v, self.value, self.heads, tiles * self.tile, f"{name}_values")
        d = te.reduce_axis(depth, name="d")
        products = te.compute(
            (*kept, tiles, self.tile),
            lambda b, h, s, n, t: te.sum(
                self.query.element(q, h, b, s, d) * keys[b, h, n * self.tile + t, d], axis=d
            ),
            name=f"{name}_products",
        )

        def score(b: Expr, h: Expr, s: Expr, n: Expr, t: Expr) -> Expr:
            place = n * self.tile + t
            found = products[b, h, s, n, t] * te.const(self.scale, str(q.dtype))
            if mask:
                found = found + broadcast_read(mask[0], (b, h, s, place))
            return te.select(place < places, found, te.const(-float("inf"), str(q.dtype)))

        scores = te.compute(shape_of(products), score, name=f"{name}_scores")
        joined = self._joined(scores, values, width, weight if mask else exponential, name)

        def element(*i: Expr) -> Expr:
            b, h, s, c = i if self.outer else (i[0], i[2], i[1], i[3])
            largest, total, mixed = (part[b, h, s, c] for part in joined)
            found = mixed * (1.0 / total)
            if self.masked:
                return te.select(te.eq(total, 0.0), 0.0 * mixed, found)
            if not self.guarded:
                return found
            sound = te.all_of(te.eq(largest - largest, 0.0), total > 0.0)
            return te.select(sound, found, 0.0 * mixed)

        return (te.compute(result.shape, element, name=name),)

    def _joined(
        self, scores: Tensor, values: Tensor, width: AnySize, weigh: Weight, name: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The largest score, the sum and the mixed values of each row, of all tiles."""
        *kept, tiles, tile = shape_of(scores)
        t, u, w = (te.reduce_axis(tile, name=axis) for axis in "tuw")
        n = te.reduce_axis(tiles, name="n")
        each = (*kept, tiles)
        largest = te.compute(
            each, lambda *i: te.max_any(scores[(*i, t)], axis=t), name=f"{name}_max"
        )

        def element(*i: Expr) -> Expr:
            own = largest[i[:-1]]
            nothing = te.ne(own - own, 0.0) if self.guarded else te.eq(own, -float("inf"))
            return te.select(nothing, 0.0, weigh(scores[i], own))

        powers = te.compute(shape_of(scores), element, name=f"{name}_exp")
        sums = te.compute(each, lambda *i: te.sum(powers[(*i, u)], axis=u), name=f"{name}_sum")
        mixed = te.compute(
            (*each, width),
            lambda b, h, s, at, c: te.sum(
                powers[b, h, s, at, w] * values[b, h, at * closed(tile) + w, c], axis=w
            ),
            name=f"{name}_mixed",
        )
        whole = te.compute(
            (*kept, width),
            lambda b, h, s, c: ONLINE(
                (largest[b, h, s, n], sums[b, h, s, n], mixed[b, h, s, n, c]), axis=n
            ),
            name=(f"{name}_largest", f"{name}_total", f"{name}_joined"),
        )
        return whole[0], whole[1], whole[2]


def _join(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Two triples of largest score, sum and mixed value as one."""
    largest = te.maximum(a[0], b[0])
    # of what may be infinite; the choice is within the power, so that the powers are no choices
    below = (te.select(te.eq(own, largest), 0.0, own - largest) for own in (a[0], b[0]))
    first, second = map(power, below)
    return largest, a[1] * first + b[1] * second, a[2] * first + b[2] * second


ONLINE = te.comm_reducer(
    _join, lambda m, total, mixed: (te.const(-float("inf"), m), 0, 0), name="online_softmax"
)


def _whole(tensor: Tensor, heads: Heads, count: int, places: int, name: str) -> Tensor:
    """[batch, head, place, depth] of the heads that are meant, with zeros up to so many places."""
    batch, _, found, depth = heads.shape(shape_of(tensor))
    zero = te.const(0.0, str(tensor.dtype))

    def element(b: Expr, h: Expr, t: Expr, d: Expr) -> Expr:
        own = heads.element(tensor, h, b, t, d)
        return own if found == places else te.select(t < axis_of(found), own, zero)

    return te.compute((batch, count, places, depth), element, name=name)


def as_online(fused: FusedKernel) -> FusedKernel | None:
    """A fused kernel that begins with an attention of several rows, tile by tile of its keys; None
    where it does not.
    """
    first, *rest = fused.steps
    op = first.op
    if type(op) is not Attention or fused.result.elements == 0:
        return None
    types = fused.types
    _, _, rows, _ = op.query.shape(types[first.inputs[0]].shape)
    _, _, places, _ = op.key.shape(types[first.inputs[1]].shape)
    if isinstance(places, Size) or largest(rows) < FEWEST_ROWS:
        return None
    tile = min(TILE, max(16, 1 << (places - 1).bit_length()))
    values = {field.name: getattr(op, field.name) for field in fields(op)}
    return replace(
        fused, steps=(KernelStep(OnlineAttention(**values, tile=tile), first.inputs), *rest)
    )
