"""Rules of random operators. All numbers are made of bits that a key and the index of an element
decide (graph/ops/random/random_bits.py), so a run draws the same ones as the run before it.

The key of a node is a hash: of its attribute `seed`, so that nodes of one seed draw the same
numbers, as they do in onnxruntime; without a seed, of the name of its first output, so that nodes
draw different ones, and the same ones however often the model is compiled. Within a loop, whose
iterations would all draw the same, they are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from .....tir.sizes import AnySize, largest, product_of
from ....errors import ModelError
from ....ops import angles, arithmetic, functions, logic, movement, reduction, repetition
from ....ops.base import Operator
from ....ops.random.places import CountAtMost
from ....ops.random.random_bits import RandomBits
from ....ops.size_values import SizeRange
from ....ops.slicing import Slice
from ....ops.triangle import CumSum
from ....types import Shape, Splat, array_of
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .conversions import converted
from .rule import ImportRule, Result, Several

# bits that a number of 0 to 1 has
_FLOATS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@dataclass(frozen=True, slots=True)
class Draws:
    """Random numbers, in one row of as many as there are in `index`, their numbers. Each `purpose`
    of a node has a key of its own.
    """

    node: NodeReader
    index: str

    @staticmethod
    def of(node: NodeReader, count: AnySize) -> Draws:
        """So many of them."""
        index = node.emit(SizeRange(0, count))
        few = largest(count) < 1 << 31
        return Draws(node, node.emit(functions.Cast("int32"), index) if few else index)

    def unit(self, dtype: str, purpose: str = "") -> str:
        """Numbers of 0 to 1, without 1, evenly spread over those that have as many bits behind the
        point as a number below 1 has: exact. One of 16 bits is given as a float32.
        """
        kept = _FLOATS[dtype]
        if dtype == "float64":
            return self._double(purpose)
        drawn = self._emit(functions.Cast("float32"), self._bits(purpose, 0, kept))
        return self._emit(arithmetic.Mul(), drawn, self._number(0.5**kept, "float32"))

    def normal(self, dtype: str) -> str:
        """Numbers of the standard normal distribution, by G. E. P. Box and M. E. Muller (1958):
        sqrt(-2 log u) cos(2 pi v). In float32 u has 31 bits, and the largest number is 6.6; in
        float64 53 bits and 8.6. One of 16 bits is given as a float32.
        """
        if dtype == "float64":
            least, u = 0.5**54, self._double("radius")
            v = self._double("angle")
        else:
            dtype, least = "float32", 0.5**32
            u = self._emit(functions.Cast(dtype), self._bits("", 0, 31))
            u = self._emit(arithmetic.Mul(), u, self._number(0.5**31, dtype))
            v = self._emit(functions.Cast(dtype), self._bits("", 1, 24))
            v = self._emit(arithmetic.Mul(), v, self._number(0.5**24, dtype))
        u = self._emit(arithmetic.Add(), u, self._number(least, dtype))
        square = self._emit(
            arithmetic.Mul(), self._emit(functions.Log(), u), self._number(-2.0, dtype)
        )
        turn = self._emit(arithmetic.Mul(), v, self._number(2 * math.pi, dtype))
        radius = self._emit(functions.Sqrt(), square)
        return self._emit(arithmetic.Mul(), radius, self._emit(angles.Cos(), turn))

    def _double(self, purpose: str) -> str:
        """53 bits, of both words."""
        upper, lower = (
            self._emit(functions.Cast("float64"), self._bits(purpose, word, kept))
            for word, kept in ((0, 26), (1, 27))
        )
        upper = self._emit(arithmetic.Mul(), upper, self._number(0.5**26, "float64"))
        lower = self._emit(arithmetic.Mul(), lower, self._number(0.5**53, "float64"))
        return self._emit(arithmetic.Add(), upper, lower)

    def _bits(self, purpose: str, word: int, kept: int) -> str:
        return self._emit(RandomBits(_key(self.node, purpose), word, kept), self.index)

    def _emit(self, op: Operator, *inputs: str) -> str:
        return self.node.emit(op, *inputs)

    def _number(self, value: float, dtype: str) -> str:
        return self.node.table("constant", Splat(value, dtype, ()))


def _key(node: NodeReader, purpose: str) -> int:
    seed: float | str = next(filter(None, node.proto.output))
    if node.given("seed"):
        is_whole = node.proto.op_type == "Dropout"
        seed = float(node.integer("seed")) if is_whole else node.real("seed", 0.0)
    hashed = blake2b(f"{seed!r} {purpose}".encode(), digest_size=8)
    return int.from_bytes(hashed.digest(), "little")


def _float_of(node: NodeReader, name: str) -> str:
    """An element type to draw. Raises: NotSupported for another one."""
    if name not in _FLOATS:
        raise NotSupported(f"it draws {name}; known are {', '.join(_FLOATS)}")
    return name


def _dtype(node: NodeReader, default: str) -> str:
    return dtype_name(node.integer("dtype")) if node.given("dtype") else default


def _shape(node: NodeReader) -> tuple[Shape, str]:
    """Shape and element type of RandomNormal and RandomUniform."""
    shape = node.integers("shape")
    if any(size < 0 for size in shape):
        raise ModelError(
            f"model: {node.title} has shape {list(shape)}; expected sizes of 0 or more.",
            code="onnx-random-shape",
        )
    return shape, _float_of(node, _dtype(node, "float32"))


def _like(node: NodeReader) -> tuple[Shape, str]:
    """Shape and element type of those that are drawn for another tensor."""
    type_ = node.type(0)
    return type_.shape, _float_of(node, _dtype(node, type_.dtype))


_Given = Callable[[NodeReader], tuple[Shape, str]]


def _normal(given: _Given) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        shape, dtype = given(node)
        drawn = Draws.of(node, product_of(shape)).normal(dtype)
        return _placed(node, drawn, node.real("scale", 1.0), node.real("mean", 0.0), shape, dtype)

    return build


def _uniform(given: _Given) -> Callable[[NodeReader], Result]:
    def build(node: NodeReader) -> Result:
        shape, dtype = given(node)
        low, high = node.real("low", 0.0), node.real("high", 1.0)
        drawn = Draws.of(node, product_of(shape)).unit(dtype)
        return _placed(node, drawn, high - low, low, shape, dtype)

    return build


def _placed(
    node: NodeReader, drawn: str, scale: float, shift: float, shape: Shape, dtype: str
) -> Result:
    """drawn * scale + shift, in the precision of what is drawn."""
    kind = node.builder.types[drawn].dtype
    if scale != 1:
        by = node.table("scale", Splat(scale, kind, ()))
        drawn = node.emit(arithmetic.Mul(), drawn, by)
    if shift != 0:
        drawn = node.emit(arithmetic.Add(), drawn, node.table("shift", Splat(shift, kind, ())))
    return movement.Reshape(shape), (converted(node, drawn, dtype),)


def _bernoulli(node: NodeReader) -> Result:
    """1 where a number of 0 to 1 is below the probability."""
    given = node.type(0)
    kind = "float64" if _float_of(node, given.dtype) == "float64" else "float32"
    count = product_of(given.shape)
    drawn = Draws.of(node, count).unit(kind)
    share = node.emit(movement.Reshape((count,)), converted(node, node.value(0), kind))
    is_one = node.emit(logic.Less(), drawn, share)
    found = converted(node, is_one, _dtype(node, given.dtype))
    return movement.Reshape(given.shape), (found,)


def _multinomial(node: NodeReader) -> Result:
    """The number of running totals of the weights, without the last one, that are not above a part
    of their sum.
    """
    given, samples = node.type(0), node.integer("sample_size", 1)
    dtype = _dtype(node, "int32")
    if given.rank != 2 or samples < 0 or dtype not in ("int32", "int64"):
        raise ModelError(
            f"model: {node.title} draws {samples} {dtype} by {given}; expected 0 or more int32 or "
            "int64, and a row of weights for each.",
            code="onnx-multinomial",
        )
    rows, classes = given.shape
    kind = "float64" if _float_of(node, given.dtype) == "float64" else "float32"
    logits = converted(node, node.value(0), kind)
    most = node.emit(reduction.ReduceMax((1,)), logits)
    weights = node.emit(functions.Exp(), node.emit(arithmetic.Sub(), logits, most))
    totals = node.emit(CumSum(1), weights)
    last = node.emit(Slice((0, classes - 1), (rows, 1), (1, 1)), totals)
    others = node.emit(Slice((0, 0), (rows, classes - 1), (1, 1)), totals)
    drawn = Draws.of(node, rows * samples).unit(kind)
    parts = node.emit(movement.Reshape((rows, samples)), drawn)
    parts = node.emit(arithmetic.Mul(), parts, last)
    found = node.emit(CountAtMost(), others, parts)
    return functions.Cast(dtype), (found,)


def _dropout(node: NodeReader) -> Result:
    """In training, x / (1 - ratio) where a number of 0 to 1 is not below the ratio, else 0; the
    mask says where. An omitted name of an output is one that nobody reads.
    """
    x = node.type(0)
    ratio = _trained_ratio(node)
    if ratio is None:
        mask_type = x.dtype if node.version == 7 else "bool"
        true = node.table("kept", Splat(1, mask_type, ()))
        return Several(
            ((movement.Identity(), node.inputs[:1]), (repetition.Expand(x.shape), (true,)))
        )
    count = product_of(x.shape)
    kind = "float64" if _float_of(node, x.dtype) == "float64" else "float32"
    share = converted(node, ratio, kind)
    drawn = Draws.of(node, count).unit(kind)
    mask = node.emit(logic.LessOrEqual(), share, drawn)
    kept = node.emit(arithmetic.Sub(), node.table("one", Splat(1.0, kind, ())), share)
    row = node.emit(movement.Reshape((count,)), node.value(0))
    scaled = node.emit(arithmetic.Div(), row, converted(node, kept, x.dtype))
    zero = node.table("zero", Splat(0.0, x.dtype, ()))
    shown = node.emit(logic.Where(), mask, scaled, zero)
    reshape = movement.Reshape(x.shape)
    return Several(((reshape, (shown,)), (reshape, (mask,))))


def _trained_ratio(node: NodeReader) -> str | None:
    """What share of the elements is dropped, one number; None where nothing is."""
    if not node.has(2):
        return None
    ratio = node.value(1) if node.has(1) else node.table("ratio", Splat(0.5, "float32", ()))
    known, flag = node.builder.constants.get(ratio), node.builder.constants.get(node.value(2))
    if flag is not None:
        is_off = not bool(array_of(flag).any())
        return None if is_off or (known is not None and not array_of(known).any()) else ratio
    none = node.table("none", Splat(0.0, node.builder.types[ratio].dtype, ()))
    return node.emit(logic.Where(), node.value(2), ratio, none)


RULES: dict[str, ImportRule] = {
    "Bernoulli": ImportRule((15, 22), ("dtype", "seed"), _bernoulli),
    "Dropout": ImportRule((7, 10, 12, 13, 22), ("ratio", "seed"), _dropout, None),
    "Multinomial": ImportRule((7, 22), ("dtype", "sample_size", "seed"), _multinomial),
    "RandomNormal": ImportRule(
        (1, 22), ("dtype", "mean", "scale", "seed", "shape"), _normal(_shape)
    ),
    "RandomNormalLike": ImportRule((1, 22), ("dtype", "mean", "scale", "seed"), _normal(_like)),
    "RandomUniform": ImportRule(
        (1, 22), ("dtype", "high", "low", "seed", "shape"), _uniform(_shape)
    ),
    "RandomUniformLike": ImportRule((1, 22), ("dtype", "high", "low", "seed"), _uniform(_like)),
}
