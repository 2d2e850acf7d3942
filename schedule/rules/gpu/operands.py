"""What a rule for GPUs sees in a sum of products: two operands that share its terms.

A matrix product, one of many matrices, and a convolution are one thing: rows are the axes of the
result that one operand alone knows, columns those of the other one. Of a convolution one operand
has the pixels, the other one the channels of the result, and the terms are elements of a window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import gcd, prod

from ....tir.analysis.linear import linear
from ....tir.buffer import Load
from ....tir.expr import Const, Expr, FloorDiv, Var
from ....tir.stmt import Block, IterKind, IterVar
from ....tir.visit import free_vars, loads, walk
from ...nest import is_reduction, writers
from ...schedule import Schedule
from ..shape.structure import converted_product, is_plain_store, is_pointwise
from .elementwise import VECTOR_BYTES
from .epilogue import moved_for, moves, with_reader

SECTOR = 8  # elements of four bytes in the least part of memory that is read at once


@dataclass(frozen=True, slots=True)
class ProductOperand:
    """One operand of a product: what it reads, and the axes of the result that it alone knows; of
    the rows, also axes of one value that neither knows.
    """

    load: Load
    axes: tuple[IterVar, ...]

    @property
    def extent(self) -> int:
        """The points of its axes."""
        return prod(it.extent for it in self.axes)

    def step(self, var: Var) -> int:
        """Elements of memory from one value of a variable to the next."""
        along = zip(self.load.indices, self.load.buffer.strides, strict=True)
        return sum(linear(item).coefficient(var) * stride for item, stride in along)

    def lies_along(self, terms: tuple[IterVar, ...]) -> bool:
        """Whether threads that run along the terms use more of each sector of memory that they read
        than threads that run along its axes.
        """
        run, step = 1, self.step(self.axes[-1].var)
        for it in reversed(terms):
            if self.step(it.var) != run:
                break
            run *= it.extent
        return run > 1 and (step < 1 or min(run, SECTOR) > SECTOR // min(step, SECTOR))

    def lanes(self, along: IterVar) -> int:
        """How many elements along a variable lie side by side wherever a vector of them begins; of
        at most VECTOR_BYTES.
        """
        *front, back = self.load.indices
        form, used = linear(back), [var for index in front for var in free_vars(index)]
        if along.var in used or form.coefficient(along.var) != 1:
            return 1
        others = [factor for atom, factor in form.terms if atom is not along.var]
        most, row = VECTOR_BYTES // self.load.dtype.bytes, self.load.buffer.shape[-1]
        return gcd(most, along.extent, row, form.constant, *others)

    def slides(self, terms: tuple[IterVar, ...]) -> bool:
        """Whether it reads windows: some index is a sum of an axis and a term."""
        own, summed = ({it.var for it in listed} for listed in (self.axes, terms))
        used = [free_vars(item) for item in self.load.indices]
        return any(one & own and one & summed for one in used)


@dataclass(frozen=True, slots=True)
class Product:
    """A sum of products of two operands. The last axis of the result that only one of them knows
    belongs to the columns.

    batch: the axes that both know, each value of which has a product of its own; terms: what is
    summed over, in the order of the definition.
    """

    block: Block
    batch: tuple[IterVar, ...]
    rows: ProductOperand
    columns: ProductOperand
    terms: tuple[IterVar, ...]

    @property
    def operands(self) -> tuple[ProductOperand, ProductOperand]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def products(self) -> int:
        """How many products of two matrices there are."""
        return prod(it.extent for it in self.batch)

    @property
    def depth(self) -> int:
        """How many terms are summed."""
        return prod(it.extent for it in self.terms)

    @property
    def reduction_order(self) -> tuple[IterVar, ...]:
        """The terms in the order in which they lie in memory where windows slide; else as they
        are.
        """
        for operand in self.operands:
            if operand.slides(self.terms):
                return tuple(sorted(self.terms, key=lambda it: -operand.step(it.var)))
        return self.terms

    @property
    def is_matrices(self) -> bool:
        """Whether the block runs over the batch, one row, one column and one term."""
        single = [len(operand.axes) == 1 for operand in self.operands]
        order = (*self.batch, *self.rows.axes, *self.columns.axes, *self.terms)
        return all(single) and len(self.terms) == 1 and order == self.block.iters

    @property
    def groups(self) -> tuple[tuple[IterVar, ...], ...]:
        """The axes to be counted as one: each of the batch, those of the rows, of the columns, and
        the terms.
        """
        return (
            *((it,) for it in self.batch),
            self.rows.axes,
            self.columns.axes,
            self.reduction_order,
        )


def product(block: Block) -> Product | None:
    """The block as a product; None where it is something else: where a place of an operand is data,
    no operand knows an axis of several values, or one of them knows none alone, or no term.
    """
    operands = converted_product(block)
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    if operands is None or not is_plain_store(block, spatial):
        return None
    places = [index for load in operands for index in load.indices]
    if operands[0].buffer is operands[1].buffer or any(map(loads, places)):
        return None
    first, second = (frozenset[Var]().union(*map(free_vars, x.indices)) for x in operands)
    batch = tuple(it for it in spatial if it.var in first & second)
    one = ProductOperand(operands[0], tuple(it for it in spatial if it.var in first - second))
    other = ProductOperand(operands[1], tuple(it for it in spatial if it.var in second - first))
    single = [it for it in spatial if it.var not in first | second]
    if not one.axes or not other.axes or any(it.extent != 1 for it in single):
        return None
    rows, columns = sorted((one, other), key=lambda operand: spatial.index(operand.axes[-1]))
    if single:
        rows = ProductOperand(rows.load, tuple(it for it in spatial if it in (*single, *rows.axes)))
    terms = tuple(it for it in block.iters if it.kind is IterKind.REDUCE)
    if any(known.isdisjoint(it.var for it in terms) for known in (first, second)):
        return None
    return Product(block, batch, rows, columns, terms)


def narrow_operands(sch: Schedule) -> None:
    """Let operands of reductions that are nothing but moved elements of a narrower type be stored
    in it.
    """
    read = {x.buffer for b in sch.func.blocks if is_reduction(b) for x in loads(b.body)}
    for name in [buffer.name for buffer in sch.func.allocations if buffer in read]:
        sch.attempt(partial(_narrowed, name=name))


def _narrowed(sch: Schedule, name: str) -> None:
    sch.narrow(name)


def prepare(sch: Schedule) -> tuple[str, str]:
    """Let one block read the result of the only reduction element by element, keep operands in
    their narrow types, and make two axes of one that counts groups. Returns the names of the
    reduction and of that block.
    """
    narrow_operands(sch)
    name, user = with_reader(sch)
    grouped = grouped_axis(sch.func.block(name))
    if grouped is not None:
        for counted in (name, user):
            sch.split_axis(counted, *grouped)
    return name, user


def inline_moves(sch: Schedule, name: str) -> None:
    """Inline the data movement that produces what a copy reads."""
    while True:
        (load,) = loads(sch.func.block(name).body)
        made = moved_for(sch.func, load.buffer)
        if made is None:
            return
        sch.compute_inline(made.name)


def as_matrices(sch: Schedule, found: Product, user: str) -> None:
    """Let the axes of each operand of a product be one, and the terms: in its block, in the one
    that reads its result, and in those that make an operand that it reads at plain axes.
    """
    if found.is_matrices:
        return
    for operand in found.operands:
        _join_operand(sch, found, operand.load)
    place = {it: number for number, it in enumerate(found.block.iters)}
    groups = [[place[it] for it in group] for group in found.groups]
    sch.join_axes(found.block.name, groups)
    sch.join_axes(user, groups[:-1])


def _join_operand(sch: Schedule, found: Product, load: Load) -> None:
    """Join the axes of the block that makes an operand like those of a product that reads it."""
    made = [block for block in writers(sch.func, load.buffer) if is_pointwise(block)]
    place: dict[Expr, int] = {index: number for number, index in enumerate(load.indices)}
    groups = [[place[it.var] for it in group if it.var in place] for group in found.groups]
    if not made or load.buffer not in sch.func.allocations or moves(made[0]):
        return
    if len(place) == len(made[0].iters) == sum(map(len, groups)):
        sch.join_axes(made[0].name, sorted(group for group in groups if group))


def grouped_axis(block: Block) -> tuple[int, int] | None:
    """The number of an axis of a product of which one operand knows nothing but the quotient by the
    size of groups, and the size: a grouped convolution's channels of the result.
    """
    for load in converted_product(block) or ():
        for number, it in enumerate(block.iters):
            size = _group(load.indices, it.var)
            if it.kind is IterKind.SPATIAL and size is not None and it.extent % size == 0:
                return number, size
    return None


def _group(indices: tuple[Expr, ...], var: Var) -> int | None:
    """The number by which a variable is divided wherever it stands; None where it is not."""
    nodes = [node for item in indices for node in walk(item)]
    found = [n for n in nodes if isinstance(n, FloorDiv) and n.a is var and isinstance(n.b, Const)]
    if not found or len(found) != sum(node is var for node in nodes):
        return None
    sizes = {int(node.b.value) for node in found if isinstance(node.b, Const)}
    return sizes.pop() if len(sizes) == 1 else None
