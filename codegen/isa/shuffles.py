"""Lanes of two vectors in another order, and a square of vectors transposed by such steps.

A register is made of blocks of 128 bits; instructions interleave the lanes of two registers within
their blocks, or take each second block of both. In the number of an element, the bits of its row
before those of its column, an interleaving moves one bit of the row to the right end of those
of the lane within its block, and the left one of these to the row; blocks taken alternately move a
bit of the row to the left end of those of the block, and the right one of these to the row. So many
steps as the number of rows has bits exchange rows and columns, and each step makes its two vectors
in the place of those that it reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...tir.dtype import DType
from .selection import shuffle_operation

BLOCK_BYTES = 16
WORD = 32  # bits
Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShuffleStep:
    """Rows `first` and `second` become `low` and `high`, lanes of both."""

    first: int
    second: int
    low: Order
    high: Order


def transposition(kind: DType) -> Iterator[ShuffleStep]:
    """The steps that transpose as many vectors of a type as it has lanes."""
    rows, block = kind.lanes, _block(kind)
    bit = block // 2
    while bit:
        yield from _pairs(rows, bit, interleaved(kind, 0), interleaved(kind, 1))
        bit //= 2
    bit = block
    while bit < rows:
        yield from _pairs(rows, bit, alternate(kind, 0), alternate(kind, 1))
        bit *= 2


def interleaved(kind: DType, half: int) -> Order:
    """The lanes of two vectors in turn, of the lower or the upper half of each of their blocks."""
    block = _block(kind)
    firsts = range(half * block // 2, (half + 1) * block // 2)
    starts = range(0, kind.lanes, block)
    return tuple(start + n + other for start in starts for n in firsts for other in (0, kind.lanes))


def alternate(kind: DType, odd: int) -> Order:
    """Each second block of two vectors, from the first or from the second one on."""
    block = _block(kind)
    starts = range(odd * block, 2 * kind.lanes, 2 * block)
    return tuple(start + n for start in starts for n in range(block))


def operations(types: Mapping[DType, str]) -> Mapping[tuple[str, DType], str]:
    """The C expressions of the steps on vectors of the types that have them, by their C types."""
    table: dict[tuple[str, DType], str] = {}
    for kind, name in types.items():
        pairs = _x86(kind, name) if name.startswith("__m") else _neon(kind, name)
        table |= {(shuffle_operation(order), kind): text for order, text in pairs.items()}
    return table


def lanes_of_second(kind: DType, order: Order) -> str:
    """The lanes that are of the second vector, a bit for each, as an immediate operand; of integers
    a bit for each 32 bits.
    """
    words = kind.bits // WORD if kind.is_integer else 1
    ones = (1 << words) - 1
    return hex(sum(ones << n * words for n, lane in enumerate(order) if lane >= kind.lanes))


def number_of_four(order: Order) -> str:
    """The number of each of four lanes within its vector, as an immediate operand."""
    return hex(sum(lane % 4 << 2 * n for n, lane in enumerate(order)))


def any_order(types: Mapping[DType, str]) -> Mapping[tuple[str, DType], str]:
    """The C expressions of shuffles in any order, on vectors of x86 whose lanes have 32 or 64 bits.

    shuffle: of two vectors, by a constant vector, or of four lanes by a number (2), and by the
    lanes of the second one (3); shuffle_one: of the first one alone; shuffle_order: that vector.
    """
    table: dict[tuple[str, DType], str] = {}
    wide = any(name.startswith("__m512") for name in types.values())
    for kind, name in types.items():
        if kind.bits in (WORD, 2 * WORD) and name.startswith("__m"):
            texts = _permutations(kind, name, wide=wide)
            table |= {(operation, kind): text for operation, text in texts.items()}
    return table


def _block(kind: DType) -> int:
    return min(kind.lanes, _whole(kind))


def _whole(kind: DType) -> int:
    """The lanes of a block of 128 bits."""
    return BLOCK_BYTES // kind.bytes


def _pairs(rows: int, bit: int, low: Order, high: Order) -> Iterator[ShuffleStep]:
    return (ShuffleStep(row, row | bit, low, high) for row in range(rows) if not row & bit)


def _x86(kind: DType, name: str) -> dict[Order, str]:
    bits = int(name[3:6])
    prefix = "_mm" if bits == 128 else f"_mm{bits}"
    suffix = {"": "ps", "d": "pd"}.get(name[6:], f"epi{8 * kind.bytes}")
    low, high = (f"{prefix}_unpack{end}_{suffix}({{0}}, {{1}})" for end in ("lo", "hi"))
    if kind.lanes < _whole(kind):  # in the lower half of a register
        high = f"_mm_srli_si128({low}, {kind.lanes * kind.bytes})"
    found = {interleaved(kind, 0): low, interleaved(kind, 1): high}
    if bits == 256:
        taken = "permute2x128_si256" if name[6:] == "i" else f"permute2f128_{suffix}"
        controls = ("0x20", "0x31")
    else:
        letter = "i" if name[6:] == "i" else "f"
        taken = f"shuffle_{letter}{kind.bits}x{_block(kind)}"
        controls = ("0x88", "0xdd")
    if bits > 128:
        for odd, control in enumerate(controls):
            found[alternate(kind, odd)] = f"{prefix}_{taken}({{0}}, {{1}}, {control})"
    return found


def _permutations(kind: DType, name: str, *, wide: bool) -> dict[str, str]:
    bits = int(name[3:6])
    prefix = "_mm" if bits == 128 else f"_mm{bits}"
    suffix = {"": "ps", "d": "pd"}.get(name[6:], f"epi{kind.bits}")
    x = "x" if kind.bits == 2 * WORD and bits < 512 else ""
    order = {"shuffle_order": f"{prefix}_setr_epi{kind.bits}{x}({{0}})"}
    if wide:
        moved = f"{prefix}_permutex2var_{suffix}({{0}}, {{2}}, {{1}})"
        return order | {"shuffle": moved, "shuffle_one": moved.replace("{1}", "{0}")}
    if kind.lanes == 8:  # the lowest three bits of a lane's number count
        one, other = (f"_mm256_permutevar8x32_{suffix}({{{n}}}, {{2}})" for n in (0, 1))
    else:
        order, taken = {}, _OF_FOUR[suffix]
        one, other = (f"{taken}({{{n}}}, {{2}})" for n in (0, 1))
    blended = "epi32" if kind.is_integer else suffix
    both = f"{prefix}_blend_{blended}({one}, {other}, {{3}})"
    return order | {"shuffle": both, "shuffle_one": one}


_OF_FOUR = {
    "ps": "_mm_permute_ps",
    "epi32": "_mm_shuffle_epi32",
    "pd": "_mm256_permute4x64_pd",
    "epi64": "_mm256_permute4x64_epi64",
}


def _neon(kind: DType, name: str) -> dict[Order, str]:
    if name == "uint8x8_t":  # four lanes of it
        low = "vzip1_u8({0}, {1})"
        high = f"(uint8x8_t)vshr_n_u64((uint64x1_t){low}, 32)"
        return {interleaved(kind, 0): low, interleaved(kind, 1): high}
    suffix = f"{'f' if kind.is_float else 's'}{kind.bits}"
    return {interleaved(kind, n): f"vzip{n + 1}q_{suffix}({{0}}, {{1}})" for n in (0, 1)}
