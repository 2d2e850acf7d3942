"""Attention: each row of queries reads the values, weighted by the softmax of its products with the
keys.

The heads of each operand may stand anywhere: in an array of their own, or side by side with others
in the result of one product. So nothing is moved before or behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...tir.expr import Expr
from ...tir.sizes import AnySize, closed, largest
from ...tir.te import te
from ...tir.te.te import Tensor
from ..types import Array, Shape, TensorType
from .base import (
    Operator,
    OperatorRole,
    ReferenceWork,
    check_arity,
    check_float,
    listed,
    product_work,
    refuse,
    shape_of,
    tensor_type,
)
from .elementwise import broadcast, broadcast_read
from .softmax import exponential, power

Weight = Callable[[Expr, Expr], Expr]  # of a score, beside the largest of its row

_LEAST = {"float64": -708.0}  # of a power that is a normal number; of other types that of float32


def weight(score: Expr, largest: Expr) -> Expr:
    """e ** (score - largest), or 0 where that is less than the least normal number: beside the
    largest, whose weight is 1, it counts for nothing, and processors take a hundred times as long
    for products with it. A mask of -100 makes such weights; scores without a mask do not lie so far
    apart, and the comparison takes a twentieth of their attention.
    """
    below = score - largest
    return te.select(below < _LEAST.get(str(score.dtype), -87.0), 0.0, power(below))


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the heads of an array of four axes stand.

    first: the number of the first of them. outer: whether the array is [batch, head, place, depth]
    and not [batch, place, head, depth].
    """

    first: int = 0
    outer: bool = False

    def shape(self, array: Shape) -> tuple[AnySize, AnySize, AnySize, AnySize]:
        """(batch, heads, places, depth) of an array of that shape, all heads counted."""
        batch, second, third, depth = array
        return (batch, second, third, depth) if self.outer else (batch, third, second, depth)

    def taken(self, array: Array, heads: int) -> Array:
        """[batch, head, place, depth] of the heads that are meant."""
        found = array if self.outer else array.transpose(0, 2, 1, 3)
        return found[:, self.first : self.first + heads]

    def element(self, tensor: Tensor, head: Expr, *others: Expr) -> Expr:
        """The element at (batch, place, depth) of a head that is meant."""
        batch, place, depth = others
        own = head + self.first if self.first else head
        return tensor[batch, own, place, depth] if self.outer else tensor[batch, place, own, depth]


