"""Tensor intrinsics: instructions that do a piece of a reduction in each lane, each declared once.

A declaration is a definition in the tensor-expression language: what the instruction does in every
lane, over its few reduction points. It is the pattern that `tensorize` looks for; the back ends
have one expression for it (codegen/isa/isa.py). So a nest keeps its loops, and with them its
meaning and its proof, until code is written.

In lowered code an intrinsic is a Call on lanes: the accumulators, then one vector per operand whose
lanes carry, as bits, the elements of that lane's reduction points, the first one lowest. What
interpreters execute has the bits of the instruction. Of integers that is the definition; a sum of
floats, whose order a definition leaves open, an instruction may round in its own way, which it
states as a liberty: strict builds refuse it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from ..dtype import BFLOAT16, INT32, INT64, DType
from ..func import PrimFunc
from ..intrinsics import Intrinsic
from ..reference.array_expr import ArrayEvaluator
from ..stmt import IterKind
from ..target.target import Target, covers
from ..te import te
from ..visit import stores

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TensorIntrinsic(Intrinsic):
    """An instruction that updates an accumulator per lane with `points` reduction points.

    define: the definition for a number of lanes: operands of shape [lanes, points], then the result
    of shape [lanes]. lanes: how many one instruction may have, most first.
    targets: the instruction sets that have it, each with the feature that it takes:
    "avx512+vnni", "avx2". One whose registers are too short has fewer lanes of it.
    carried: the type whose bits hold the points of one lane of an operand. slots: how many of the
    cycles that one fused multiply-add of vectors keeps a unit busy it takes.
    liberty: how results may differ from those of the definition, as the verb of "it ..."; empty
    where they do not.
    """

    define: Callable[[int], PrimFunc]
    lanes: tuple[int, ...]
    points: int
    targets: tuple[str, ...]
    liberty: str = ""
    slots: float = 1.0

    def __reduce__(self) -> tuple[Callable[[str], TensorIntrinsic], tuple[str]]:
        return tensor_intrinsic, (self.name,)

    @property
    def asked_for(self) -> bool:
        """Whether a rule uses it only where the caller allows it."""
        return bool(self.liberty)

    @property
    def needs(self) -> str:
        """The targets that have it, as an error names them."""
        return " or ".join(f"c:{name}" for name in self.targets)

    @property
    def hint(self) -> str:
        """What to do where it is lacking."""
        return "a Target names features of the machine; without them, vectorize the loop."

    @property
    def pairs_rows(self) -> bool:
        """Whether it computes two columns of two rows, so that rows meet in pairs."""
        return self.carried == INT64

    def is_on(self, target: Target) -> bool:
        """Whether a target has it."""
        return any(covers((target.instructions,), name) for name in self.targets)

    def lanes_on(self, target: Target) -> tuple[int, ...]:
        """How many lanes it may have in the registers of a target that has it, for which a lane of
        the sum has 32 bits.
        """
        return tuple(count for count in self.lanes if count <= target.lanes(INT32))

    def features_on(self, target: Target) -> tuple[str, ...]:
        """Those of a target's features that it takes."""
        name = next(one for one in self.targets if covers((target.instructions,), one))
        return tuple(name.split("+")[1:])


def _as_defined(name: str, accumulators: Array, *operands: Array) -> Array:
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
        arrays[buffer] = _elements(bits, intrinsic.carried, buffer.type)
    (lane,) = (it.var for it in block.iters if it.kind is IterKind.SPATIAL)
    (point,) = (it.var for it in block.iters if it.kind is IterKind.REDUCE)
    for number in range(intrinsic.points):
        values = {lane: np.arange(result.size), point: np.asarray(number)}
        arrays[store.buffer] = ArrayEvaluator(values, arrays).evaluate(store.value)
    return arrays[store.buffer].reshape(np.shape(accumulators))


def _elements(bits: Array, carried: DType, element: DType) -> Array:
    """The elements that bits carry, [lanes, points]."""
    whole = np.atleast_1d(np.asarray(bits)).astype(carried.numpy)
    return whole.view(element.numpy).reshape(whole.size, -1)


def _add_pairs_of_bfloat16(accumulators: Array, a: Array, b: Array) -> Array:
    """Two multiply-adds in float32, that of the second elements first.

    Intel's manual, volume 2, VDPBF16PS: each step is fused and rounded to nearest even; subnormal
    operands and results are zeros, whatever MXCSR says. In float64 the product of 16 bits is exact,
    and its sum with 24 bits is exact or no tie of 24 bits, so the second rounding changes nothing.
    """
    with np.errstate(all="ignore"):
        result = _flushed(np.atleast_1d(accumulators))
        x, y = (_flushed(_elements(bits, INT32, BFLOAT16)) for bits in (a, b))
        for point in (1, 0):
            result = _flushed(np.add(np.multiply(x[:, point], y[:, point]), result))
    return result.astype(np.float32).reshape(np.shape(accumulators))


