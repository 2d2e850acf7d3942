"""Tensor intrinsics: instructions that do a piece of a reduction in each lane, each declared once.

A declaration is a definition in the tensor-expression language: what the instruction does in every
lane, over its few reduction points. It is the pattern that `tensorize` looks for and the meaning
that interpreters execute; the back ends have one expression for it (codegen/c/isa.py). So a nest
keeps its loops, and with them its meaning and its proof, until code is written.

In lowered code an intrinsic is a Call on lanes: the accumulators, then one vector per operand whose
lanes carry, as bits, the elements of that lane's reduction points, the first one lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from . import te
from .array_expr import ArrayEvaluator
from .dtype import INT32, DType
from .func import PrimFunc
from .intrinsics import Intrinsic
from .stmt import IterKind
from .visit import stores

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TensorIntrinsic(Intrinsic):
    """An instruction that updates an accumulator per lane with `points` reduction points.

    define: the definition for a number of lanes: operands of shape [lanes, points], then the result
    of shape [lanes]. lanes: how many one instruction may have, most first.
    isa, feature: the instruction set and the feature of a target that has it.
    carried: the type whose bits hold the points of one lane of an operand.
    """

    define: Callable[[int], PrimFunc]
    lanes: tuple[int, ...]
    points: int
    isa: str
    feature: str

    def __reduce__(self) -> tuple[Callable[[str], TensorIntrinsic], tuple[str]]:
        return tensor_intrinsic, (self.name,)

    @property
    def target(self) -> str:
        """The instruction set and the feature that have it: "avx512+vnni"."""
        return f"{self.isa}+{self.feature}"


def _run(name: str, accumulators: Array, *operands: Array) -> Array:
    """What an intrinsic makes of accumulators and of the bits of its operands: its definition's
    update, point after point.
    """
    intrinsic = tensor_intrinsic(name)
    assert intrinsic.carried is not None
    result = np.atleast_1d(np.asarray(accumulators))
    func = intrinsic.define(result.size)
    block = func.blocks[0]
    (store,) = stores(block.body)
    arrays = {store.buffer: result.astype(store.buffer.type.numpy)}
    for buffer, bits in zip(func.inputs, operands, strict=True):
        whole = np.atleast_1d(np.asarray(bits)).astype(intrinsic.carried.numpy)
        arrays[buffer] = whole.view(buffer.type.numpy).reshape(buffer.shape)
    (lane,) = (it.var for it in block.iters if it.kind is IterKind.SPATIAL)
    (point,) = (it.var for it in block.iters if it.kind is IterKind.REDUCE)
    for number in range(intrinsic.points):
        values = {lane: np.arange(result.size), point: np.asarray(number)}
        arrays[store.buffer] = ArrayEvaluator(values, arrays).evaluate(store.value)
    return arrays[store.buffer].reshape(np.shape(accumulators))


@cache
def _dot_of_bytes(lanes: int) -> PrimFunc:
    a = te.placeholder((lanes, 4), "uint8", name="a")
    b = te.placeholder((lanes, 4), "int8", name="b")
    q = te.reduce_axis(4, name="q")
    c = te.compute(
        (lanes,),
        lambda lane: te.sum(te.cast(a[lane, q], "int32") * te.cast(b[lane, q], "int32"), axis=q),
        name="c",
    )
    return te.func(a, b, c, name="vpdpbusd")


def _declare(
    name: str, define: Callable[[int], PrimFunc], carried: DType, points: int, feature: str
) -> TensorIntrinsic:
    def meaning(accumulators: Array, *operands: Array) -> Array:
        return _run(name, accumulators, *operands)

    return TensorIntrinsic(
        name,
        3,
        meaning,
        carried=carried,
        define=define,
        lanes=(16, 8, 4),
        points=points,
        isa="avx512",
        feature=feature,
    )


VPDPBUSD = _declare("vpdpbusd", _dot_of_bytes, INT32, 4, "vnni")  # unsigned by signed bytes

TENSOR_INTRINSICS = {intrinsic.name: intrinsic for intrinsic in (VPDPBUSD,)}


def tensor_intrinsic(name: str) -> TensorIntrinsic:
    """The tensor intrinsic called `name`; KeyError when there is none."""
    return TENSOR_INTRINSICS[name]
