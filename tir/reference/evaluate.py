"""The NumPy evaluator: a canonical function computed block by block on whole arrays: a fast oracle.

A block is evaluated over boxes of its points, so temporaries stay within MAX_BYTES. Loads with
affine indices (plain, windows, transposes) are strided views; others gather. A sum of products
becomes matrix products; other reductions are NumPy's, in no promised order. In float64 the rounding
of all that is far below what a float32 kernel may differ by; `error_bound` says how far that is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..analysis.linear import linear
from ..analysis.specialise import sizes_of, specialise
from ..analysis.update import Update
from ..buffer import Buffer, Load
from ..dtype import DType
from ..dtype import dtype as as_dtype
from ..errors import IRError, known_names
from ..expr import Const, Expr, FloorDiv, FloorMod, Var, add, index, mul
from ..func import PrimFunc
from ..node import Node
from ..stmt import Extern, IterKind, IterVar
from ..visit import free_vars, loads, substitute, transform, walk
from .array_expr import ArrayEvaluator
from .contraction import contract, factors_of
from .definitions import Definition, definitions
from .running_totals import running

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]
Arrays = Mapping[str, Array] | Sequence[Array]

MAX_BYTES = 1 << 28
POINTS = 1 << 18  # of a box: its temporaries stay in the cache
_FACTORS = MAX_BYTES // 8 // 4  # elements of a box's factors: copies and results take the rest

COMBINE: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "max_any": np.maximum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def evaluate(
    func: PrimFunc,
    arrays: Arrays,
    dtype: DType | str | None = None,
    *,
    intermediates: bool = False,
) -> dict[str, Array]:
    """The outputs of `func` by name, and its intermediate tensors too when asked for.

    arrays: the inputs and constants, in the order of the parameters or by name.
    dtype: the type that every float is promoted to (inputs, tensors, constants); None: their own.
    Raises: IRError when the arrays do not fit, `func` is not canonical or an index leaves its
    buffer.
    """
    working = None if dtype is None else as_dtype(dtype)
    func = at_sizes(func, arrays)
    buffers = evaluate_all(func, arrays, working)
    kept = (*func.outputs, *(func.allocations if intermediates else ()))
    return {buffer.name: buffers[buffer] for buffer in kept}


def evaluate_all(
    func: PrimFunc,
    arrays: Arrays,
    working: DType | None,
    listed: Sequence[Definition] | None = None,
) -> dict[Buffer, Array]:
    """Every tensor of a function of constant sizes, as `evaluate` computes it; what is read where
    data says and nowhere else is left in its own type. listed: its definitions, where known.
    """
    listed = definitions(func) if listed is None else listed
    tables = _tables(listed)
    buffers = {
        buffer: array
        if buffer in tables
        else array.astype(promoted(buffer.type, working), copy=False)
        for buffer, array in bind(func, arrays).items()
    }
    with np.errstate(all="ignore"):
        for definition in listed:
            compute(definition, buffers, working)
    return buffers


def _tables(listed: Sequence[Definition]) -> frozenset[Buffer]:
    """What is read where data says and nowhere else: elements are promoted as they are gathered,
    for most of a table is not.
    """
    gathered: set[Buffer] = set()
    others: set[Buffer] = set()
    for definition in listed:
        if definition.extern is not None:
            others.update(definition.extern.inputs)
            continue
        for load in (x for e in (*definition.values, *definition.initial) for x in loads(e)):
            is_data = any(loads(index) for index in load.indices)
            (gathered if is_data else others).add(load.buffer)
    return frozenset(gathered - others)


def at_sizes(func: PrimFunc, arrays: Arrays) -> PrimFunc:
    """The function for the sizes that the arrays have; itself where no call decides any.

    Raises: IRError for sizes out of bounds.
    """
    if not func.dims:
        return func
    wanted = [p.buffer for p in func.parameters if p.role != "output"]
    named = {buffer.name: buffer for buffer in wanted}
    pairs = (
        ((named[name], array) for name, array in arrays.items() if name in named)
        if isinstance(arrays, Mapping)
        else zip(wanted, arrays, strict=False)
    )
    return specialise(func, sizes_of(((buffer, a.shape) for buffer, a in pairs)))


def promoted(dtype: DType, working: DType | None) -> np.dtype[np.generic]:
    """The NumPy type of `dtype` where floats are computed in `working`."""
    return working.numpy if working is not None and dtype.is_float else dtype.numpy


def bind(func: PrimFunc, arrays: Arrays) -> dict[Buffer, Array]:
    """The arrays of the inputs and constants.

    Raises: IRError when one is missing or does not fit.
    """
    wanted = [p.buffer for p in func.parameters if p.role != "output"]
    names = [buffer.name for buffer in wanted]
    given = arrays if isinstance(arrays, Mapping) else dict(zip(names, arrays, strict=False))
    if len(arrays) != len(names) or set(given) != set(names):
        got = f"'{', '.join(given)}'" if isinstance(arrays, Mapping) else f"{len(arrays)} arrays"
        raise IRError(
            f"evaluate: '{func.name}' takes {known_names('', names)}; got {got}.",
            code="evaluate-arguments",
        )
    for buffer in wanted:
        array = given[buffer.name]
        if array.shape != buffer.shape or array.dtype != buffer.type.numpy:
            raise IRError(
                f"evaluate: '{buffer.name}' is {array.dtype}{list(array.shape)}; "
                f"expected {buffer.type}{list(buffer.shape)}.",
                code="evaluate-array",
            )
    return {buffer: given[buffer.name] for buffer in wanted}


def compute(
    definition: Definition, buffers: dict[Buffer, Array], working: DType | None = None
) -> None:
    """Add to `buffers` what `definition` computes from them; a part when its target is there."""
    if definition.extern is not None:
        _call(definition.extern, buffers, working)
        return
    for target in definition.targets:
        if target not in buffers:
            buffers[target] = np.zeros(target.shape, dtype=promoted(target.type, working))
    outputs = [buffers[target] for target in definition.targets]
    if definition.plain and not definition.ordered:
        definition = split_quotients(definition)
        extents = [axis.extent for axis in definition.axes]
        outputs = [output.reshape(extents) for output in outputs]
    if definition.ordered:
        _scan(definition, buffers, outputs, working)
        return
    if definition.update is None:
        _map(definition, definition.value, buffers, outputs[0], working)
        return
    for initial, output in zip(definition.initial, outputs, strict=True):
        _map(definition, initial, buffers, output, working)
    if definition.reducer is None:
        _join(definition, definition.update, buffers, outputs, working)
    elif definition.reducer == "sum" and is_contraction(definition):
        _contract(definition, buffers, outputs[0], working)
    else:
        _reduce(definition, buffers, outputs[0], working)


def _call(extern: Extern, buffers: dict[Buffer, Array], working: DType | None) -> None:
    wanted = [(buffer, promoted(buffer.type, working)) for buffer in extern.outputs]
    made = extern.function.compute([buffers[buffer] for buffer in extern.inputs], wanted)
    for (buffer, dtype), array in zip(wanted, made, strict=True):
        output = buffers.setdefault(buffer, np.empty(buffer.shape, dtype))
        output[...] = array


@dataclass(frozen=True, slots=True)
class DomainBox:
    """The points low <= v < high of some axes; arrays of it have a dimension per axis."""

    axes: tuple[IterVar, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    def last(self, count: int) -> DomainBox:
        """The box of the last `count` axes."""
        first = len(self.axes) - count
        return DomainBox(self.axes[first:], self.low[first:], self.high[first:])

    def values(self) -> dict[Var, Array]:
        """Each variable's values, along its own dimension."""
        rank = len(self.axes)
        return {
            axis.var: np.arange(low, high).reshape([-1 if i == d else 1 for i in range(rank)])
            for d, (axis, low, high) in enumerate(zip(self.axes, self.low, self.high, strict=True))
        }

    def view(self, load: Load, data: Array) -> Array | None:
        """The elements that `load` reads, as a strided view; None where it must gather."""
        dimensions = {axis.var: d for d, axis in enumerate(self.axes)}
        shape, strides, start = [1] * len(self.axes), [0] * len(self.axes), []
        for at, size, stride in zip(load.indices, data.shape, data.strides, strict=True):
            form = linear(at)
            low = high = first = form.constant
            for atom, coefficient in form.terms:
                if not isinstance(atom, Var) or atom not in dimensions:
                    return None
                d = dimensions[atom]
                ends = coefficient * self.low[d], coefficient * (self.high[d] - 1)
                low, high, first = low + min(ends), high + max(ends), first + ends[0]
                shape[d] = self.high[d] - self.low[d]
                strides[d] += coefficient * stride
            if low < 0 or high >= size:
                return None
            start.append(first)
        corner = data[tuple(slice(s, None) for s in start)]
        bits = corner.view(f"u{data.itemsize}")  # as_strided does not know every type of ml_dtypes
        return as_strided(bits, shape, strides, writeable=False).view(data.dtype)


