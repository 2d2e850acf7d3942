"""Vectors of 8 and 16 bits of AVX2, with as many lanes as its vectors of 32 bits have: what is
loaded, widened, narrowed, computed and stored beside these. Their lanes are the first ones of an
`__m128i`. Truth values are masks of 32 bits to a lane that bytes of 0 and 1 hold in memory.

There are no masks for them, neither of instructions nor of vectors of so few bits: what would need
one runs lane after lane. float16 has instructions that convert it (F16C); bfloat16 is arithmetic
on 32 bits, as it is of scalars.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dtype import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT32, DType, dtype

LANES = 8
TYPE = "__m128i"
INTEGERS = tuple(map(dtype, ("int8", "uint8", "int16", "uint16")))
KINDS = (*INTEGERS, FLOAT16, BFLOAT16)

# {b} is 8 or 16; {c} is char or short; {u} is i or u; {n} ends the name of a load or a store
_MOVES = {
    "zero": "_mm_setzero_si128()",
    "broadcast": "_mm_set1_epi{b}(({c})({0}))",
    "load": "_mm_load{n}((const __m128i *)({0}))",
    "store": "_mm_store{n}((__m128i *)({0}), {1})",  # pointer, value
}
_ARITHMETIC = {
    "add": "_mm_add_epi{b}({0}, {1})",
    "sub": "_mm_sub_epi{b}({0}, {1})",
    "min": "_mm_min_ep{u}{b}({0}, {1})",
    "max": "_mm_max_ep{u}{b}({0}, {1})",
    "and": "_mm_and_si128({0}, {1})",
    "or": "_mm_or_si128({0}, {1})",
    "xor": "_mm_xor_si128({0}, {1})",
}
_TRUTHS = {
    "zero": "_mm256_setzero_si256()",
    "load": (
        "_mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)({0}))), "
        "_mm256_setzero_si256())"
    ),
    "store": "_mm_storel_epi64((__m128i *)({0}), _mm_and_si128(tw_low_8({1}), _mm_set1_epi8(1)))",
}


def types() -> dict[DType, str]:
    """The C type of each vector."""
    return {kind.with_lanes(LANES): TYPE for kind in KINDS}


def operations() -> Mapping[tuple[str, DType], str]:
    """The C expression of each operation; that of a conversion stands with the type converted."""
    table: dict[tuple[str, DType], str] = {}
    for kind in types():
        texts = _MOVES | (_ARITHMETIC if kind.is_integer else {})
        table |= {(name, kind): _written(text, kind) for name, text in texts.items()}
        like = [k for k in KINDS if k.bits == kind.bits and k != kind.scalar]
        table |= {(f"reinterpret_{other}", kind): "{0}" for other in like}
        table |= _conversions(kind)
    table |= {(name, BOOL.with_lanes(LANES)): text for name, text in _TRUTHS.items()}
    return table


def _written(text: str, kind: DType) -> str:
    words = {
        "{b}": str(kind.bits),
        "{c}": "char" if kind.bits == 8 else "short",
        "{u}": "u" if str(kind.scalar).startswith("u") else "i",
        "{n}": "l_epi64" if kind.bits == 8 else "u_si128",
    }
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def _conversions(kind: DType) -> dict[tuple[str, DType], str]:
    """Between such a vector and those of 32 bits, and from 8 bits to 16."""
    numbers, floats = INT32.with_lanes(LANES), FLOAT32.with_lanes(LANES)
    if kind.scalar == FLOAT16:
        return {
            (f"cast_{FLOAT32}", kind): "_mm256_cvtph_ps({0})",
            (f"cast_{FLOAT16}", floats): "_mm256_cvtps_ph({0}, 0)",
        }
    if not kind.is_integer:
        return {}
    sign = "u" if str(kind.scalar).startswith("u") else "i"
    whole = f"_mm256_cvtep{sign}{kind.bits}_epi32({{0}})"
    others = [k for k in INTEGERS if k.bits == kind.bits and k != kind.scalar]
    wider = [k for k in INTEGERS if k.bits > kind.bits]
    return {
        (f"cast_{INT32}", kind): whole,
        (f"cast_{FLOAT32}", kind): f"_mm256_cvtepi32_ps({whole})",
        (f"cast_{kind.scalar}", numbers): f"tw_low_{kind.bits}({{0}})",
        (f"cast_{kind.scalar}", floats): _joined(kind, "_mm256_cvttps_epi32({0})"),
        (f"round_{kind.scalar}", floats): _joined(kind, "_mm256_cvtps_epi32({0})"),
        **{(f"cast_{other}", kind): "{0}" for other in others},
        **{(f"cast_{k}", kind): f"_mm_cvtep{sign}8_epi16({{0}})" for k in wider},
    }


def _joined(kind: DType, whole: str) -> str:
    """Numbers of 32 bits that were floats, and so lie in the range of the type (`SaturateCasts`):
    no bits are taken off before they are put side by side.
    """
    name = "tw_join" if str(kind.scalar).startswith("u") else "tw_join_signed"
    words = f"{name}_16({whole})"
    return words if kind.bits == 16 else f"{name}_8({words})"
