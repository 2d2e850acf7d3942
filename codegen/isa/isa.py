"""Instruction sets as tables: (operation, type of the result or data) -> one C expression.

`{0}`, `{1}`, `{2}` stand for the operands, in the order that each group of the tables states. A
vector operation is looked up with a type of several lanes, a scalar one with one lane. What has no
entry cannot be done: the passes ask `has` and choose another form. A mask is `__mmask16` or
`__mmask8` on AVX-512, elsewhere a vector of integers as wide as the data, all bits on in the lanes
that are on; `mask_type` says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from ...tir.dtype import FLOAT32, FLOAT64, DType
from ...tir.target.gpu import GPUS
from ...tir.target.target import Target, named
from . import (
    byte_vectors,
    cuda,
    half_vectors,
    narrow_vectors,
    neon,
    neon_bytes,
    shuffles,
    x86,
)

Table = Mapping[tuple[str, DType], str]


@dataclass(frozen=True, slots=True)
class Isa:
    """The vectors of one instruction set.

    types: the C type of each vector type. operations: the C expression of each operation on each
    type.
    vector_bytes: the widest register; 0 without vectors. predicates: masks are registers of their
    own, one bit per lane. masks: their C types by number of lanes, where they are of one width.
    held: the C type of a variable that is written again and again, where it is another one: gcc
    moves an __m512i between two registers for each operation on its 16 numbers.
    fence: the C statement behind which stores that went past the caches are in order with others.
    """

    name: str
    types: Mapping[DType, str]
    operations: Table
    vector_bytes: int = 0
    predicates: bool = False
    masks: Mapping[int, str] | None = None
    held: Mapping[DType, str] = field(default_factory=dict)
    fence: str = ""

    def has(self, operation: str, dtype: DType) -> bool:
        """Whether there is an expression for the operation on this type."""
        return (operation, dtype) in self.operations

    def apply(self, operation: str, dtype: DType, *operands: str) -> str:
        """The C expression of an operation. KeyError where the instruction set lacks it."""
        return self.operations[operation, dtype].format(*operands)

    def mask_bits(self, lanes: int, data: DType | None = None) -> int:
        """Bits of one lane of a mask for vectors of `data`; of a mask kept in a variable by
        default.
        """
        if self.predicates:
            return 1
        return data.bits if data is not None else self.vector_bytes * 8 // lanes

    @property
    def elements(self) -> frozenset[DType]:
        """The types that vectors are loaded and stored of; truth values as masks."""
        loaded = (dtype for name, dtype in self.operations if name == "load")
        return frozenset(dtype.scalar for dtype in (*self.types, *loaded))

    @property
    def fewest_lanes(self) -> int:
        """Lanes of the shortest vector."""
        return min(dtype.lanes for dtype in self.types)

    def mask_type(self, lanes: int, data: DType | None = None) -> str:
        """The C type of such a mask."""
        if self.masks is not None:
            return self.masks[lanes]
        if self.predicates:
            return "__mmask16" if lanes == 16 else "__mmask8"
        return f"__m{lanes * self.mask_bits(lanes, data)}i"


def isa(target: Target) -> Isa:
    """The tables of the target's instruction set. Raises: TargetError where it names none."""
    return _isa(named(target).isa, target.features)


@cache
def _isa(name: str, features: tuple[str, ...]) -> Isa:
    if name == "scalar":
        return Isa(name, {}, _scalar())
    if name in GPUS:
        return Isa(name, {}, cuda.scalar_operations())
    if name == "neon":
        vectors = neon.vector_operations(features)
        operations = {**_scalar(), **neon.scalar_operations(), **vectors, **neon_bytes.operations()}
        types = neon.TYPES | neon_bytes.types()
        operations |= shuffles.operations(types)
        return Isa(name, types, operations, neon.BYTES, masks=neon.MASKS)
    avx512 = name == "avx512"
    types = x86.types(avx512=avx512)
    operations = _scalar() | x86.operations(features, avx512=avx512)
    if avx512:
        types |= byte_vectors.types() | half_vectors.types()
        operations |= {**byte_vectors.operations(), **half_vectors.operations()}
    else:
        types |= narrow_vectors.types()
        operations |= narrow_vectors.operations()
    operations |= {**shuffles.operations(types), **shuffles.any_order(types)}
    return Isa(
        name,
        types,
        operations,
        x86.register_bytes(avx512=avx512),
        predicates=avx512,
        held=x86.held_types(types),
        fence="_mm_sfence();",
    )


# Scalars, in standard C and what gcc and clang turn into instructions: no function of libm is
# called.
_SCALAR_FLOAT = {
    "min": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "max": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "min_any": "({0} < {1} ? {0} : {1})",
    "max_any": "({0} > {1} ? {0} : {1})",
    "abs": "__builtin_fabs{f}({0})",
    "sqrt": "__builtin_sqrt{f}({0})",
    "round": (
        "(__builtin_fabs{f}({0}) < {big}"
        " ? __builtin_copysign{f}(__builtin_fabs{f}({0}) + {big} - {big}, {0}) : {0})"
    ),
}


def _scalar() -> dict[tuple[str, DType], str]:
    table: dict[tuple[str, DType], str] = {}
    for dtype, f, big in ((FLOAT32, "f", "0x1p23f"), (FLOAT64, "", "0x1p52")):
        for name, text in _SCALAR_FLOAT.items():
            table[name, dtype] = text.replace("{f}", f).replace("{big}", big)
    return table