def _evaluator(
    box: DomainBox, buffers: Mapping[Buffer, Array], working: DType | None
) -> Callable[[Expr], Array]:
    def view(load: Load) -> Array | None:
        return box.view(load, buffers[load.buffer])

    return ArrayEvaluator(box.values(), buffers, working=working, view=view).evaluate


def boxes(axes: tuple[IterVar, ...], chunks: Sequence[int]) -> Iterator[DomainBox]:
    """The boxes of at most `chunks` points along each axis that cover the domain."""
    ranges = [range(0, axis.extent, chunk) for axis, chunk in zip(axes, chunks, strict=True)]
    for low in itertools.product(*ranges):
        high = (min(i + c, a.extent) for i, c, a in zip(low, chunks, axes, strict=True))
        yield DomainBox(axes, low, tuple(high))


def chunk_sizes(axes: tuple[IterVar, ...], points: int) -> list[int]:
    """Sizes of boxes of about `points` points: the last axes whole."""
    chunks: list[int] = []
    for axis in reversed(axes):
        chunks.append(max(1, min(axis.extent, points)))
        points //= chunks[-1]
    return chunks[::-1]


def _store(
    definition: Definition,
    output: Array,
    box: DomainBox,
    value: Array,
    combine: np.ufunc | None = None,
) -> None:
    place = place_of(definition, box)
    output[place] = value if combine is None else combine(output[place], value)