@dataclass(frozen=True, slots=True)
class Attention(Operator):
    """softmax(scale * q @ k' + mask) @ v for each of `heads` heads.

    Inputs: q of s places, k and v of t places, each with four axes as query, key and value say;
    where wanted a mask that broadcasts to [batch, heads, s, t].
    guarded: what the softmax would make NaN, rows without a finite largest score, becomes 0.
    outer: whether the result is [batch, head, place, depth] and not [batch, place, head, depth].
    masked: rows whose scores are all -inf, as a mask makes them, become 0, and no others.
    """

    heads: int
    scale: float
    query: Heads = Heads()
    key: Heads = Heads()
    value: Heads = Heads()
    guarded: bool = False
    outer: bool = False
    masked: bool = False

    role = OperatorRole.GENERAL
    operand_names = ("q", "k", "v", "mask")

    def infer(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        check_arity(self, types, 3, 4)
        check_float(self, types)
        if any(type_.rank != 4 for type_ in types[:3]):
            refuse(self, f"expected arrays of four axes, got {listed(types)}", code="heads-rank")
        found = [
            heads.shape(type_.shape)
            for heads, type_ in zip((self.query, self.key, self.value), types, strict=False)
        ]
        (batch, _, rows, _), (_, _, places, _), (*_, depth) = found
        firsts = (self.query.first, self.key.first, self.value.first)
        fits = all(
            first >= 0 and first + self.heads <= closed(shape[1])
            for first, shape in zip(firsts, found, strict=True)
        )
        same = len({shape[0] for shape in found}) == 1 and places == found[2][2]
        if not fits or not same or found[0][3] != found[1][3] or self.heads < 1:
            problem = f"expected {self.heads} heads of q, k and v that fit, got {listed(types)}"
            refuse(self, problem, code="heads-fit")
        scores = TensorType(types[0].dtype, (batch, self.heads, rows, places))
        if len(types) == 4 and broadcast(self, (scores, types[3])) != scores:
            refuse(self, f"expected a mask that broadcasts to {scores}", code="heads-mask")
        middle = (self.heads, rows) if self.outer else (rows, self.heads)
        return (TensorType(types[0].dtype, (batch, *middle, depth)),)

    def work(self, types: tuple[TensorType, ...]) -> ReferenceWork:
        (batch, _, rows, depth), (*_, places, width) = (
            heads.shape(type_.shape)
            for heads, type_ in zip((self.query, self.value), (types[0], types[2]), strict=True)
        )
        scores = largest(batch * self.heads * rows * places)
        base = Operator.work(self, types)
        held = ReferenceWork(base.held + 4 * scores, base.steps + 4 * scores)
        return product_work(held, scores * largest(depth + width))

    def reference(self, *arrays: Array) -> tuple[Array, ...]:
        places = (self.query, self.key, self.value)
        q, k, v = (h.taken(x, self.heads) for h, x in zip(places, arrays[:3], strict=True))
        with np.errstate(all="ignore"):
            scores = np.matmul(q, k.swapaxes(2, 3)) * q.dtype.type(self.scale)
            if len(arrays) == 4:
                scores = scores + arrays[3]
            largest = scores.max(axis=3, keepdims=True, initial=-np.inf)
            powers = np.exp(scores - largest)
            weights = powers / powers.sum(axis=3, keepdims=True)
            if self.guarded:
                weights = np.where(np.isnan(weights), weights.dtype.type(0), weights)
            if self.masked:
                weights = np.where(largest == -np.inf, weights.dtype.type(0), weights)
            y = np.matmul(weights, v)
        return (np.ascontiguousarray(y if self.outer else y.transpose(0, 2, 1, 3)),)

    def express(self, *tensors: Tensor, name: str) -> tuple[Tensor, ...]:
        q, k, v, *mask = tensors
        (result,) = self.infer(tuple(map(tensor_type, tensors)))
        batch, _, rows, depth = self.query.shape(shape_of(q))
        *_, places, width = self.value.shape(shape_of(v))
        kind, shape = str(q.dtype), (batch, self.heads, rows, places)
        # columns of scores lie side by side, so that the products run along them in vectors
        turned = te.compute(
            (batch, self.heads, depth, places),
            lambda b, h, d, t: self.key.element(k, h, b, t, d) * te.const(self.scale, kind),
            name=f"{name}_keys",
        )
        d, t = te.reduce_axis(depth, name="d"), te.reduce_axis(places, name="t")
        scores = te.compute(
            shape,
            lambda b, h, s, t: te.sum(
                self.query.element(q, h, b, s, d) * turned[b, h, d, t], axis=d
            ),
            name=f"{name}_scores",
        )
        if mask:
            products = scores
            scores = te.compute(
                shape, lambda *i: products[i] + broadcast_read(mask[0], i), name=f"{name}_masked"
            )
        powers, inverse = self._softmax(scores, weight if mask else exponential, name)
        mixed = te.compute(
            (batch, self.heads, rows, width),
            lambda b, h, s, d: te.sum(
                powers[b, h, s, t] * self.value.element(v, h, b, t, d), axis=t
            ),
            name=f"{name}_mixed",
        )

        def element(*i: Expr) -> Expr:
            b, h, s, d = i if self.outer else (i[0], i[2], i[1], i[3])
            return inverse[b, h, s] * mixed[b, h, s, d]

        return (te.compute(result.shape, element, name=name),)

    def _softmax(self, scores: Tensor, weigh: Weight, name: str) -> tuple[Tensor, Tensor]:
        """The powers of each row, and what makes their sum 1."""
        shape = shape_of(scores)
        t, kept = te.reduce_axis(shape[3], name="t"), shape[:3]
        largest = te.compute(
            kept, lambda b, h, s: te.max_any(scores[b, h, s, t], axis=t), name=f"{name}_max"
        )

        def element(*i: Expr) -> Expr:
            own = largest[i[:3]]
            found = weigh(scores[i], own)
            if self.guarded:
                return te.select(te.eq(own - own, 0.0), found, 0.0)
            return te.select(te.eq(own, -float("inf")), 0.0, found) if self.masked else found

        powers = te.compute(shape, element, name=f"{name}_exp")
        u = te.reduce_axis(shape[3], name="t")
        total = te.compute(
            kept, lambda b, h, s: te.sum(powers[b, h, s, u], axis=u), name=f"{name}_sum"
        )

        def inverse(*i: Expr) -> Expr:
            found = 1.0 / total[i]  # of at least 1, where it is not the 0 of a guarded row
            if self.guarded:
                return te.select(total[i] > 0.0, found, 0.0)
            return te.select(te.eq(total[i], 0.0), 0.0, found) if self.masked else found

        return powers, te.compute(kept, inverse, name=f"{name}_scale")
