"""Rules of elements that are chosen, written or ordered by data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....tir.sizes import AnySize, closed
from ....ops.arithmetic import Mul
from ....ops.movement import Concat, Transpose
from ...onnx.node import NotSupported
from ..promotion import Number
from ..rule import Rule
from ..writer import AtenValue, AtenWriter, Operand
from .views import LAST, joined, sliced


def _embedding(
    w: AtenWriter,
    weight: AtenValue,
    indices: AtenValue,
    padding_idx: int = -1,
) -> AtenValue:
    return w.spell("Gather", weight, indices, axis=0)


def _gather(w: AtenWriter, self: AtenValue, dim: int, index: AtenValue) -> AtenValue:
    if not self.rank:
        return self
    return w.spell("GatherElements", w.cut(self, index.shape, dim), index, axis=self.axis(dim))


def _index_select(w: AtenWriter, self: AtenValue, dim: int, index: AtenValue) -> AtenValue:
    rows = index if index.rank else w.reshape(index, (1,))
    return w.spell("Gather", self, rows, axis=self.axis(dim))


def _index(w: AtenWriter, self: AtenValue, indices: Sequence[AtenValue | None]) -> AtenValue:
    """NumPy's advanced indexing: indices broadcast together; where axes between them have none,
    what they choose comes first.
    """
    given = {axis: one for axis, one in enumerate(indices) if one is not None}
    if any(one.dtype in ("bool", "uint8") for one in given.values()):
        raise NotSupported(
            "truth values choose its elements, and data decide how many",
            "torch.where(mask, x, y) keeps the shape.",
        )
    axes = list(given)
    if len(axes) == 1:
        return w.spell("Gather", self, given[axes[0]], axis=axes[0])
    rest = [axis for axis in range(self.rank) if axis not in given]
    order = (*axes, *rest)
    x = self if order == tuple(range(self.rank)) else w.emit(Transpose(order), self)
    places = _together(w, list(given.values()))
    made = w.spell("GatherND", x, places)
    chosen, start = places.rank - 1, axes[0]
    if start == 0 or axes != list(range(start, start + len(axes))):
        return made
    back = (
        *range(chosen, chosen + start),
        *range(chosen),
        *range(chosen + start, made.rank),
    )
    return w.emit(Transpose(back), made)


def _together(w: AtenWriter, indices: Sequence[AtenValue]) -> AtenValue:
    """Indices of several axes, those of an element beside each other."""
    rank = max(one.rank for one in indices)
    shape = list[AnySize]()
    for axis in range(-rank, 0):
        sizes = [one.shape[axis] for one in indices if one.rank >= -axis]
        shape.append(next((size for size in sizes if size != 1), 1))
    wide = [w.reshape(w.expand(w.cast(one, "int64"), shape), (*shape, 1)) for one in indices]
    return w.emit(Concat(rank), *wide)


def _index_put(
    w: AtenWriter,
    self: AtenValue,
    indices: Sequence[AtenValue | None],
    values: AtenValue,
    accumulate: bool = False,
) -> AtenValue:
    axes = [axis for axis, one in enumerate(indices) if one is not None]
    given = [one for one in indices if one is not None]
    if any(one.dtype in ("bool", "uint8") for one in given):
        if len(given) == 1 and given[0].shape == self.shape and not values.rank:
            return w.spell("Where", given[0], w.cast(values, self.dtype), self)
        raise NotSupported("truth values choose its elements, and data decide how many")
    start, count = axes[0], len(axes)
    if axes != list(range(start, start + count)):
        raise NotSupported(f"it writes along axes {axes}, which are not side by side")
    places = _together(w, given)
    chosen = places.rank - 1
    shape = (*self.shape[:start], *places.shape[:-1], *self.shape[start + count :])
    updates = w.expand(w.cast(values, self.dtype), shape)
    # the axes that are chosen from come first while it is written to
    ahead = (*range(start, start + count), *range(start), *range(start + count, self.rank))
    turned = w.emit(Transpose(ahead), self) if start else self
    if start:
        first = range(start, start + chosen)
        behind = range(start + chosen, updates.rank)
        updates = w.emit(Transpose((*first, *range(start), *behind)), updates)
    kind = "add" if accumulate else "none"
    made = w.spell("ScatterND", turned, places, updates, reduction=kind)
    back = tuple(sorted(range(self.rank), key=ahead.__getitem__))
    return w.emit(Transpose(back), made) if start else made


def _scatter(
    w: AtenWriter, self: AtenValue, dim: int, index: AtenValue, src: AtenValue
) -> AtenValue:
    return _scattered(w, self, dim, index, src, "none")


def _scatter_value(
    w: AtenWriter, self: AtenValue, dim: int, index: AtenValue, value: Operand
) -> AtenValue:
    number = w.operand(value, self.dtype)
    return _scattered(w, self, dim, index, w.expand(number, index.shape), "none")


def _scatter_add(
    w: AtenWriter, self: AtenValue, dim: int, index: AtenValue, src: AtenValue
) -> AtenValue:
    return _scattered(w, self, dim, index, src, "add")


def _scatter_reduce(
    w: AtenWriter,
    self: AtenValue,
    dim: int,
    index: AtenValue,
    src: AtenValue,
    reduce: str,
    include_self: bool = True,
) -> AtenValue:
    kinds = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}
    if reduce not in kinds or not include_self:
        raise NotSupported(f"reduce is '{reduce}' with include_self={include_self}")
    return _scattered(w, self, dim, index, src, kinds[reduce])


def _scattered(
    w: AtenWriter, x: AtenValue, dim: int, index: AtenValue, source: AtenValue, kind: str
) -> AtenValue:
    updates = w.cut(w.cast(source, x.dtype), index.shape)
    axis = x.axis(dim)
    return w.spell("ScatterElements", x, index, updates, axis=axis, reduction=kind)


def _slice_scatter(
    w: AtenWriter,
    self: AtenValue,
    src: AtenValue,
    dim: int = 0,
    start: AnySize | None = None,
    end: AnySize | None = None,
    step: int = 1,
) -> AtenValue:
    """Another tensor in place of a slice."""
    axis = self.axis(dim)
    size = self.shape[axis]
    first = 0 if start is None else start
    last = size if end is None or end == LAST else end
    if step != 1:
        raise NotSupported(f"step is {step}; only 1 is known")
    if isinstance(first, int) and first < 0:
        first = size + first
    if isinstance(last, int) and last < 0:
        last = size + last
    last = first + src.shape[axis] if last >= size else last
    parts = [
        sliced(w, self, dim, 0, first),
        w.cast(src, self.dtype),
        sliced(w, self, dim, last),
    ]
    return joined(w, [x for x in parts if x.shape[axis] != 0], dim)


def _select_scatter(
    w: AtenWriter, self: AtenValue, src: AtenValue, dim: int, index: AnySize
) -> AtenValue:
    axis = self.axis(dim)
    place = index + self.shape[axis] if isinstance(index, int) and index < 0 else index
    wide = w.reshape(src, (*self.shape[:axis], 1, *self.shape[axis + 1 :]))
    return _slice_scatter(w, self, wide, axis, place, place + 1)


def _topk(
    w: AtenWriter,
    self: AtenValue,
    k: AnySize,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
) -> Sequence[AtenValue]:
    count = w.sizes((k,))
    return w.spell_all(
        "TopK", 2, self, count, axis=self.axis(dim), largest=int(largest), sorted=int(sorted)
    )


def _sort(
    w: AtenWriter, self: AtenValue, dim: int = -1, descending: bool = False
) -> Sequence[AtenValue]:
    return _topk(w, self, self.shape[self.axis(dim)], dim, descending)


def _stable_sort(
    w: AtenWriter,
    self: AtenValue,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
) -> Sequence[AtenValue]:
    return _sort(w, self, dim, descending)


def _argsort(w: AtenWriter, self: AtenValue, dim: int = -1, descending: bool = False) -> AtenValue:
    return _sort(w, self, dim, descending)[1]


def _triangle(upper: int) -> Rule:
    def rule(w: AtenWriter, self: AtenValue, diagonal: int = 0) -> AtenValue:
        return w.spell("Trilu", self, w.operand(diagonal), upper=upper)

    return rule


def _one_hot(w: AtenWriter, self: AtenValue, num_classes: int = -1) -> AtenValue:
    if num_classes < 0:
        raise NotSupported("data decide how many classes there are")
    values = w.sizes((0, 1))
    return w.spell("OneHot", self, w.operand(num_classes), values, axis=-1)


def _unfold(w: AtenWriter, self: AtenValue, dimension: int, size: int, step: int) -> AtenValue:
    """Windows of an axis; each becomes a last axis."""
    axis = self.axis(dimension)
    count = (closed(self.shape[axis]) - size) // step + 1
    table = np.arange(count)[:, None] * step + np.arange(size)
    made = w.spell("Gather", self, w.constant(table.astype(np.int64)), axis=axis)
    order = [n for n in range(made.rank) if n != axis + 1]
    return w.emit(Transpose((*order, axis + 1)), made)


def _diagonal(
    w: AtenWriter, self: AtenValue, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> AtenValue:
    a, b = self.axis(dim1), self.axis(dim2)
    rest = [n for n in range(self.rank) if n not in (a, b)]
    x = w.emit(Transpose((a, b, *rest)), self)
    rows, columns = closed(x.shape[0]), closed(x.shape[1])
    first = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    places = np.stack([first - min(offset, 0), first + max(offset, 0)], axis=1)
    made = w.spell("GatherND", x, w.constant(places.astype(np.int64)))
    return w.emit(Transpose((*range(1, made.rank), 0)), made)


def _nonzero(w: AtenWriter, self: AtenValue) -> AtenValue:
    """Places, a row for each; data decide how many."""
    return w.emit(Transpose((1, 0)), w.spell("NonZero", self))


def _index_add(
    w: AtenWriter, self: AtenValue, dim: int, index: AtenValue, source: AtenValue, alpha: Number = 1
) -> AtenValue:
    axis = self.axis(dim)
    shape = [1] * self.rank
    shape[axis] = -1
    places = w.expand(w.reshape(index, shape), source.shape)
    scaled = source if alpha == 1 else w.emit(Mul(), source, w.full(alpha, source.dtype))
    return _scattered(w, self, axis, places, scaled, "add")


def _take_along_dim(
    w: AtenWriter, self: AtenValue, indices: AtenValue, dim: int | None = None
) -> AtenValue:
    if dim is None:
        raise NotSupported("it takes from all axes together")
    return _gather(w, self, dim, indices)


RULES: dict[str, Rule] = {
    "argsort": _argsort,
    "diagonal": _diagonal,
    "embedding": _embedding,
    "gather": _gather,
    "index.Tensor": _index,
    "index_add": _index_add,
    "index_put": _index_put,
    "index_select": _index_select,
    "nonzero": _nonzero,
    "one_hot": _one_hot,
    "scatter.src": _scatter,
    "scatter.value": _scatter_value,
    "scatter_add": _scatter_add,
    "scatter_reduce.two": _scatter_reduce,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "sort": _sort,
    "sort.stable": _stable_sort,
    "take_along_dim": _take_along_dim,
    "topk": _topk,
    "tril": _triangle(0),
    "triu": _triangle(1),
    "unfold": _unfold,
}
