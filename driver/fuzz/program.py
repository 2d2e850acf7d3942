"""Random small functions: each tensor is derived from an earlier one, dimension by dimension, and
combined with others.

A dimension of the source is kept, shifted, strided, reversed, padded, cut in two, slid over by a
window, looked up by indices that are data, or reduced away; so products of matrices, convolutions,
poolings, lookups, norms and plain chains all come out of one recipe. Some tensors are scans, some
come in pairs of one reduction. Two kinds of functions are drawn. An *exact* one computes with whole
numbers small enough that every order of every sum has the same bits. A *rounded* one divides and
calls elementary functions, and has no step that turns a rounding into another value (floor, a
comparison or a cast of what was computed). In an *open* one a call decides some sizes of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from ...tir.dim import Dim, Extent, most
from ...tir.dtype import DType, dtype
from ...tir.expr import Expr
from ...tir.func import PrimFunc
from ...tir.te import te
from .scalar import OperandPair, ScalarCases, ScalarOperand

MAX_SIZE = 160  # elements of a tensor
MAX_POINTS = 600  # points of a computation
_TYPES = ("float32",) * 8 + ("float64", "int32", "int32", "int64", "int8", "uint8")
_ROUNDED_TYPES = ("float32", "float32", "float64")

Index = Callable[[Sequence[Expr]], Expr]


@dataclass(slots=True)
class _Axes:
    """The axes of a tensor that is being drawn.

    extents: of its own axes. reduced: its reduction axes. indices: where the source is read, one
    function of the own axes per dimension; guards: where that may be done.
    """

    extents: list[Extent] = field(default_factory=list)
    reduced: list[te.ReduceAxis] = field(default_factory=list)
    indices: list[Index] = field(default_factory=list)
    guards: list[Callable[[Sequence[Expr]], Expr]] = field(default_factory=list)

    def axis(self, extent: Extent) -> Index:
        """A new axis of the tensor."""
        position = len(self.extents)
        self.extents.append(extent)
        return lambda axes: axes[position]

    def reduce(self, extent: Extent) -> te.ReduceAxis:
        """A new reduction axis."""
        made = te.reduce_axis(extent, name="krs"[len(self.reduced) % 3])
        self.reduced.append(made)
        return made

    @property
    def points(self) -> int:
        """Points of the computation, at most."""
        count = 1
        for extent in (*map(most, self.extents), *(axis.extent for axis in self.reduced)):
            count *= extent
        return count


def random_function(rng: Random, *, is_open: bool = False) -> PrimFunc:
    """A function of stage TENSOR, of one to five computed tensors. is_open: a call may decide some
    of its sizes.
    """
    return _Drawing(rng, is_open).function()


class _Drawing:
    """The tensors of one function so far."""

    def __init__(self, rng: Random, is_open: bool) -> None:
        self.rng = rng
        self.is_open = is_open
        self.dims: list[Dim] = []
        self.rounded = rng.random() < 0.3
        self.scalars = ScalarCases(rng, rounded=self.rounded)
        self.inputs: list[te.Tensor] = []
        self.computed: list[te.Tensor] = []
        self.bounds: dict[te.Tensor, int] = {}  # on the magnitude of an element

    def function(self) -> PrimFunc:
        rng = self.rng
        kind = dtype(rng.choice(_ROUNDED_TYPES if self.rounded else _TYPES))
        rank = rng.choice((1, 2, 2, 2, 3, 3, 4))
        sizes = [rng.randint(1, (20, 13, 7, 5)[rank - 1]) for _ in range(rank)]
        source = self.input([self.extent(size) for size in sizes], kind)
        for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))):
            is_fixed = not any(isinstance(extent, Dim) for extent in source.extents)
            if rng.random() < 0.06 and source.shape and not source.type.is_bool and is_fixed:
                self.scan(source)
            else:
                self.derive(source)
            pool = self.computed if rng.random() < 0.85 else [*self.inputs, *self.computed]
            source = pool[-1] if rng.random() < 0.8 else rng.choice(pool)
        return te.func(*self.inputs, *self.outputs(), name="f")

    def outputs(self) -> list[te.Tensor]:
        """The tensors that nothing reads, and sometimes another one."""
        read = {
            tensor
            for made in self.computed
            for tensor in (made.computation.inputs if made.computation else ())
        }
        return [t for t in self.computed if t not in read or self.rng.random() < 0.08]

    def extent(self, size: int) -> Extent:
        """A size, or one that a call decides up to it."""
        if not self.is_open or self.rng.random() < 0.4:
            return size
        if self.dims and self.rng.random() < 0.2:
            return self.rng.choice(self.dims)
        low = self.rng.choice((0, 1, 1, 1, size))
        self.dims.append(te.dim(f"n{len(self.dims)}", low, size))
        return self.dims[-1]

    def input(self, shape: Sequence[Extent], kind: DType) -> te.Tensor:
        """A new placeholder."""
        name = "XABDEGHLMNPQRSTUVWZ"[len(self.inputs) % 19]
        constant = bool(self.inputs) and self.rng.random() < 0.3
        constant = constant and not any(isinstance(extent, Dim) for extent in shape)
        made = te.placeholder(tuple(shape), kind, name=name, constant=constant)
        self.inputs.append(made)
        self.bounds[made] = 1 if kind.is_bool else 3
        return made

    def derive(self, source: te.Tensor) -> None:
        """One more computed tensor, made of `source`."""
        rng = self.rng
        axes = _Axes()
        order = list(range(len(source.shape)))
        if rng.random() < 0.3:
            rng.shuffle(order)
        found: dict[int, Index] = {}
        for dimension in order:
            found[dimension] = self.dimension(axes, source, source.extents[dimension])
        axes.indices = [found[dimension] for dimension in range(len(source.shape))]
        weighted = bool(axes.reduced) and rng.random() < 0.5
        if weighted and axes.points <= MAX_POINTS // 4 and rng.random() < 0.7:
            axes.axis(rng.randint(1, 5))
        name = f"T{len(self.computed)}"
        shape = tuple(axes.extents)
        if axes.reduced and rng.random() < 0.12:
            self.pair(source, axes, name)
            return
        made: list[ScalarOperand] = []

        def element(*own: Expr) -> Expr:
            made.append(self.element(source, axes, own, weighted))
            return made[-1].expr

        tensor = te.compute(shape, element, name=name)
        self.computed.append(tensor)
        self.bounds[tensor] = made[-1].bound

    def pair(self, source: te.Tensor, axes: _Axes, name: str) -> None:
        """Two more tensors, computed together by one reduction of `source`."""
        made: list[OperandPair] = []

        def element(*own: Expr) -> Expr:
            made.append(self.scalars.pair(self.inside(source, axes, own), axes.reduced))
            return made[-1].expr

        tensors = te.compute(tuple(axes.extents), element, name=(name, f"{name}_2"))
        for tensor, bound in zip(tensors, made[-1].bounds, strict=True):
            self.computed.append(tensor)
            self.bounds[tensor] = bound

    def scan(self, source: te.Tensor) -> None:
        """One more computed tensor: a scan along one axis of `source`, from one of its ends."""
        rng, shape, kind = self.rng, source.shape, source.type
        axis = rng.randrange(len(shape))
        steps, reverse = shape[axis], rng.random() < 0.3
        first = min(steps, rng.choice((1, 1, 2)))
        back = rng.randint(1, first) * (-1 if reverse else 1)
        state = te.state(shape, kind, name=f"T{len(self.computed)}")
        bound = self.bounds[source]
        joined = self.scalars.step(kind, bound, steps)

        def begin(*own: Expr) -> Expr:
            at = list(own)
            at[axis] = own[axis] + (steps - first) if reverse else own[axis]
            return source[tuple(at)]

        def later(*own: Expr) -> Expr:
            before = list(own)
            before[axis] = own[axis] - back
            return joined.join(state[tuple(before)], source[tuple(own)])

        begun = te.compute((*shape[:axis], first, *shape[axis + 1 :]), begin, name="first")
        update = te.compute(shape, later, name="step")
        tensor = te.scan(begun, update, state, axis=axis, reverse=reverse)
        self.computed.append(tensor)
        self.bounds[tensor] = joined.bound

    def dimension(self, axes: _Axes, source: te.Tensor, extent: Extent) -> Index:
        """How one dimension of the source is read; may add axes. A window moves over what is
        computed, mostly, and padding surrounds what is given.
        """
        rng = self.rng
        if isinstance(extent, Dim):
            return _open(rng, axes, extent)
        room = axes.points * extent <= MAX_POINTS
        form = rng.random()
        if not room or form < 0.04:
            at = rng.randrange(extent) if extent else 0
            return axes.axis(extent) if room or not extent else (lambda _: te.const(at, "int64"))
        if 0.4 < form < 0.44 and extent:
            return self.looked_up(axes, extent)
        if form < 0.44 or extent < 2:
            return axes.axis(extent)
        if form < 0.62:
            axis = axes.reduce(extent)
            return lambda _: axis
        often = _padded if source.computation is None else _window
        forms = (_shifted, _strided, _reversed, _padded, _joined, _window, *(often,) * 6)
        return rng.choice(forms)(rng, axes, extent)

    def looked_up(self, axes: _Axes, extent: int) -> Index:
        """A dimension that is read at indices that are data: one axis counts them."""
        kind = dtype(self.rng.choice(("int32", "int64", "uint8")))
        count = self.rng.randint(1, extent + 2)
        if axes.points * count > MAX_POINTS:
            count = 1
        data, own = self.input([count], kind), axes.axis(count)
        return lambda at: self.bounded(data[own(at)], extent)

    def bounded(self, value: Expr, extent: int) -> Expr:
        """An index that is data: clamped, or checked."""
        inside = te.checked if self.rng.random() < 0.4 else te.clamp_index
        return inside(value, extent)

    def inside(self, source: te.Tensor, axes: _Axes, own: Sequence[Expr]) -> ScalarOperand:
        """The element of the source for the axes `own`, or a constant where it has none."""
        value = self.read(source, [index(own) for index in axes.indices])
        if not axes.guards:
            return value
        inside = te.all_of(*(guard(own) for guard in axes.guards))
        fill = self.scalars.constant(value.expr.dtype)
        bound = max(value.bound, fill.bound)
        return ScalarOperand(te.select(inside, value.expr, fill.expr), bound, value.computed)

    def element(
        self, source: te.Tensor, axes: _Axes, own: Sequence[Expr], weighted: bool
    ) -> ScalarOperand:
        """The element at the axes `own`."""
        rng, scalars = self.rng, self.scalars
        value = self.inside(source, axes, own)
        reach = [(v, n) for v, n in zip(own, axes.extents, strict=True)]
        if axes.reduced:
            inner = [(axis, axis.size) for axis in axes.reduced]
            if weighted:
                weight = self.fitted(inner + reach, value.expr.dtype)
                value = scalars.product(value, weight)
            elif rng.random() < 0.4:
                value = scalars.tree(value, lambda kind: self.leaf(inner + reach, kind), 1)
            return scalars.reduction(value, axes.reduced)
        return scalars.tree(value, lambda kind: self.leaf(reach, kind), rng.randint(0, 4))

    def read(self, tensor: te.Tensor, indices: Sequence[Expr]) -> ScalarOperand:
        """An element of a tensor."""
        return ScalarOperand(
            tensor[tuple(indices)], self.bounds[tensor], tensor.computation is not None
        )

    def leaf(self, reach: Sequence[tuple[Expr, Extent]], kind: DType) -> ScalarOperand:
        """Another operand of a type: an element of an earlier tensor or of a new input."""
        rng = self.rng
        if reach and not kind.is_bool and rng.random() < 0.06:  # an axis as data
            var, extent = rng.choice(list(reach))
            return ScalarOperand(te.cast(var, kind), most(extent))
        tensors = (*self.inputs, *self.computed)
        known = [t for t in tensors if t.type == kind and all(map(_has_some, t.extents))]
        if known and rng.random() < 0.6:
            tensor = rng.choice(known)
            return self.read(tensor, [self.index(reach, n) for n in tensor.extents])
        return self.fitted(reach, kind)

    def index(self, reach: Sequence[tuple[Expr, Extent]], extent: Extent) -> Expr:
        """An index below `extent`: a variable that fits, or one that is made to fit."""
        rng = self.rng
        if isinstance(extent, Dim):
            same = [v for v, n in reach if n is extent]
            under = [v for v, n in reach if most(n) <= extent.low]
            return rng.choice(same or under or [te.const(0, "int64")])
        if extent and rng.random() < 0.03:
            kind = dtype(rng.choice(("int32", "int64", "uint8")))
            return self.bounded(self.fitted(reach, kind).expr, extent)
        same = [v for v, n in reach if most(n) == extent]
        if same and rng.random() < 0.9:
            return rng.choice(same)
        sizes = [(v, most(n)) for v, n in reach]
        below = [(v, n) for v, n in sizes if 0 < n <= extent]
        if below and rng.random() < 0.8:
            var, n = rng.choice(below)
            return var + rng.randint(0, extent - n)
        if not sizes or extent == 0:
            return te.const(0, "int64")
        var, n = rng.choice(sizes)
        form = rng.randrange(4)
        if form == 0:
            return te.const(rng.randrange(extent), "int64")
        if form == 1:
            return te.minimum(var, te.const(extent - 1, "int64"))
        return var % extent if form == 2 else var // max(1, -(-n // extent))

    def fitted(self, reach: Sequence[tuple[Expr, Extent]], kind: DType) -> ScalarOperand:
        """An element of a new input whose shape fits some of the variables."""
        rng = self.rng
        chosen = [item for item in reach if rng.random() < 0.6] or list(reach[:1])
        size = 1
        kept: list[tuple[Expr, Extent]] = []
        for var, extent in chosen:
            if size * most(extent) <= MAX_SIZE:
                kept.append((var, extent))
                size *= most(extent)
        if rng.random() < 0.3:
            rng.shuffle(kept)
        tensor = self.input([extent for _, extent in kept], kind)
        return self.read(tensor, [var for var, _ in kept])


def _has_some(extent: Extent) -> bool:
    return not isinstance(extent, Dim) or extent.low > 0


def _open(rng: Random, axes: _Axes, extent: Dim) -> Index:
    """A dimension whose size a call decides: kept, reduced away, reversed, read beside itself."""
    form = rng.random()
    if form < 0.3 and axes.points * extent.high <= MAX_POINTS:
        axis = axes.reduce(extent)
        return lambda _: axis
    own = axes.axis(extent)
    if form < 0.7:
        return own
    if form < 0.85:
        return lambda at: extent - 1 - own(at)
    by = rng.randint(1, 2)
    if form < 0.93:
        axes.guards.append(lambda at: own(at) + by < extent)
        return lambda at: own(at) + by
    axes.guards.append(lambda at: own(at) >= by)
    return lambda at: own(at) - by


def _shifted(rng: Random, axes: _Axes, extent: int) -> Index:
    by = rng.randint(1, extent - 1)
    own = axes.axis(extent - by)
    return lambda at: own(at) + by


def _strided(rng: Random, axes: _Axes, extent: int) -> Index:
    stride = rng.randint(2, 3)
    own = axes.axis((extent - 1) // stride + 1)
    return lambda at: own(at) * stride


def _reversed(rng: Random, axes: _Axes, extent: int) -> Index:
    own = axes.axis(extent)
    return lambda at: te.const(extent - 1, "int64") - own(at)


def _padded(rng: Random, axes: _Axes, extent: int) -> Index:
    before, after = rng.randint(0, 2), rng.randint(0, 2)
    own = axes.axis(before + extent + after)
    if before:
        axes.guards.append(lambda at: own(at) >= before)
    if after:
        axes.guards.append(lambda at: own(at) < before + extent)
    return lambda at: own(at) - before


def _joined(rng: Random, axes: _Axes, extent: int) -> Index:
    """Two axes in the place of one."""
    width = rng.randint(2, 3)
    outer, inner = axes.axis(extent // width or 1), axes.axis(min(width, extent))
    return lambda at: outer(at) * width + inner(at)


def _window(rng: Random, axes: _Axes, extent: int) -> Index:
    size = rng.randint(1, min(3, extent))
    stride, dilation = rng.choice((1, 1, 2)), rng.choice((1, 1, 1, 2))
    span = dilation * (size - 1) + 1
    if span > extent:
        dilation, span = 1, size
    own = axes.axis((extent - span) // stride + 1)
    within = axes.reduce(size)
    return lambda at: own(at) * stride + within * dilation
