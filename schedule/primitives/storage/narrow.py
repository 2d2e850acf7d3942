"""Primitive narrow: store a tensor in the type that its elements come from."""

from __future__ import annotations

from dataclasses import replace

from ....tir.buffer import Buffer, Load
from ....tir.dtype import DType
from ....tir.expr import Cast, Const, Expr, Select, const
from ....tir.func import PrimFunc
from ....tir.node import Node
from ....tir.stmt import Alloc, Block, Stmt, Store
from ....tir.visit import replace_stmt, stores, transform
from ...drawing import draw_intermediate
from ...errors import Kind, refuse
from ...legality.blocks import check_pointwise
from ...legality.tensors import check_intermediate, check_not_staged
from ...nest import Rewrite, map_blocks, reads, without_prefetches, writers
from ..parameters import TENSOR
from ..primitive import Primitive, nothing


def narrow(func: PrimFunc, buffer: Buffer) -> Rewrite:
    """Store what only moves widened elements as they were, and widen it where it is read.

    P[i] = select(i < n, cast(X[i], "float32"), 0.0);  C[i] = P[i] * 2.0
    ->  P[i] = select(i < n, X[i], float16(0.0));      C[i] = cast(P[i], "float32") * 2.0

    No value changes: a wider type holds each number of the narrow one. Requires: an intermediate
    tensor that one block writes, whose elements are all cast from one narrower type, or are
    constants of it. Raises: ScheduleError.
    """
    check_intermediate(func, buffer, "narrow")
    check_not_staged(func, buffer, "narrow")
    found = writers(func, buffer)
    kind = _source(stores(found[0].body)[0].value) if len(found) == 1 else None
    if kind is None or not _holds(buffer.type, kind):
        raise refuse(
            func,
            f"narrow: '{buffer.name}' is more than elements of a narrower type that are moved; "
            f"expected a cast to {buffer.type} alone, or one that a condition chooses.",
            code="narrow-value",
            kind=Kind.ARGUMENT,
            hints=("compute_inline brings casts and conditions into one block.",),
        )
    (writer,) = found
    check_pointwise(func, writer, "narrow")
    (store,) = stores(writer.body)
    moved = replace(buffer, type=kind, aligned=())
    own = replace(writer, body=Store(moved, store.indices, _narrowed(store.value, kind)))
    body = replace_stmt(func.body, writer, own)

    def widen(node: Node) -> Node:
        if isinstance(node, Load) and node.buffer is buffer:
            return Cast(Load(moved, node.indices), buffer.type)
        return node

    def read(block: Block) -> Stmt:
        return transform(block, widen) if reads(block, buffer) else block

    def allocate(node: Node) -> Node:
        held = isinstance(node, Alloc) and node.buffer is buffer
        return replace(node, buffer=moved) if isinstance(node, Alloc) and held else node

    changed = map_blocks(without_prefetches(body, buffer), read)
    return Rewrite(func.with_body(transform(changed, allocate)))


def _source(value: Expr) -> DType | None:
    """The one type that a value is cast from, on each side of its conditions."""
    match value:
        case Cast(inner, _):
            return inner.dtype
        case Select():
            sides = (value.on_true, value.on_false)
            kinds = {_source(side) for side in sides if not isinstance(side, Const)}
            kind = kinds.pop() if len(kinds) == 1 else None
            fits = (kind is not None and _is_of(x, kind) for x in sides if isinstance(x, Const))
            return kind if all(fits) else None
    return None


def _is_of(constant: Const, kind: DType) -> bool:
    """Whether a number is one of a type."""
    return float(kind.numpy.type(constant.value)) == float(constant.value)


def _holds(wide: DType, kind: DType) -> bool:
    """Whether the wide type has each number of the narrower one."""
    if kind.bits >= wide.bits or kind.is_bool or wide.is_storage:
        return False
    if kind.is_float:
        return wide.is_float
    return kind.is_integer and kind.bits <= 16 and (wide.is_float or str(wide).startswith("int"))


def _narrowed(value: Expr, kind: DType) -> Expr:
    match value:
        case Cast(inner, _):
            return inner
        case Select():
            sides = (_narrowed(side, kind) for side in (value.on_true, value.on_false))
            return Select(value.condition, *sides)
        case Const():
            return const(value.value, kind)
    raise TypeError(f"narrow: {type(value).__name__} is no moved element")


NARROW = Primitive("narrow", narrow, {"buffer": TENSOR}, gives=nothing, draw=draw_intermediate)
