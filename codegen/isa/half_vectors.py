"""Vectors of 16 bits of AVX-512, with as many lanes as vectors of 32 bits have: what is loaded,
widened, narrowed, moved and stored beside them. float16 has instructions that convert it; bfloat16
is arithmetic on 32 bits, as it is of scalars, because the instruction for it (AVX512-BF16) makes
0 of numbers without a full mantissa.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dtype import BFLOAT16, FLOAT16, FLOAT32, INT32, DType, dtype

INTEGERS = (dtype("int16"), dtype("uint16"))
HALVES = (*INTEGERS, FLOAT16, BFLOAT16)
TYPES = {16: "__m256i", 8: "__m128i"}

# {p} is _mm256 or _mm, {v} its si256 or si128, {t} the type; {u} is i or u; {m} the type of a mask
_MOVES = {
    "zero": "{p}_setzero_{v}()",
    "broadcast": "{p}_set1_epi16((short)({0}))",
    "blend": "{p}_mask_blend_epi16({0}, {2}, {1})",  # mask, on, off
    "load": "{p}_loadu_{v}((const {t} *)({0}))",
    "load_masked": "{p}_maskz_loadu_epi16({1}, {0})",  # pointer, mask; 0 where off
    "load_merged": "{p}_mask_loadu_epi16({2}, {1}, {0})",  # pointer, mask, other
    "store": "{p}_storeu_{v}(({t} *)({0}), {1})",  # pointer, value
    "store_masked": "{p}_mask_storeu_epi16({0}, {1}, {2})",
}
_ARITHMETIC = {
    "add": "{p}_add_epi16({0}, {1})",
    "sub": "{p}_sub_epi16({0}, {1})",
    "min": "{p}_min_ep{u}16({0}, {1})",
    "max": "{p}_max_ep{u}16({0}, {1})",
    "and": "{p}_and_{v}({0}, {1})",
    "or": "{p}_or_{v}({0}, {1})",
    "xor": "{p}_xor_{v}({0}, {1})",
    "eq": "({m}){p}_cmpeq_ep{u}16_mask({0}, {1})",
    "ne": "({m}){p}_cmpneq_ep{u}16_mask({0}, {1})",
    "lt": "({m}){p}_cmplt_ep{u}16_mask({0}, {1})",
    "le": "({m}){p}_cmple_ep{u}16_mask({0}, {1})",
}


def types() -> dict[DType, str]:
    """The C type of each vector."""
    return {kind.with_lanes(lanes): text for kind in HALVES for lanes, text in TYPES.items()}


def operations() -> Mapping[tuple[str, DType], str]:
    """The C expression of each operation; that of a conversion stands with the type converted."""
    table: dict[tuple[str, DType], str] = {}
    for kind in types():
        texts = _MOVES | (_ARITHMETIC if kind.is_integer else {})
        table |= {(name, kind): _written(text, kind) for name, text in texts.items()}
        table |= {(f"reinterpret_{other}", kind): "{0}" for other in HALVES if other != kind.scalar}
        table |= _conversions(kind)
    return table


def _written(text: str, kind: DType) -> str:
    words = {
        "{p}": "_mm256" if kind.lanes == 16 else "_mm",
        "{v}": "si256" if kind.lanes == 16 else "si128",
        "{t}": TYPES[kind.lanes],
        "{u}": "i" if kind.scalar == INTEGERS[0] else "u",
        "{m}": f"__mmask{kind.lanes}",
    }
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _conversions(kind: DType) -> dict[tuple[str, DType], str]:
    """Between a vector of 16 bits and those of 32 bits with as many lanes."""
    lanes, wide = kind.lanes, f"_mm{kind.lanes * 32}"
    numbers, floats = INT32.with_lanes(lanes), FLOAT32.with_lanes(lanes)
    if kind.scalar == FLOAT16:
        return {
            (f"cast_{FLOAT32}", kind): f"{wide}_cvtph_ps({{0}})",
            (f"cast_{FLOAT16}", floats): f"{wide}_cvtps_ph({{0}}, 0)",
        }
    if not kind.is_integer:
        return {}
    whole = f"{wide}_cvtep{'i' if kind.scalar == INTEGERS[0] else 'u'}16_epi32({{0}})"
    other = next(half for half in INTEGERS if half != kind.scalar)
    return {
        (f"cast_{INT32}", kind): whole,
        (f"cast_{FLOAT32}", kind): f"{wide}_cvtepi32_ps({whole})",
        (f"cast_{other}", kind): "{0}",
        (f"cast_{kind.scalar}", numbers): f"{wide}_cvtepi32_epi16({{0}})",
        (f"cast_{kind.scalar}", floats): f"{wide}_cvtepi32_epi16({wide}_cvttps_epi32({{0}}))",
    }