def place_of(definition: Definition, box: DomainBox) -> tuple[slice | Array, ...]:
    """The elements of the targets that a box of the axes defines."""
    if definition.plain:
        return tuple(slice(low, high) for low, high in zip(box.low, box.high, strict=True))
    found = _evaluator(box, {}, None)
    return tuple(np.broadcast_to(found(i), box.extents) for i in definition.indices)


def _map(
    definition: Definition,
    value: Expr,
    buffers: Mapping[Buffer, Array],
    output: Array,
    working: DType | None,
) -> None:
    for box in boxes(definition.axes, chunk_sizes(definition.axes, POINTS)):
        _store(definition, output, box, _evaluator(box, buffers, working)(value))


def _scan(
    definition: Definition,
    buffers: Mapping[Buffer, Array],
    outputs: Sequence[Array],
    working: DType | None,
) -> None:
    """The steps of an ordered axis one after the other; of a running total all at once."""
    time, *others = definition.axes
    total = running(definition)
    steps = 1 if total is None else max(1, time.extent)
    chunks = [steps, *chunk_sizes(tuple(others), max(1, POINTS // steps))]
    for box in boxes(definition.axes, chunks):
        find = _evaluator(box, buffers, working)
        if total is None:
            made = [find(value) for value in definition.values]
            for output, value in zip(outputs, made, strict=True):
                _store(definition, output, box, value)
            continue
        rows = np.broadcast_to(find(total.values), box.extents)
        sums = COMBINE[total.reducer].accumulate(rows, axis=0, dtype=rows.dtype)
        _store(definition, outputs[0], box, sums)


def _reduce(
    definition: Definition,
    buffers: Mapping[Buffer, Array],
    output: Array,
    working: DType | None,
) -> None:
    """Combine the values of each box over the reduction axes, which stand first."""
    axes = definition.reduced + definition.axes
    count = len(definition.reduced)
    combine = COMBINE[definition.reducer or "sum"]
    for box in boxes(axes, chunk_sizes(axes, POINTS)):
        value = _evaluator(box, buffers, working)(definition.value)
        own = value.shape[count:] if value.ndim else (1,) * len(definition.axes)
        value = np.broadcast_to(value, (*box.extents[:count], *own))
        order, first = tuple(range(value.ndim)), 0
        if own and value.shape[count - 1] > own[-1]:  # NumPy's inner loop is over the last axis
            order, first = (*order[count:], *order[:count]), len(own)
        summed = tuple(range(first, first + count))
        partial = combine.reduce(value.transpose(order), axis=summed, dtype=value.dtype)
        _store(definition, output, box.last(len(definition.axes)), partial, combine)


def _join(
    definition: Definition,
    update: Update,
    buffers: Mapping[Buffer, Array],
    outputs: Sequence[Array],
    working: DType | None,
) -> None:
    """Combine the values of each box by the reducer's own expressions, halves with halves."""
    axes = definition.reduced + definition.axes
    count = len(definition.reduced)
    for box in boxes(axes, chunk_sizes(axes, POINTS)):
        evaluator = _evaluator(box, buffers, working)
        steps = math.prod(box.extents[:count])
        shape = (steps, *box.extents[count:])
        rows = tuple(
            np.broadcast_to(evaluator(value), box.extents).reshape(shape)
            for value in definition.values
        )
        while len(rows[0]) > 1:
            half = len(rows[0]) // 2
            left, right = ([row[n * half : (n + 1) * half] for row in rows] for n in (0, 1))
            joined = join(update, left, right, working)
            rest = [row[2 * half :] for row in rows]
            rows = tuple(np.concatenate(pair) for pair in zip(joined, rest, strict=True))
        place = place_of(definition, box.last(len(definition.axes)))
        joined = join(
            update, [output[place] for output in outputs], [row[0] for row in rows], working
        )
        for output, made in zip(outputs, joined, strict=True):
            output[place] = made


def join(
    update: Update, own: Sequence[Array], new: Sequence[Array], working: DType | None = None
) -> list[Array]:
    """What becomes of accumulators that hold `own` when `new`, of the same shape, comes to them."""
    values = dict(zip((*update.own, *update.new), (*own, *new), strict=True))
    find = ArrayEvaluator(values, {}, working=working).evaluate
    return [np.broadcast_to(find(result), own[0].shape) for result in update.results]


def is_contraction(definition: Definition) -> bool:
    """Whether the value is a product of factors none of which depends on every axis."""
    axes = {axis.var for axis in definition.reduced + definition.axes if axis.extent > 1}
    factors = factors_of(definition.value)
    return len(factors) > 1 and all(axes - free_vars(factor) for factor in factors)


def _contract(
    definition: Definition,
    buffers: Mapping[Buffer, Array],
    output: Array,
    working: DType | None,
) -> None:
    axes = definition.reduced + definition.axes
    factors = factors_of(definition.value)
    rank = len(axes)
    for box in boxes(axes, contraction_chunks(definition, axes, factors)):
        evaluator = _evaluator(box, buffers, working)
        arrays = [evaluator(factor) for factor in factors]
        arrays = [a if a.ndim else a.reshape((1,) * rank) for a in arrays]
        partial = contract(arrays, box.extents, len(definition.reduced))
        _store(definition, output, box.last(len(definition.axes)), partial, np.add)


def contraction_chunks(
    definition: Definition, axes: tuple[IterVar, ...], factors: Sequence[Expr]
) -> list[int]:
    """Sizes of boxes whose factors and result together have at most _FACTORS elements."""
    chunks = [axis.extent for axis in axes]
    place = {axis.var: d for d, axis in enumerate(axes)}
    parts = [[place[v] for v in free_vars(factor) if v in place] for factor in factors]
    parts.append([place[axis.var] for axis in definition.axes])
    while True:
        sizes = [math.prod(chunks[d] for d in part) for part in parts]
        if sum(sizes) <= _FACTORS:
            return [max(1, chunk) for chunk in chunks]
        largest = parts[sizes.index(max(sizes))]
        widest = max(largest, key=lambda d: chunks[d])
        chunks[widest] = -(-chunks[widest] // 2)


@lru_cache(maxsize=64)
def split_quotients(definition: Definition) -> Definition:
    """Axes v that are read as v // q, as by groups, split in two: v = g*q + r, and v // q = g."""
    for axis in definition.axes:
        divisors = {
            int(node.b.value)
            for value in definition.values
            for node in walk(value)
            if isinstance(node, FloorDiv) and node.a is axis.var and isinstance(node.b, Const)
        }
        if len(divisors) == 1 and axis.extent % (q := divisors.pop()) == 0 and q < axis.extent:
            definition = _split_axis(definition, axis, q)
    return definition


def _split_axis(definition: Definition, axis: IterVar, q: int) -> Definition:
    group = IterVar(Var(f"{axis.var.name}_group"), axis.extent // q, IterKind.SPATIAL)
    rest = IterVar(Var(f"{axis.var.name}_rest"), q, IterKind.SPATIAL)
    joined = add(mul(group.var, index(q)), rest.var)
    known = {FloorDiv(joined, index(q)): group.var, FloorMod(joined, index(q)): rest.var}

    def rule(node: Node) -> Node:
        return known.get(node, node) if isinstance(node, FloorDiv | FloorMod) else node

    def split(expr: Expr) -> Expr:
        return transform(substitute(expr, {axis.var: joined}), rule)

    axes = tuple(
        new for old in definition.axes for new in ((group, rest) if old is axis else (old,))
    )
    return replace(
        definition,
        axes=axes,
        indices=tuple(new.var for new in axes),
        values=tuple(map(split, definition.values)),
        initial=tuple(map(split, definition.initial)),
    )
