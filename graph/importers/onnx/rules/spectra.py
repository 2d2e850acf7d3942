"""Rules of the operators of signals: DFT, STFT, MelWeightMatrix.

A Fourier transform of few elements is a matrix product; one of many is made of such products by
J. W. Cooley and J. W. Tukey's factors ("An algorithm for the machine calculation of complex Fourier
series", 1965); where its length has no good factors, it is a convolution, as L. I. Bluestein says
("A linear filtering approach to the computation of discrete Fourier transform", 1970), made of
transforms of a power of two. Twiddle factors are computed in float64 from exact angles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .....tir.sizes import AnySize, closed
from ....errors import ModelError
from ....ops.arithmetic import Add, Mul
from ....ops.base import normal_axis
from ....ops.functions import Cast
from ....ops.gathering import Gather
from ....ops.matmul import MatMul
from ....ops.movement import Concat, Identity, Reshape, Transpose
from ....types import Array, Constant, Shape, frozen
from ...limits import checked_type
from ..node import NodeReader
from ..tensors import dtype_name
from .rule import Application, ImportRule, Result
from .slicing import AxisWalk, add, part_of, surrounded

Complex = np.ndarray[tuple[int, ...], np.dtype[np.complex128]]
_DIRECT = 256  # elements, at most, of a transform that is one product
_FACTOR = 8  # the least factor that is worth a product of its own


@dataclass(frozen=True, slots=True)
class _Transforms:
    """Fourier transforms as nodes. rows: how many of them; sign: of the angles, -1 but for inverse
    ones, which are divided by their length.
    """

    node: NodeReader
    rows: AnySize
    sign: int

    def whole(self, value: str, length: int, parts: int) -> str:
        """[rows, length, parts] -> [rows, length, 2]; parts: 1 for real numbers, 2 for complex."""
        factor = max(n for n in range(1, math.isqrt(length) + 1) if length % n == 0)
        if length <= _DIRECT:
            return self.direct(value, length, parts, length)
        if factor >= _FACTOR:
            return self._factored(value, length, parts, factor)
        return self._convolved(value, length, parts)

    def direct(self, value: str, length: int, parts: int, bins: int) -> str:
        """The first `bins` of a transform."""
        angles = np.outer(np.arange(length), np.arange(bins)) % length
        table = self._roots(angles, length) / (length if self.sign > 0 else 1)
        rows = [np.stack([table.real, table.imag], -1), np.stack([-table.imag, table.real], -1)]
        matrix = np.stack(rows[:parts], 1).reshape(length * parts, 2 * bins)
        return self.product(value, matrix, bins, 2)

    def product(self, value: str, matrix: Array, bins: int, parts: int) -> str:
        """Rows times a matrix, as `bins` numbers of so many parts."""
        flat = self.node.emit(Reshape((self.rows, matrix.shape[0])), value)
        made = self.node.emit(MatMul(), flat, self._constant("twiddles", value, matrix))
        return self.node.emit(Reshape((self.rows, bins, parts)), made)

    def _factored(self, value: str, length: int, parts: int, first: int) -> str:
        """Element second * j + i of the input and k + first * l of the result."""
        node, second = self.node, length // first
        split = node.emit(Reshape((self.rows, first, second, parts)), value)
        split = node.emit(Transpose((0, 2, 1, 3)), split)
        inner = _Transforms(node, self.rows * second, self.sign)
        made = inner.whole(
            node.emit(Reshape((self.rows * second, first, parts)), split), first, parts
        )
        angles = np.outer(np.arange(second), np.arange(first))
        made = node.emit(Reshape((self.rows, second, first, 2)), made)
        made = self._scaled(made, 2, self._roots(angles, length))
        made = node.emit(Transpose((0, 2, 1, 3)), made)
        outer = _Transforms(node, self.rows * first, self.sign)
        made = outer.whole(node.emit(Reshape((self.rows * first, second, 2)), made), second, 2)
        made = node.emit(Reshape((self.rows, first, second, 2)), made)
        turned = node.emit(Transpose((0, 2, 1, 3)), made)
        return node.emit(Reshape((self.rows, length, 2)), turned)

    def _convolved(self, value: str, length: int, parts: int) -> str:
        """With j * k = (j^2 + k^2 - (k - j)^2) / 2, a convolution with a chirp."""
        node, size = self.node, 1 << (2 * length - 2).bit_length()
        chirp = self._roots(np.arange(length) ** 2, 2 * length)
        filled = np.zeros(size, np.complex128)
        filled[:length] = chirp.conj()
        filled[size - length + 1 :] = chirp[:0:-1].conj()
        made = self._scaled(value, parts, chirp)
        made = add(node, surrounded(node, made, [0, 0, 0], [0, size - length, 0]))
        made = _Transforms(node, self.rows, -1).whole(made, size, 2)
        made = self._scaled(made, 2, np.fft.fft(filled))
        made = _Transforms(node, self.rows, 1).whole(made, size, 2)
        walk = {1: AxisWalk(0, length)}
        made = add(node, part_of(made, (self.rows, size, 2), walk))
        return self._scaled(made, 2, chirp / (length if self.sign > 0 else 1))

    def _scaled(self, value: str, parts: int, factors: Complex) -> str:
        """Numbers times factors, which belong to the axes before the last one."""
        node = self.node
        if parts == 1:
            pairs = np.stack([factors.real, factors.imag], -1)
            return node.emit(Mul(), value, self._constant("factors", value, pairs))
        shape = node.builder.types[value].shape
        other = add(node, part_of(value, shape, {len(shape) - 1: AxisWalk(1, 2, -1)}))
        real = np.stack([factors.real, factors.real], -1)
        imaginary = np.stack([-factors.imag, factors.imag], -1)
        straight = node.emit(Mul(), value, self._constant("factors", value, real))
        crossed = node.emit(Mul(), other, self._constant("factors", value, imaginary))
        return node.emit(Add(), straight, crossed)

    def _roots(self, angles: Array, length: int) -> Complex:
        """exp(+-2 pi i angle / length)."""
        turns = (angles.astype(np.int64) % length) * (2 * math.pi / length)
        roots: Complex = np.exp(1j * self.sign * turns)
        return roots

    def _constant(self, name: str, like: str, table: Array) -> str:
        dtype = self.node.builder.types[like].dtype
        return self.node.table(name, table.astype(dtype))


def _dft(node: NodeReader) -> Result:
    x = node.type(0)
    parts = closed(x.shape[-1]) if x.rank > 1 else 0
    if parts not in (1, 2) or not x.is_float:
        raise ModelError(
            f"model: {node.title} has the signal {x}; expected [..., 1] or [..., 2] of floating-"
            "point numbers.",
            code="onnx-dft-signal",
        )
    named = node.integer("axis", 1) if node.version < 20 else -2
    if node.version >= 20 and node.has(2):
        named = node.whole(2)
    axis = normal_axis(Identity(), named, x.rank)
    if axis == x.rank - 1:
        raise ModelError(
            f"model: {node.title} transforms axis {named} of {x}, which holds the parts of complex "
            "numbers.",
            code="onnx-dft-axis",
        )
    inverse, onesided = node.flag("inverse"), node.flag("onesided")
    size = closed(x.shape[axis])
    halved = inverse and onesided
    length = node.whole(1) if node.has(1) else 2 * (size - 1) if halved else size
    return transformed(node, node.value(0), axis, length, inverse=inverse, onesided=onesided)


def transformed(
    node: NodeReader, value: str, axis: int, length: int, *, inverse: bool, onesided: bool
) -> Application:
    """The transform of so many elements along an axis: `value` is cut, or zeros follow it.

    onesided: only the half of the result that says the rest of it; inverse, of such a half.
    """
    type_ = node.builder.types[value]
    if length < 1:
        raise ModelError(
            f"model: {node.title} transforms {length} elements; expected one or more.",
            code="onnx-dft-length",
        )
    if type_.dtype == "float16":
        value = node.emit(Cast("float32"), value)
    parts, rank = closed(type_.shape[-1]), type_.rank
    halved = inverse and onesided
    given = length // 2 + 1 if halved else length
    after = [0] * rank
    after[axis] = given - closed(type_.shape[axis])
    value = add(node, surrounded(node, value, [0] * rank, after))
    order = (*(d for d in range(rank - 1) if d != axis), axis, rank - 1)
    value = node.emit(Transpose(order), value)
    kept = tuple(type_.shape[d] for d in order[:-2])
    rows: AnySize = 1
    for size in kept:
        rows = rows * size
    checked_type(f"a part of {node.title}", type_.dtype, (rows, length, 4), node.tensors.limits)
    value = node.emit(Reshape((rows, given, parts)), value)
    value, bins, made = _made(
        _Transforms(node, rows, 1 if inverse else -1), value, length, parts, halved, onesided
    )
    value = node.emit(Reshape((*kept, bins, made)), value)
    back = tuple(order.index(d) for d in range(rank))
    value = node.emit(Transpose(back), value)
    if type_.dtype == "float16":
        return Cast("float16"), (value,)
    return Identity(), (value,)


def _made(
    transforms: _Transforms, value: str, length: int, parts: int, halved: bool, onesided: bool
) -> tuple[str, int, int]:
    """The transform of [rows, n, parts]; how many numbers it gives, of how many parts."""
    if halved:
        return _of_half(transforms, value, length, parts), length, 1
    if not onesided:
        return transforms.whole(value, length, parts), length, 2
    bins = length // 2 + 1
    if length <= _DIRECT:
        return transforms.direct(value, length, parts, bins), bins, 2
    node, whole = transforms.node, transforms.whole(value, length, parts)
    shape = (transforms.rows, length, 2)
    return add(node, part_of(whole, shape, {1: AxisWalk(0, bins)})), bins, 2


def _of_half(transforms: _Transforms, value: str, length: int, parts: int) -> str:
    """The real numbers whose transform begins with `value`: the rest of it is its conjugate."""
    node, half, rows = transforms.node, length // 2 + 1, transforms.rows
    if length <= _DIRECT:
        angles = np.outer(np.arange(half), np.arange(length)) % length * (2 * math.pi / length)
        weights = np.where((np.arange(half) * 2) % length == 0, 1, 2)[:, None] / length
        tables = [np.cos(angles) * weights, -np.sin(angles) * weights]
        matrix = np.stack(tables[:parts], 1).reshape(half * parts, length)
        return transforms.product(value, matrix, length, 1)
    count = length - half
    rest = add(node, part_of(value, (rows, half, parts), {1: AxisWalk(count, count, -1)}))
    if parts == 2:
        signs = node.table("signs", np.array([1, -1], node.builder.types[value].dtype))
        rest = node.emit(Mul(), rest, signs)
    whole = transforms.whole(node.emit(Concat(1), value, rest), length, parts)
    return add(node, part_of(whole, (rows, length, 2), {2: AxisWalk(0, 1)}))


def _stft(node: NodeReader) -> Result:
    """Frames of a signal, weighed by a window, and their transforms."""
    signal, step = node.type(0), node.whole(1)
    frame = node.whole(3) if node.has(3) else None
    if frame is None and node.has(2):
        frame = closed(node.type(2).shape[0])
    size = closed(signal.shape[1]) if signal.rank == 3 else 0
    frame = size if frame is None else frame
    windows = node.type(2).shape if node.has(2) else (frame,)
    parts = closed(signal.shape[-1]) if signal.rank == 3 else 0
    if parts not in (1, 2) or step < 1 or not 0 < frame <= size or windows != (frame,):
        raise ModelError(
            f"model: {node.title} cuts frames of {frame} elements, {step} apart, with windows of "
            f"{list(windows)} from {signal}; expected [batch, n, 1 or 2] of at least a frame.",
            code="onnx-stft",
        )
    count = (size - frame) // step + 1
    checked_type(
        f"the frames of {node.title}",
        signal.dtype,
        (signal.shape[0], count, frame, parts),
        node.tensors.limits,
    )
    places = np.arange(count)[:, None] * step + np.arange(frame)
    value = node.emit(Gather(1), node.value(0), node.table("frames", places))
    if node.has(2):
        window = node.emit(Reshape((frame, 1)), node.value(2))
        value = node.emit(Mul(), value, window)
    onesided = node.integer("onesided", 1) != 0
    return transformed(node, value, 2, frame, inverse=False, onesided=onesided)


def _mel_weights(node: NodeReader) -> Constant:
    """Triangles, evenly spaced as the ear hears, over the bins of a spectrum."""
    bins, length, rate = (node.whole(position) for position in range(3))
    low, high = (float(node.constant(position, 1).item()) for position in (3, 4))
    dtype = dtype_name(node.integer("output_datatype", 1))
    what = f"the result of {node.title}"
    if bins < 1 or length < 1 or rate < 1 or not 0 <= low <= high <= rate / 2:
        raise ModelError(
            f"model: {node.title} has {bins} bins of {length} elements at {rate} Hz from {low:g} "
            f"to {high:g} Hz; expected positive numbers and edges up to half of the rate.",
            code="onnx-mel",
        )
    shape: Shape = (length // 2 + 1, bins)
    type_ = checked_type(what, dtype, shape, node.tensors.limits)
    node.tensors.account.compute(what, type_)
    first, last = (2595 * math.log10(1 + edge / 700) for edge in (low, high))
    steps = np.arange(bins + 2) * ((last - first) / (bins + 2)) + first
    hertz = 700 * (10 ** (steps / 2595) - 1)
    edges = ((length + 1) * hertz // rate).astype(np.int64)
    table, rows = np.zeros((length // 2 + 1, bins)), np.arange(length // 2 + 1)
    for n, (left, top, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        rising = (rows >= left) & (rows <= top)
        table[:, n] = np.where(rising, (rows - left) / (top - left) if top > left else 1.0, 0.0)
        if right > top:
            falling = (rows >= top) & (rows < right)
            table[:, n] = np.where(falling, (right - rows) / (right - top), table[:, n])
    return frozen(table.astype(type_.dtype))


RULES: dict[str, ImportRule] = {
    "DFT": ImportRule((17, 20), ("axis", "inverse", "onesided"), _dft),
    "MelWeightMatrix": ImportRule((17,), ("output_datatype",), _mel_weights),
    "STFT": ImportRule((17,), ("onesided",), _stft),
}
