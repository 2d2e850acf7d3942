"""What a rule recognises: structure of blocks, never names or literal extents."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from ....tir.analysis.linear import linear
from ....tir.buffer import Load
from ....tir.conditions import conjuncts, dims_below
from ....tir.dtype import FLOAT32, INT32, DType
from ....tir.expr import TRUE, Add, Cast, Const, Expr, FloorDiv, FloorMod, Mul, Var, const
from ....tir.func import PrimFunc
from ....tir.instructions.word_bits import WORD_BITS, word_bits
from ....tir.stmt import Block, Extern, IterKind, IterVar, Store
from ....tir.visit import free_vars, stores, walk
from ...legality.inline_growth import outgrown
from ...nest import is_reduction, readers, reads, target_of, targets_of
from ...schedule import Schedule

_BYTE = 255  # the largest number of 8 bits


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum of products out[..., v] = sum data[...] * weight[...] that keeps its columns in
    vectors.

    vector: the last output axis, an axis of the weights alone; batch: the first output axes, along
    which there are other weights; rows: the output axes between, of the data alone.
    group: outputs per group where the data's channel depends on v // group; the whole axis
    otherwise. Data and weights may be of types that are widened to `total`, that of the sum.
    in_word: bytes that an element of the weights has, those of the points of the last reduced
    axis; 0 where it is one number.
    """

    block: Block
    data: Load
    weight: Load
    vector: IterVar
    batch: tuple[IterVar, ...]
    rows: tuple[IterVar, ...]
    reduced: tuple[IterVar, ...]
    group: int
    in_word: int = 0

    @property
    def steps(self) -> int:
        """The products of one sum."""
        return math.prod(axis.extent for axis in self.reduced)

    @property
    def last_rows(self) -> tuple[int, int]:
        """The extents of the last two row axes, along which a tile lies; 1 for one that is not."""
        extents = [1, 1, *(axis.extent for axis in self.rows)]
        return extents[-2], extents[-1]

    @property
    def usual_rows(self) -> tuple[int, int]:
        """The same of the sizes that a call has as a rule, where it decides them."""
        dims = ((axis.dim, axis.extent) for axis in self.rows)
        extents = [1, 1, *(extent if dim is None else dim.usual for dim, extent in dims)]
        return extents[-2], extents[-1]

    @property
    def total(self) -> DType:
        """The type of the sum."""
        return target_of(self.block).type

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights of all columns."""
        elements = self.steps // max(1, self.in_word) * self.vector.extent
        return elements * self.weight.buffer.type.bytes

    @property
    def is_widened(self) -> bool:
        """Whether an operand is of another type than the sum."""
        return any(load.dtype != self.total for load in (self.data, self.weight))


def is_pointwise(block: Block) -> bool:
    """Whether the block stores one expression per element of one tensor."""
    return is_elementwise(block) and len(targets_of(block)) == 1


def is_elementwise(block: Block) -> bool:
    """Whether the block stores, to each of its tensors, one expression per element at distinct
    iteration variables.
    """
    if is_reduction(block) or isinstance(block.body, Extern):
        return False
    for store in stores(block.body):
        plain = all(isinstance(i, Var) for i in store.indices)
        distinct = len(set(store.indices)) == len(store.indices)
        if not plain or not distinct or reads(block, store.buffer):
            return False
    return True


def inline_chains(sch: Schedule, *, repeated: bool = True, kept: Collection[str] = ()) -> None:
    """Inline every pointwise intermediate whose readers are pointwise too, and do not become higher
    or larger than the compiler takes; but for the blocks that are `kept`.

    repeated: also where a reader has more elements, which compute one of the intermediate again
    and again, if that does not divide integers by what a call decides.
    """
    for name in sch.blocks():
        block = sch.func.block(name)
        target = target_of(block)
        if name in kept or not is_pointwise(block) or target not in sch.func.allocations:
            continue
        users = readers(sch.func, target)
        once = all(target_of(user).size <= target.size for user in users)
        if not users or not all(is_pointwise(user) for user in users):
            continue
        again = repeated and not any(map(_divides, stores(block.body)))
        if (again or once) and outgrown(sch.func, block) is None:
            sch.compute_inline(name)


def _divides(store: Store) -> bool:
    """Whether integers are divided by no constant: some twenty cycles for each, and no vectors."""
    divisions = (node for node in walk(store.value) if isinstance(node, FloorDiv | FloorMod))
    return any(not isinstance(division.b, Const) for division in divisions)


def reductions(func: PrimFunc) -> tuple[Block, ...]:
    """The blocks that reduce."""
    return tuple(block for block in func.blocks if is_reduction(block))


def product_of(block: Block) -> tuple[Load, Load] | None:
    """The two operands of a block that accumulates a sum of products of two loads."""
    factors = factors_of(block)
    if factors is None:
        return None
    a, b = factors
    return (a, b) if isinstance(a, Load) and isinstance(b, Load) else None


def factors_of(block: Block) -> tuple[Expr, Expr] | None:
    """The two factors of a block that accumulates a sum of products, over all its points."""
    found = stores(block.body)
    value = found[0].value
    if len(found) > 1 or not _counts_up_to_dims(block):
        return None
    if not isinstance(value, Add) or not isinstance(value.b, Mul):
        return None
    return value.b.a, value.b.b


def _counts_up_to_dims(block: Block) -> bool:
    """Whether all points of a reduction count, up to where a call ends its axes."""
    below = dims_below(block.counts)
    return len(below) == len(conjuncts(block.counts))


def widened_product(block: Block) -> tuple[Load, Load] | None:
    """The two operands of a block that accumulates products of loads, each widened to the type of
    the sum.
    """
    factors = (factors_of(block) if block.counts == TRUE else None) or ()
    inner = [factor.value for factor in factors if isinstance(factor, Cast)]
    found = [value for value in inner if isinstance(value, Load)]
    return (found[0], found[1]) if len(found) == 2 else None


def _product_by_words(block: Block) -> tuple[Load, Load] | None:
    """Data that is widened, and words of which each point of the last reduced axis has a byte."""
    factors = (factors_of(block) if block.counts == TRUE else None) or ()
    points = next((it for it in reversed(block.iters) if it.kind is IterKind.REDUCE), None)
    if points is None or points.extent < 2 or WORD_BITS % points.extent:
        return None
    for data, number in (factors, factors[::-1]) if factors else ():
        bits = word_bits(number, points.var, WORD_BITS // points.extent)
        whole = bits is not None and bits.shift == const(0, INT32) and bits.mask <= _BYTE
        if bits and whole and isinstance(data, Cast) and isinstance(data.value, Load):
            return data.value, bits.word
    return None


def converted_product(block: Block) -> tuple[Load, Load] | None:
    """The two operands of a block that accumulates products of loads, converted or not."""
    factors = factors_of(block)
    if factors is None:
        return None
    a, b = (factor.value if isinstance(factor, Cast) else factor for factor in factors)
    return (a, b) if isinstance(a, Load) and isinstance(b, Load) else None


def _product_of_floats(block: Block) -> tuple[Load, Load] | None:
    """The operands of a sum of products, each of the type of the sum or of floats of 16 bits."""
    total = target_of(block).type
    found = [
        factor.value
        if isinstance(factor, Cast) and total == FLOAT32 and factor.value.dtype.is_half
        else factor
        for factor in factors_of(block) or ()
    ]
    loads = [value for value in found if isinstance(value, Load)]
    return (loads[0], loads[1]) if len(loads) == 2 else None


def contraction(block: Block, *, widened: bool = False) -> Contraction | None:
    """The block as a Contraction; None when it is something else.

    widened: of operands that are converted to the type of the sum, or are numbers in words, and of
    no others; else of such as are of its type, or floats of 16 bits, which a sum of float32
    converts where it reads them.
    """
    product = widened_product if widened else _product_of_floats
    operands = product(block) if is_reduction(block) else None
    in_word = 0
    if operands is None and widened and is_reduction(block):
        operands = _product_by_words(block)
        in_word = 0 if operands is None else block.iters[-1].extent
    spatial = [it for it in block.iters if it.kind is IterKind.SPATIAL]
    if operands is None or not spatial or not is_plain_store(block, spatial):
        return None
    vector = spatial[-1]
    for data, weight in (operands, operands[::-1]):
        group = _group(data, vector)
        used = {_axis(i) for i in weight.indices}
        count = max((n for n, it in enumerate(spatial[:-1], 1) if it.var in used), default=0)
        batch, rows = tuple(spatial[:count]), tuple(spatial[count:-1])
        apart = all(it.var in used or it.extent == 1 for it in batch)
        firsts = {it.var for it in batch}
        plain = all(
            isinstance(i, Var) or not free_vars(i) or _axis(i) in firsts for i in weight.indices
        )
        if plain and group is not None and vector.var in used and apart:
            reduced = tuple(it for it in block.iters if it.kind is IterKind.REDUCE)
            return Contraction(block, data, weight, vector, batch, rows, reduced, group, in_word)
    return None


def _axis(item: Expr) -> Var | None:
    """The variable that an index is, but for a constant; None where it is something else."""
    form = linear(item)
    ((atom, factor),) = form.terms if len(form.terms) == 1 else ((None, 0),)
    return atom if isinstance(atom, Var) and factor == 1 else None


def is_plain_store(block: Block, spatial: list[IterVar]) -> bool:
    """Whether the block stores at its spatial variables, in order."""
    return stores(block.body)[0].indices == tuple(it.var for it in spatial)


def _group(data: Load, vector: IterVar) -> int | None:
    """Columns per group when the data depends on the column only through column // group; None when
    it depends otherwise.
    """
    nodes = [node for item in data.indices for node in walk(item)]
    quotients = [
        n for n in nodes if isinstance(n, FloorDiv) and n.a is vector.var and isinstance(n.b, Const)
    ]
    if len(quotients) != sum(node is vector.var for node in nodes):
        return None
    sizes = {int(n.b.value) for n in quotients if isinstance(n.b, Const)} or {vector.extent}
    return sizes.pop() if len(sizes) == 1 else None


def pointwise_output(func: PrimFunc, block: Block) -> Block | None:
    """The one pointwise block that reads what `block` computes; None when there is none."""
    found = (user for target in targets_of(block) for user in readers(func, target))
    users = tuple(dict.fromkeys(found))
    return users[0] if len(users) == 1 and is_pointwise(users[0]) else None