def _flushed(values: Array) -> Array:
    """Values rounded to float32, in float64; subnormal ones are zeros of their sign.

    Which these are is asked of a value rounded to 24 bits as if exponents had no end, as measured
    on Zen 4: 2**-126 - 1.5 * 2**-151 is zero, although the nearest float32 is 2**-126.
    """
    wide = values.astype(np.float64)
    rounded = np.multiply(wide, 2.0**64).astype(np.float32)
    tiny = np.less(np.abs(rounded), 2.0 ** (64 - 126))
    return np.where(tiny, np.copysign(0.0, wide), wide.astype(np.float32)).astype(np.float64)


@cache
def _dot(name: str, operands: tuple[str, str], total: str, points: int, lanes: int) -> PrimFunc:
    """c[lane] = the sum over points of a[lane, q] * b[lane, q] in the type `total`."""
    a, b = (
        te.placeholder((lanes, points), kind, name=key)
        for key, kind in zip("ab", operands, strict=True)
    )
    q = te.reduce_axis(points, name="q")
    c = te.compute(
        (lanes,),
        lambda lane: te.sum(te.cast(a[lane, q], total) * te.cast(b[lane, q], total), axis=q),
        name="c",
    )
    return te.func(a, b, c, name=name)


def _declare_dot(
    name: str,
    operands: tuple[str, str],
    total: str,
    points: int,
    targets: tuple[str, ...],
    meaning: Callable[..., Array] | None = None,
    liberty: str = "",
    lanes: tuple[int, ...] = (16, 8, 4),
    slots: float = 1.0,
    carried: DType = INT32,
) -> TensorIntrinsic:
    """An instruction that adds `points` products to each of its 32-bit lanes; without
    `meaning`, as it is defined.
    """
    return TensorIntrinsic(
        name,
        3,
        meaning or partial(_as_defined, name),
        carried=carried,
        define=partial(_dot, name, operands, total, points),
        lanes=lanes,
        points=points,
        targets=targets,
        liberty=liberty,
        slots=slots,
    )


_VNNI = ("avx512+vnni", "avx2+vnni")

# four products of an unsigned and a signed byte, added to an int32
VPDPBUSD = _declare_dot("vpdpbusd", ("uint8", "int8"), "int32", 4, _VNNI)
# two products of signed numbers of 16 bits, added to an int32
VPDPWSSD = _declare_dot("vpdpwssd", ("int16", "int16"), "int32", 2, _VNNI)
# two products of signed numbers of 16 bits, added to an int32: AVX2's vpmaddwd and vpaddd, of which
# three units take both where two multiply
VPMADDWD = _declare_dot(
    "vpmaddwd", ("int16", "int16"), "int32", 2, ("avx2",), lanes=(8, 4), slots=1.5
)
# two products of bfloat16, the second one first, added to a float32
VDPBF16PS = _declare_dot(
    "vdpbf16ps",
    ("bfloat16", "bfloat16"),
    "float32",
    2,
    ("avx512+bf16",),
    _add_pairs_of_bfloat16,
    liberty="adds the second of two products first and takes subnormal numbers as zero",
)
# four products of bytes, added to an int32, of 64-bit ARM: an unsigned and a signed one, two signed
# ones, two unsigned ones (Arm Architecture Reference Manual, USDOT, SDOT and UDOT, vector)
USDOT = _declare_dot("usdot", ("uint8", "int8"), "int32", 4, ("neon+i8mm",), lanes=(4,))
SDOT = _declare_dot("sdot", ("int8", "int8"), "int32", 4, ("neon+dotprod",), lanes=(4,))
UDOT = _declare_dot("udot", ("uint8", "uint8"), "int32", 4, ("neon+dotprod",), lanes=(4,))


# eight products of bytes, added to an int32: two rows of two columns of a product of matrices at
# once (SMMLA, USMMLA and UMMLA, vector). In a nest it is what a row has of four columns; rows meet
# in codegen/lower/vector/row_pairs.py
def _declare_rows(name: str, first: str, second: str) -> TensorIntrinsic:
    on = ("neon+i8mm",)
    return _declare_dot(name, (first, second), "int32", 8, on, lanes=(4,), carried=INT64)


SMMLA = _declare_rows("smmla", "int8", "int8")
USMMLA = _declare_rows("usmmla", "uint8", "int8")
UMMLA = _declare_rows("ummla", "uint8", "uint8")

# those that take more products at once first
TENSOR_INTRINSICS = {
    intrinsic.name: intrinsic
    for intrinsic in (
        *(VPDPBUSD, VPDPWSSD, VPMADDWD, VDPBF16PS),
        *(SMMLA, USMMLA, UMMLA, USDOT, SDOT, UDOT),
    )
}


def tensor_intrinsic(name: str) -> TensorIntrinsic:
    """The tensor intrinsic called `name`; KeyError when there is none."""
    return TENSOR_INTRINSICS[name]
