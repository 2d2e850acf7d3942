"""Which rows of its inputs each element of a function's results is computed from.

A tensor has rows of a size where its elements, in the order of memory, are so many rows, once or
several times over: element f is of row f // inner % count. A function keeps rows apart where each
element that it computes reads elements of its own row, and tensors without rows, alone. That is
shown by the index of each load beside that of the store, for all points of a block; what is not
shown is taken for mixed. So neither what other rows hold nor how many there are changes a bit of a
row.

Where sizes are numbers, rows are only followed. Where calls decide them, no value, index or
reduction may depend on the size itself, either, so that a row is the same function of its inputs
however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..buffer import Buffer, Load
from ..dim import Dim, Extent
from ..expr import Expr, Var, floordiv, floormod, index
from ..func import PrimFunc
from ..node import Node
from ..sizes import AnySize, Size, exact_quotient, product_of
from ..stmt import Block, Extern, IterKind, Store
from ..visit import found_in, free_vars, loads
from .linear import Ranges
from .simplify import simplify


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Where the rows of a tensor lie. inner: how many elements in a series are of one row.

    alike: whether each row is the same function of its row of the inputs, so that equal rows of
    these give equal rows.
    """

    inner: AnySize
    alike: bool = True


Layouts = Mapping[Buffer, RowLayout | None]  # None: a tensor without rows


class MixedRowsError(Exception):
    """Rows meet; its text says where, as the rest of a sentence about a node."""


class UnlikeRowsError(MixedRowsError):
    """Rows stay apart, but a check of indices may fail for one of them and not for an equal one."""


@dataclass(frozen=True, slots=True)
class RowSize:
    """The size whose rows are followed: its name, and how many rows there are, a number or a size.

    dims: what the dims of the function are.
    """

    name: str
    count: AnySize
    dims: Mapping[Dim, AnySize]

    def of(self, extent: Extent) -> AnySize:
        """An extent of the function as a size of the program."""
        return self.dims[extent] if isinstance(extent, Dim) else extent

    def shape_of(self, buffer: Buffer) -> tuple[AnySize, ...]:
        """The shape of a tensor of the function in sizes of the program."""
        return tuple(map(self.of, buffer.extents))

    def decides(self, size: AnySize) -> bool:
        """Whether a size depends on the one that is followed, where calls decide that."""
        if not isinstance(size, Size) or not isinstance(self.count, Size):
            return False
        return not set(self.count.dims).isdisjoint(size.dims)


def row_layout(shape: Sequence[AnySize], size: RowSize) -> RowLayout | None:
    """The rows of a tensor one axis of which is the size, or a multiple of it; None where no axis
    depends on it.

    Raises: MixedRowsError where it depends on the size in another way.
    """
    axes = [axis for axis, extent in enumerate(shape) if size.decides(extent)]
    if not axes:
        return None
    times = exact_quotient(shape[axes[0]], size.count)
    if len(axes) > 1 or times is None or size.decides(times):
        listed = ", ".join(map(str, shape))
        raise MixedRowsError(f"has a tensor of [{listed}], which is not '{size.name}' rows")
    return RowLayout(times * product_of(shape[axes[0] + 1 :]))


