"""Which local variables hold sums of signed integers: C declares them unsigned.

Signed integers wrap around as unsigned ones do, so C adds them as such. Were each sum converted
back at once, gcc 12.0 to 12.2 would lose parts of some: where sums of neighbours leave a loop, and
one of them is read as unsigned behind it, its vectoriser takes the sum and its conversion for two
results (gcc PR 107212).
"""

from __future__ import annotations

from ...tir.buffer import Buffer, Load
from ...tir.dtype import TypeKind
from ...tir.expr import Add, Mul, Sub
from ...tir.func import PrimFunc
from ...tir.stmt import Prefetch, Store
from ...tir.visit import accesses, found_in, loads, stores
from .workspace import is_local


def unsigned_sums(func: PrimFunc) -> frozenset[Buffer]:
    """The local variables of signed integers that are set to what an addition, a subtraction or a
    multiplication makes of themselves. Those that are read or written as vectors, in memory, are
    not among them: how that is done depends on their type.
    """
    sums = {store.buffer for store in stores(func.body) if _is_sum(store)}
    return frozenset(sums - {one.buffer for one in accesses(func.body) if _is_vector(one)})


def _is_sum(store: Store) -> bool:
    buffer = store.buffer
    return (
        is_local(buffer)
        and buffer.type.kind is TypeKind.INT
        and buffer.type.lanes == 1
        and any(
            load.buffer is buffer
            for operation in found_in(store.value, Add | Sub | Mul)
            for load in loads(operation)
        )
    )


def _is_vector(access: Load | Store | Prefetch) -> bool:
    return any(index.dtype.lanes > 1 for index in access.indices)
