"""Vectors of bytes of AVX-512, with as many lanes as vectors of 32 bits have: what is loaded,
widened, computed, narrowed and stored beside them. What is only stored, as float8 and int4 are, is
moved, and converted by the arithmetic of its bits. Truth values are masks that bytes of 0 and 1
hold in memory.

Their lanes are the first ones of an `__m128i`. There are none of four lanes, because the bits of a
mask beyond its lanes may be on.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dtype import BOOL, FLOAT32, FLOAT64, INT32, INT64, DType, dtype

BYTES = (dtype("int8"), dtype("uint8"))
STORED = tuple(  # one to a byte
    dtype(name)
    for name in (
        *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn"),
        *("int4", "uint4", "int2", "uint2"),
    )
)
LANES = (16, 8)
TYPE = "__m128i"

# {n} ends the name of a load or a store of 16 or 8 bytes; {u} is i or u; {m} the type of a mask
_ARITHMETIC = {
    "add": "_mm_add_epi8({0}, {1})",
    "sub": "_mm_sub_epi8({0}, {1})",
    "min": "_mm_min_ep{u}8({0}, {1})",
    "max": "_mm_max_ep{u}8({0}, {1})",
    "and": "_mm_and_si128({0}, {1})",
    "or": "_mm_or_si128({0}, {1})",
    "xor": "_mm_xor_si128({0}, {1})",
    "eq": "({m})_mm_cmpeq_ep{u}8_mask({0}, {1})",
    "ne": "({m})_mm_cmpneq_ep{u}8_mask({0}, {1})",
    "lt": "({m})_mm_cmplt_ep{u}8_mask({0}, {1})",
    "le": "({m})_mm_cmple_ep{u}8_mask({0}, {1})",
}
_MOVES = {
    "zero": "_mm_setzero_si128()",
    "broadcast": "_mm_set1_epi8((char)({0}))",
    "blend": "_mm_mask_blend_epi8({0}, {2}, {1})",  # mask, on, off
    "load": "_mm_load{n}((const __m128i *)({0}))",
    "load_masked": "_mm_maskz_loadu_epi8({1}, {0})",  # pointer, mask; 0 where off
    "load_merged": "_mm_mask_loadu_epi8({2}, {1}, {0})",  # pointer, mask, other
    "store": "_mm_store{n}((__m128i *)({0}), {1})",  # pointer, value
    "store_masked": "_mm_mask_storeu_epi8({0}, {1}, {2})",
}
_TRUTHS = {
    "zero": "0",
    "load": "({m})_mm_cmpneq_epi8_mask(_mm_load{n}((const __m128i *)({0})), _mm_setzero_si128())",
    "load_masked": "({m})_mm_cmpneq_epi8_mask(_mm_maskz_loadu_epi8({1}, {0}), _mm_setzero_si128())",
    "store": "_mm_store{n}((__m128i *)({0}), _mm_maskz_set1_epi8({1}, 1))",
    "store_masked": "_mm_mask_storeu_epi8({0}, {1}, _mm_maskz_set1_epi8({2}, 1))",
}


def types() -> dict[DType, str]:
    """The C type of each vector."""
    return {kind.with_lanes(lanes): TYPE for kind in (*BYTES, *STORED) for lanes in LANES}


def operations() -> Mapping[tuple[str, DType], str]:
    """The C expression of each operation; that of a conversion stands with the type converted."""
    table: dict[tuple[str, DType], str] = {}
    for kind in types():
        texts = _MOVES | (_ARITHMETIC if kind.scalar in BYTES else {})
        table |= {(name, kind): _written(text, kind) for name, text in texts.items()}
        others = BYTES if kind.scalar in STORED else (*BYTES, *STORED)
        table |= {(f"reinterpret_{k}", kind): "{0}" for k in others if k != kind.scalar}
        table |= _conversions(kind) if kind.scalar in BYTES else {}
    for lanes in LANES:
        kind = BOOL.with_lanes(lanes)
        table |= {(name, kind): _written(text, kind) for name, text in _TRUTHS.items()}
    return table


def _written(text: str, kind: DType) -> str:
    words = {
        "{u}": "i" if kind.scalar == BYTES[0] else "u",
        "{m}": f"__mmask{kind.lanes}",
        "{n}": "u_si128" if kind.lanes == 16 else "l_epi64",
    }
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _conversions(kind: DType) -> dict[tuple[str, DType], str]:
    """Between a vector of bytes and those of other types with as many lanes."""
    lanes, wide = kind.lanes, f"_mm{kind.lanes * 32}"
    whole = f"{wide}_cvtep{'i' if kind.scalar == BYTES[0] else 'u'}8_epi32({{0}})"
    numbers, floats = INT32.with_lanes(lanes), FLOAT32.with_lanes(lanes)
    other = next(byte for byte in BYTES if byte != kind.scalar)
    table = {
        (f"cast_{INT32}", kind): whole,
        (f"cast_{FLOAT32}", kind): f"{wide}_cvtepi32_ps({whole})",
        (f"cast_{other}", kind): "{0}",
        (f"cast_{kind.scalar}", numbers): f"{wide}_cvtepi32_epi8({{0}})",
        (f"cast_{kind.scalar}", floats): f"{wide}_cvtepi32_epi8({wide}_cvttps_epi32({{0}}))",
        (f"round_{kind.scalar}", floats): f"{wide}_cvtepi32_epi8({wide}_cvtps_epi32({{0}}))",
    }
    if lanes == 8:
        doubles, longs = FLOAT64.with_lanes(lanes), INT64.with_lanes(lanes)
        table |= {
            (f"cast_{FLOAT64}", kind): f"_mm512_cvtepi32_pd({whole})",
            (f"cast_{INT64}", kind): whole.replace("_mm256", "_mm512").replace("epi32", "epi64"),
            (f"cast_{kind.scalar}", doubles): "_mm256_cvtepi32_epi8(_mm512_cvttpd_epi32({0}))",
            (f"cast_{kind.scalar}", longs): "_mm512_cvtepi64_epi8({0})",
        }
    return table