def follow_rows(
    func: PrimFunc, given: Layouts, size: RowSize, *, any_check: bool = False
) -> Layouts:
    """The rows of each tensor of a function of stage TENSOR, from those of its inputs. any_check:
    whatever checks of indices look at.

    Raises: MixedRowsError where an element reads another row than its own, or nobody knows;
    UnlikeRowsError.
    """
    found = dict(given)
    checks = {p.buffer for p in func.parameters if p.check is not None}
    for block in func.blocks:
        found |= _written(block, found, checks, size, any_check)
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a row stands: its number is `position // times`, modulo how many there are where the
    axis has them `turns` times.
    """

    position: Expr
    times: AnySize
    turns: AnySize


def _written(
    block: Block, found: Layouts, checks: set[Buffer], size: RowSize, any_check: bool
) -> Layouts:
    """The rows of what a block writes."""
    if isinstance(block.body, Extern):
        if any(found[buffer] is not None for buffer in block.body.inputs):
            raise MixedRowsError("is a function of which no expression says what it reads")
        return {buffer: row_layout(size.shape_of(buffer), size) for buffer in block.body.outputs}
    stores = found_in(block, Store)
    buffers = tuple(dict.fromkeys(store.buffer for store in stores))
    points = _Points(block, found, size)
    points.check_sizes([store.value for store in stores], is_check=buffers[0] in checks)
    if buffers[0] in checks:
        if not any_check:
            points.check_alike(stores)
        return dict.fromkeys(buffers)
    shapes = [size.shape_of(buffer) for buffer in buffers]
    if any(shape != shapes[0] for shape in shapes):
        raise MixedRowsError("writes tensors of several shapes at once")
    layout = points.result(stores, shapes[0])
    before = [found[buffer] for buffer in buffers if buffer in found]
    if any(one is not None and (layout is None or one.inner != layout.inner) for one in before):
        raise MixedRowsError("writes one tensor by rows of two kinds")
    return dict.fromkeys(buffers, layout)


class _Points:
    """The points of a block, and the rows of what they read."""

    def __init__(self, block: Block, found: Layouts, size: RowSize) -> None:
        self._block = block
        self._found = found
        self._size = size
        self._ranges: Ranges = {it.var: (0, it.extent - 1) for it in block.iters}
        self._reads = [one for one in loads(block) if found.get(one.buffer) is not None]

    def check_sizes(self, values: Sequence[Expr], *, is_check: bool) -> None:
        """See that nothing but the number of rows depends on the size, where calls decide it. A
        check looks at all rows, as it should.
        """
        size, block = self._size, self._block
        joined = (it.dim for it in block.iters if it.kind is not IterKind.SPATIAL and it.dim)
        if not is_check and (self._is_named(block.counts) or any(map(self._is_named, joined))):
            raise MixedRowsError(f"joins the rows of '{size.name}', in its part '{block.name}'")
        if any(map(self._is_named, values if is_check else [block.body])):
            raise MixedRowsError(f"computes with the size '{size.name}'")

    def _is_named(self, node: Node) -> bool:
        """Whether an expression, or a statement, speaks of the size."""
        return any(self._size.decides(self._size.of(dim)) for dim in found_in(node, Dim))

    def check_alike(self, stores: Sequence[Store]) -> None:
        """See that a check looks at nothing but what equal rows have alike."""
        for load in self._reads:
            layout = self._found[load.buffer]
            assert layout is not None
            place = self._place(load.buffer, load.indices, layout.inner)
            beside = self._used_beside([store.value for store in stores])
            whole = place.times == place.turns == 1 or isinstance(place.position, Var)
            if not (layout.alike and whole) or free_vars(place.position) & beside:
                raise UnlikeRowsError("checks indices that depend on which row they are of")

    def result(self, stores: Sequence[Store], shape: Sequence[AnySize]) -> RowLayout | None:
        """The rows of what is stored, tensors of one shape. Raises: MixedRowsError."""
        named = any(map(self._size.decides, shape))
        if not self._reads and not named:
            return None
        reason: MixedRowsError | None = self._mixed(self._reads[0]) if self._reads else None
        for axis, extent in enumerate(shape):
            most = exact_quotient(extent, self._size.count)
            if most is None or most == 0 or (named and not self._size.decides(extent)):
                continue
            for times in dict.fromkeys((most, 1)):  # the size in front, or behind all others
                try:
                    return self._apart(stores, times * product_of(shape[axis + 1 :]))
                except MixedRowsError as error:
                    reason = error
        if reason is None:
            listed = ", ".join(map(str, shape))
            reason = MixedRowsError(
                f"makes [{listed}], no axis of which is '{self._size.name}' rows"
            )
        raise reason

    def _apart(self, stores: Sequence[Store], inner: AnySize) -> RowLayout:
        """The rows of what is stored, where each element is of one row with all that is loaded."""
        written = {store.buffer for store in stores}
        reads = [*self._reads, *(one for one in loads(self._block) if one.buffer in written)]
        alike = True
        for store in stores:
            wanted = self._place(store.buffer, store.indices, inner)
            for load in reads:
                layout = self._found.get(load.buffer)
                if load.buffer in written or layout is None:
                    layout = RowLayout(inner)
                place = self._place(load.buffer, load.indices, layout.inner)
                if place != wanted and self._row(place) != self._row(wanted):
                    raise self._mixed(load)
                plain = place == wanted or place.times == place.turns == 1
                alike = alike and layout.alike and plain
            beside = self._used_beside([store.value], written)
            alike = alike and not free_vars(wanted.position) & beside
        return RowLayout(inner, alike)

    def _used_beside(
        self, values: Sequence[Expr], written: set[Buffer] | None = None
    ) -> frozenset[Var]:
        """The variables that values depend on otherwise than as rows that they read. written: what
        the block writes, its accumulators.
        """
        found: set[Var] = set()
        waiting: list[Node] = [*values]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Var):
                found.add(node)
            elif not isinstance(node, Load):
                waiting += node.children()
            elif not written or node.buffer not in written:
                layout = self._found.get(node.buffer)
                skipped = -1 if layout is None else self._axis(node.buffer, layout.inner)[0]
                waiting += [one for n, one in enumerate(node.indices) if n != skipped]
        return frozenset(found)

    def _place(self, buffer: Buffer, indices: Sequence[Expr], inner: AnySize) -> _Place:
        axis, times, turns = self._axis(buffer, inner)
        return _Place(indices[axis], times, turns)

    def _axis(self, buffer: Buffer, inner: AnySize) -> tuple[int, AnySize, AnySize]:
        """The axis that has the rows, how many places of it in a series are of one row, and how
        often it has all rows.
        """
        shape = self._size.shape_of(buffer)
        for axis, extent in enumerate(shape):
            times = exact_quotient(inner, product_of(shape[axis + 1 :]))
            if times is None or times == 0:
                continue
            turns = exact_quotient(extent, times * self._size.count)
            if turns is not None and turns != 0:
                return axis, times, turns
        listed = ", ".join(map(str, shape))
        raise MixedRowsError(
            f"takes '{buffer.name}' as [{listed}], no axis of which is '{self._size.name}' rows"
        )

    def _row(self, place: _Place) -> Expr:
        """The number of the row, in its simplest form."""
        row = floordiv(place.position, self._number(place.times))
        if place.turns != 1:
            row = floormod(row, self._number(self._size.count))
        return simplify(row, self._ranges)

    def _number(self, size: AnySize) -> Expr:
        """A size as an expression of the function."""
        if isinstance(size, int):
            return index(size)
        for dim, known in self._size.dims.items():
            if known == size:
                return dim
        raise MixedRowsError(f"has rows of '{size}' places, which its parts do not know")

    def _mixed(self, load: Load) -> MixedRowsError:
        return MixedRowsError(
            f"does not read its own row of '{self._size.name}' alone, or might not: its part "
            f"'{self._block.name}' reads {load}"
        )
