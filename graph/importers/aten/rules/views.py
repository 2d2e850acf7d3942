"""Rules of operators that name elements anew or move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .....tir.sizes import AnySize, product_of, quotient
from ....ops.movement import Concat
from ...onnx.node import NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter

LAST = (1 << 63) - 1  # what an exporter writes for the end of an axis


def _same(w: AtenWriter, self: AtenValue) -> AtenValue:
    return self


def _dropout(w: AtenWriter, input: AtenValue, p: float, train: bool) -> AtenValue:
    if train and p > 0:
        raise NotSupported("it drops elements as in training", "model.eval() before the export.")
    return input


def _dropout_of(w: AtenWriter, self: AtenValue, p: float, train: bool) -> AtenValue:
    return _dropout(w, self, p, train)


def _view(w: AtenWriter, self: AtenValue, size: Sequence[AnySize]) -> AtenValue:
    return w.reshape(self, size)


def _reshape(w: AtenWriter, self: AtenValue, shape: Sequence[AnySize]) -> AtenValue:
    return w.reshape(self, shape)


def _flatten(w: AtenWriter, self: AtenValue, start_dim: int = 0, end_dim: int = -1) -> AtenValue:
    if not self.rank:
        return w.reshape(self, (1,))
    first, last = self.axis(start_dim), self.axis(end_dim)
    joined = product_of(self.shape[first : last + 1])
    return w.reshape(self, (*self.shape[:first], joined, *self.shape[last + 1 :]))


def _unflatten(w: AtenWriter, self: AtenValue, dim: int, sizes: Sequence[AnySize]) -> AtenValue:
    axis = self.axis(dim)
    parts = w.completed(sizes, self.shape[axis])
    return w.reshape(self, (*self.shape[:axis], *parts, *self.shape[axis + 1 :]))


def _squeeze(w: AtenWriter, self: AtenValue, dim: int | Sequence[int] | None = None) -> AtenValue:
    """An axis whose size calls decide stays."""
    dims = range(self.rank) if dim is None else dim if isinstance(dim, Sequence) else (dim,)
    gone = {self.axis(one) for one in dims}
    kept = [size for axis, size in enumerate(self.shape) if axis not in gone or size != 1]
    return w.reshape(self, kept)


def unsqueezed(w: AtenWriter, self: AtenValue, dim: int) -> AtenValue:
    axis = dim % (self.rank + 1)
    return w.reshape(self, (*self.shape[:axis], 1, *self.shape[axis:]))


def permuted(w: AtenWriter, self: AtenValue, dims: Sequence[int]) -> AtenValue:
    return w.transpose(self, [self.axis(dim) for dim in dims])


def _transpose(w: AtenWriter, self: AtenValue, dim0: int, dim1: int) -> AtenValue:
    a, b = self.axis(dim0), self.axis(dim1)
    axes = list(range(self.rank))
    if self.rank:
        axes[a], axes[b] = b, a
    return permuted(w, self, axes)


def transposed(w: AtenWriter, self: AtenValue) -> AtenValue:
    return permuted(w, self, tuple(reversed(range(self.rank))))


def _movedim(
    w: AtenWriter, self: AtenValue, source: Sequence[int], destination: Sequence[int]
) -> AtenValue:
    places = {self.axis(d): self.axis(s) for s, d in zip(source, destination, strict=True)}
    rest = iter(axis for axis in range(self.rank) if axis not in places.values())
    return permuted(w, self, [places[n] if n in places else next(rest) for n in range(self.rank)])


def _expand(w: AtenWriter, self: AtenValue, size: Sequence[AnySize]) -> AtenValue:
    before = (*(1,) * (len(size) - self.rank), *self.shape)
    shape = [own if new == -1 else new for own, new in zip(before, size, strict=True)]
    return w.expand(self, shape)


def _expand_as(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    return w.expand(self, other.shape)


def _select(w: AtenWriter, self: AtenValue, dim: int, index: AnySize) -> AtenValue:
    return w.spell("Gather", self, w.operand(index), axis=self.axis(dim))


def sliced(
    w: AtenWriter,
    self: AtenValue,
    dim: int = 0,
    start: AnySize | None = None,
    end: AnySize | None = None,
    step: int = 1,
) -> AtenValue:
    axis, first = self.axis(dim), 0 if start is None else start
    size = self.shape[axis]
    if first == 0 and step == 1 and (end is None or end in (LAST, size)):
        return self
    last = LAST if end is None else end
    bounds = (w.sizes((one,)) for one in (first, last, axis, step))
    return w.spell("Slice", self, *bounds)


def _narrow(w: AtenWriter, self: AtenValue, dim: int, start: AnySize, length: AnySize) -> AtenValue:
    return sliced(w, self, dim, start, start + length)


def _parts(w: AtenWriter, x: AtenValue, sizes: Sequence[AnySize], dim: int) -> list[AtenValue]:
    made, start = list[AtenValue](), cast(AnySize, 0)
    for size in sizes:
        made.append(_narrow(w, x, dim, start, size))
        start = start + size
    return made


def _split(w: AtenWriter, self: AtenValue, split_size: AnySize, dim: int = 0) -> list[AtenValue]:
    whole = self.shape[self.axis(dim)]
    count = quotient(whole + split_size - 1, split_size)
    if not isinstance(count, int):
        raise NotSupported(f"calls decide how many parts of {split_size} make {whole}")
    sizes = [split_size] * (count - 1)
    return _parts(w, self, [*sizes, whole - split_size * (count - 1)], dim)


def _split_with_sizes(
    w: AtenWriter, self: AtenValue, split_sizes: Sequence[AnySize], dim: int = 0
) -> list[AtenValue]:
    return _parts(w, self, split_sizes, dim)


def _split_sizes(
    w: AtenWriter, self: AtenValue, split_size: Sequence[AnySize], dim: int = 0
) -> list[AtenValue]:
    return _parts(w, self, split_size, dim)


def _chunk(w: AtenWriter, self: AtenValue, chunks: int, dim: int = 0) -> list[AtenValue]:
    whole = self.shape[self.axis(dim)]
    return _split(w, self, quotient(whole + chunks - 1, chunks), dim)


def _unbind(w: AtenWriter, self: AtenValue, dim: int = 0) -> list[AtenValue]:
    count = self.shape[self.axis(dim)]
    if not isinstance(count, int):
        raise NotSupported(f"calls decide how many parts there are: {count}")
    return [_select(w, self, dim, index) for index in range(count)]


def joined(w: AtenWriter, tensors: Sequence[AtenValue], dim: int = 0) -> AtenValue:
    """Vectors without elements may stand among tensors of any number of axes."""
    given = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    parts = w.promoted(*given)
    axis = parts[0].axis(dim)
    return parts[0] if len(parts) == 1 else w.emit(Concat(axis), *parts)


def _stack(w: AtenWriter, tensors: Sequence[AtenValue], dim: int = 0) -> AtenValue:
    axis = dim % (tensors[0].rank + 1)
    return joined(w, [unsqueezed(w, x, axis) for x in tensors], axis)


def _repeat(w: AtenWriter, self: AtenValue, repeats: Sequence[AnySize]) -> AtenValue:
    x = w.reshape(self, (*(1,) * (len(repeats) - self.rank), *self.shape))
    return x if all(count == 1 for count in repeats) else w.spell("Tile", x, w.sizes(repeats))


def _repeat_interleave(
    w: AtenWriter,
    self: AtenValue,
    repeats: int,
    dim: int | None = None,
    output_size: AnySize | None = None,
) -> AtenValue:
    """Each element so many times, one behind the other."""
    x = self if dim is not None else w.reshape(self, (product_of(self.shape),))
    axis = x.axis(dim or 0)
    before, behind = x.shape[: axis + 1], x.shape[axis + 1 :]
    wide = w.expand(w.reshape(x, (*before, 1, *behind)), (*before, repeats, *behind))
    return w.reshape(wide, (*x.shape[:axis], x.shape[axis] * repeats, *behind))


def _roll(
    w: AtenWriter, self: AtenValue, shifts: Sequence[AnySize], dims: Sequence[int] = ()
) -> AtenValue:
    if not dims:
        flat = w.reshape(self, (product_of(self.shape),))
        return w.reshape(_roll(w, flat, shifts, (0,)), self.shape)
    x = self
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[x.axis(dim)]
        if not (isinstance(shift, int) and isinstance(size, int)):
            raise NotSupported(f"calls decide by how much it moves {size} elements: {shift}")
        left = -shift % max(1, size)
        if left:
            x = joined(w, [sliced(w, x, dim, left), sliced(w, x, dim, 0, left)], dim)
    return x


def _flip(w: AtenWriter, self: AtenValue, dims: Sequence[int]) -> AtenValue:
    axes = [self.axis(dim) for dim in dims]
    if not axes:
        return self
    count = len(axes)
    bounds = ([-1] * count, [-LAST - 1] * count, axes, [-1] * count)
    return w.spell("Slice", self, *(w.sizes(one) for one in bounds))


def _pixel_shuffle(w: AtenWriter, self: AtenValue, upscale_factor: int) -> AtenValue:
    return w.spell("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")


def _pixel_unshuffle(w: AtenWriter, self: AtenValue, downscale_factor: int) -> AtenValue:
    """Blocks of an image become channels, those of one channel beside each other."""
    *batch, c, h, width = self.shape
    f = downscale_factor
    n = len(batch)
    split = w.reshape(self, (*batch, c, quotient(h, f), f, quotient(width, f), f))
    moved = permuted(w, split, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return w.reshape(moved, (*batch, c * f * f, quotient(h, f), quotient(width, f)))


def _constant_pad(
    w: AtenWriter, self: AtenValue, pad: Sequence[AnySize], value: float = 0
) -> AtenValue:
    return padded(w, self, pad, "constant", value)


def padded(
    w: AtenWriter,
    self: AtenValue,
    pad: Sequence[AnySize],
    mode: str = "constant",
    value: float | None = None,
) -> AtenValue:
    """Widths of the last axis come first; negative ones cut off."""
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    if mode not in modes:
        raise NotSupported(f"mode is '{mode}'; known are {', '.join(modes)}")
    untouched = self.rank - len(pad) // 2
    before = [0] * untouched + list(reversed(pad[0::2]))
    behind = [0] * untouched + list(reversed(pad[1::2]))
    if all(width == 0 for width in (*before, *behind)):
        return self
    filling = w.full(value or 0, self.dtype) if mode == "constant" else None
    return w.spell("Pad", self, w.sizes((*before, *behind)), filling, mode=modes[mode])


def _view_as(w: AtenWriter, self: AtenValue, other: AtenValue) -> AtenValue:
    return w.reshape(self, other.shape)


def _ravel(w: AtenWriter, self: AtenValue) -> AtenValue:
    return w.reshape(self, (product_of(self.shape),))


def _swapaxes(w: AtenWriter, self: AtenValue, axis0: int, axis1: int) -> AtenValue:
    return _transpose(w, self, axis0, axis1)


def _matrix_transpose(w: AtenWriter, self: AtenValue) -> AtenValue:
    return _transpose(w, self, -2, -1)


def _tile(w: AtenWriter, self: AtenValue, dims: Sequence[AnySize]) -> AtenValue:
    return _repeat(w, self, (*(1,) * (self.rank - len(dims)), *dims))


def _of_mode(mode: str) -> Rule:
    def rule(w: AtenWriter, self: AtenValue, padding: Sequence[AnySize]) -> AtenValue:
        return padded(w, self, padding, mode)

    return rule


RULES: dict[str, Rule] = {
    "_unsafe_view": _view,
    "alias": _same,
    "cat": joined,
    "chunk": _chunk,
    "clone": _same,
    "constant_pad_nd": _constant_pad,
    "contiguous": _same,
    "detach": _same,
    "dropout": _dropout,
    "dropout_": _dropout_of,
    "expand": _expand,
    "expand_as": _expand_as,
    "feature_dropout": _dropout,
    "flatten.using_ints": _flatten,
    "flip": _flip,
    "lift_fresh_copy": _same,
    "mT": _matrix_transpose,
    "movedim.intlist": _movedim,
    "narrow": _narrow,
    "numpy_T": transposed,
    "pad": padded,
    "permute": permuted,
    "pixel_shuffle": _pixel_shuffle,
    "pixel_unshuffle": _pixel_unshuffle,
    "ravel": _ravel,
    "reflection_pad1d": _of_mode("reflect"),
    "reflection_pad2d": _of_mode("reflect"),
    "reflection_pad3d": _of_mode("reflect"),
    "repeat": _repeat,
    "repeat_interleave.self_int": _repeat_interleave,
    "replication_pad1d": _of_mode("replicate"),
    "replication_pad2d": _of_mode("replicate"),
    "replication_pad3d": _of_mode("replicate"),
    "reshape": _reshape,
    "reshape_as": _view_as,
    "roll": _roll,
    "select.int": _select,
    "slice.Tensor": sliced,
    "split.Tensor": _split,
    "split.sizes": _split_sizes,
    "split_with_sizes": _split_with_sizes,
    "squeeze": _squeeze,
    "squeeze.dim": _squeeze,
    "squeeze.dims": _squeeze,
    "stack": _stack,
    "swapaxes": _swapaxes,
    "t": transposed,
    "tile": _tile,
    "transpose.int": _transpose,
    "unbind.int": _unbind,
    "unflatten.int": _unflatten,
    "unsqueeze": unsqueezed,
    "view": _view,
    "view_as": _view_as,
}
