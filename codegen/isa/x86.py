"""AVX2 with FMA and AVX-512 as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...tir.dtype import FLOAT16, FLOAT32, FLOAT64, INT32, INT64, DType

VECTOR_TYPES = (FLOAT32, FLOAT64, INT32, INT64)
MIN_LANES = 4


def register_bytes(*, avx512: bool) -> int:
    """Bytes of the widest register."""
    return 64 if avx512 else 32


def types(*, avx512: bool) -> dict[DType, str]:
    """The C type of each vector."""
    found: dict[DType, str] = {}
    for element in VECTOR_TYPES:
        lanes = register_bytes(avx512=avx512) // element.bytes
        while lanes >= MIN_LANES and lanes * element.bytes >= 16:
            dtype = element.with_lanes(lanes)
            found[dtype] = _c_type(dtype)
            lanes //= 2
    return found


def held_types(types: Mapping[DType, str]) -> dict[DType, str]:
    """The C type of a variable that is written again and again, where it is another one."""
    return {t: f"__v{t.lanes}si" for t in types if t.scalar == INT32}


def operations(features: Sequence[str], *, avx512: bool) -> dict[tuple[str, DType], str]:
    """The C expression of each operation, those of tensor intrinsics that the features have among
    them.
    """
    table = _scalar() | (_scalar_avx512() if avx512 else {})
    known = types(avx512=avx512)
    for dtype in known:
        table |= _vector(dtype, avx512=avx512)
    for dtype in known:
        table |= _conversions(dtype, known, avx512=avx512)
        table |= _tensor(dtype, features, avx512=avx512)
    return table


def _bits(dtype: DType) -> int:
    return dtype.lanes * dtype.bits


def _c_type(dtype: DType) -> str:
    suffix = {FLOAT32: "", FLOAT64: "d"}.get(dtype.scalar, "i")
    return f"__m{_bits(dtype)}{suffix}"


def _prefix(dtype: DType) -> str:
    bits = _bits(dtype)
    return "_mm" if bits == 128 else f"_mm{bits}"


def _suffix(dtype: DType) -> str:
    return {FLOAT32: "ps", FLOAT64: "pd"}.get(dtype.scalar, f"epi{dtype.bits}")


def _scalar() -> dict[tuple[str, DType], str]:
    """With SSE4.1, FMA and F16C: rounding, multiply-add and half precision of scalars."""
    return {
        ("cast_float32", FLOAT16): "_cvtsh_ss({0})",
        ("cast_float16", FLOAT32): "_cvtss_sh({0}, 0)",
        ("fma", FLOAT32): "__builtin_fmaf({0}, {1}, {2})",
        ("fma", FLOAT64): "__builtin_fma({0}, {1}, {2})",
        ("neg", FLOAT32): "_mm_cvtss_f32(_mm_xor_ps(_mm_set_ss({0}), _mm_set_ss(-0.0f)))",
        ("neg", FLOAT64): "_mm_cvtsd_f64(_mm_xor_pd(_mm_set_sd({0}), _mm_set_sd(-0.0)))",
        ("round", FLOAT32): "_mm_cvtss_f32(_mm_round_ss(_mm_setzero_ps(), _mm_set_ss({0}), 8))",
        ("round", FLOAT64): "_mm_cvtsd_f64(_mm_round_sd(_mm_setzero_pd(), _mm_set_sd({0}), 8))",
        ("floor", FLOAT32): "_mm_cvtss_f32(_mm_round_ss(_mm_setzero_ps(), _mm_set_ss({0}), 9))",
        ("floor", FLOAT64): "_mm_cvtsd_f64(_mm_round_sd(_mm_setzero_pd(), _mm_set_sd({0}), 9))",
    }


def _scalar_avx512() -> dict[tuple[str, DType], str]:
    both = "(_mm_set_s{s}({0}), _mm_set_s{s}({1})))"
    return {
        ("scale", FLOAT32): "_mm_cvtss_f32(_mm_scalef_ss" + both.replace("{s}", "s"),
        ("scale", FLOAT64): "_mm_cvtsd_f64(_mm_scalef_sd" + both.replace("{s}", "d"),
    }


# Vectors: {p} is _mm512, _mm256 or _mm; {s} is ps, pd, epi32 or epi64; {v} is si512, si256 or
# si128; {i} and {f} are the
# integer and the float type of the same register, {c} and {d} the casts to them.
_FLOAT = {
    "add": "{p}_add_{s}({0}, {1})",
    "sub": "{p}_sub_{s}({0}, {1})",
    "mul": "{p}_mul_{s}({0}, {1})",
    "div": "{p}_div_{s}({0}, {1})",
    "fma": "{p}_fmadd_{s}({0}, {1}, {2})",
    "sqrt": "{p}_sqrt_{s}({0})",
    "max_any": "{p}_max_{s}({0}, {1})",
    "min_any": "{p}_min_{s}({0}, {1})",
    "zero": "{p}_setzero_{s}()",
    "broadcast": "{p}_set1_{s}({0})",
    "load": "{p}_loadu_{s}({0})",
    "store": "{p}_storeu_{s}({0}, {1})",  # pointer, value
    "stream": "{p}_stream_{s}({0}, {1})",  # past the caches, to an address that is aligned to it
}
_FLOAT_AVX2 = {
    "min": "{p}_blendv_{s}({p}_min_{s}({0}, {1}), {0}, {p}_cmp_{s}({0}, {0}, _CMP_UNORD_Q))",
    "max": "{p}_blendv_{s}({p}_max_{s}({0}, {1}), {0}, {p}_cmp_{s}({0}, {0}, _CMP_UNORD_Q))",
    "abs": "{p}_andnot_{s}({p}_set1_{s}(-0.0), {0})",
    "neg": "{p}_xor_{s}({0}, {p}_set1_{s}(-0.0))",
    "round": "{p}_round_{s}({0}, 8)",
    "floor": "{p}_round_{s}({0}, 9)",
    "eq": "{c}({p}_cmp_{s}({0}, {1}, _CMP_EQ_OQ))",
    "ne": "{c}({p}_cmp_{s}({0}, {1}, _CMP_NEQ_UQ))",
    "lt": "{c}({p}_cmp_{s}({0}, {1}, _CMP_LT_OQ))",
    "le": "{c}({p}_cmp_{s}({0}, {1}, _CMP_LE_OQ))",
    "blend": "{p}_blendv_{s}({2}, {1}, {d}({0}))",  # mask, on, off
    "blend_zero": "{p}_and_{s}({d}({0}), {1})",  # mask, on; 0 where off
    "load_masked": "{p}_maskload_{s}({0}, {1})",  # pointer, mask; 0 where off
    "store_masked": "{p}_maskstore_{s}({0}, {1}, {2})",  # pointer, mask, value
    "gather": "{p}_i32gather_{s}({0}, {1}, {b})",  # pointer, index
    # pointer, index, mask, other
    "gather_masked": "{p}_mask_i32gather_{s}({3}, {0}, {1}, {d}({2}), {b})",
}
_FLOAT_AVX512 = {
    "min": "{p}_mask_mov_{s}({p}_min_{s}({0}, {1}), {p}_cmp_{s}_mask({0}, {0}, _CMP_UNORD_Q), {0})",
    "max": "{p}_mask_mov_{s}({p}_max_{s}({0}, {1}), {p}_cmp_{s}_mask({0}, {0}, _CMP_UNORD_Q), {0})",
    "abs": "{p}_andnot_{s}({p}_set1_{s}(-0.0), {0})",
    "neg": "{p}_xor_{s}({0}, {p}_set1_{s}(-0.0))",
    "round": "{p}_roundscale_{s}({0}, 8)",
    "floor": "{p}_roundscale_{s}({0}, 9)",
    "scale": "{p}_scalef_{s}({0}, {1})",
    "eq": "{p}_cmp_{s}_mask({0}, {1}, _CMP_EQ_OQ)",
    "ne": "{p}_cmp_{s}_mask({0}, {1}, _CMP_NEQ_UQ)",
    "lt": "{p}_cmp_{s}_mask({0}, {1}, _CMP_LT_OQ)",
    "le": "{p}_cmp_{s}_mask({0}, {1}, _CMP_LE_OQ)",
}
_PREDICATED = {
    "blend": "{p}_mask_blend_{s}({0}, {2}, {1})",  # mask, on, off
    "load_masked": "{p}_maskz_loadu_{s}({1}, {0})",
    "load_merged": "{p}_mask_loadu_{s}({2}, {1}, {0})",  # pointer, mask, other
    "store_masked": "{p}_mask_storeu_{s}({0}, {1}, {2})",
}
_INT = {
    "add": "{p}_add_{s}({0}, {1})",
    "sub": "{p}_sub_{s}({0}, {1})",
    "shift_left": "{p}_slli_{s}({0}, {1})",
    "and": "{p}_and_{v}({0}, {1})",
    "or": "{p}_or_{v}({0}, {1})",
    "xor": "{p}_xor_{v}({0}, {1})",
    "shift_left_by": "{p}_sllv_{s}({0}, {1})",
    "zero": "{p}_setzero_{v}()",
    "broadcast": "{p}_set1_{t}({0})",
    "load": "{p}_loadu_{v}((const {i} *)({0}))",
    "store": "{p}_storeu_{v}(({i} *)({0}), {1})",
    "stream": "{p}_stream_{v}(({i} *)({0}), {1})",
}
_INT32 = {
    "mul": "{p}_mullo_{s}({0}, {1})",
    "min": "{p}_min_{s}({0}, {1})",
    "max": "{p}_max_{s}({0}, {1})",
    "shift_right": "{p}_srai_{s}({0}, {1})",
    "shift_right_by": "{p}_srav_{s}({0}, {1})",
}
_INT_AVX2 = {
    "eq": "{p}_cmpeq_{s}({0}, {1})",
    "ne": "{p}_xor_{v}({p}_cmpeq_{s}({0}, {1}), {p}_set1_epi32(-1))",
    "lt": "{p}_cmpgt_{s}({1}, {0})",
    "le": "{p}_xor_{v}({p}_cmpgt_{s}({0}, {1}), {p}_set1_epi32(-1))",
    "blend": "{p}_blendv_epi8({2}, {1}, {0})",
    "load_masked": "{p}_maskload_{s}((const {w} *)({0}), {1})",
    "store_masked": "{p}_maskstore_{s}(({w} *)({0}), {1}, {2})",
    "gather": "{p}_i32gather_{s}((const {w} *)({0}), {1}, {b})",
    "gather_masked": "{p}_mask_i32gather_{s}({3}, (const {w} *)({0}), {1}, {2}, {b})",
}
_INT64_AVX2 = {  # there is no shift that keeps the sign
    "shift_right": (
        "{p}_or_{v}({p}_srli_{s}({0}, {1}),"
        " {p}_slli_{s}({p}_cmpgt_{s}({p}_setzero_{v}(), {0}), 64 - {1}))"
    ),
}
_INT_AVX512 = {
    "eq": "{p}_cmpeq_{s}_mask({0}, {1})",
    "ne": "{p}_cmpneq_{s}_mask({0}, {1})",
    "lt": "{p}_cmplt_{s}_mask({0}, {1})",
    "le": "{p}_cmple_{s}_mask({0}, {1})",
    **_INT32,
}
# 16 numbers of a register by the lowest bits of each lane; {0} is the index, {1} the table
_LOOKUP = {
    "lookup": "_mm512_permutexvar_ps({0}, {1})",
    "lookup_high": "_mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAA, {0}, {1}))",
    "lookup_table": "_mm512_setr_ps({0})",
    "lookup_halves": (  # the upper halves of the numbers of a table, twice
        "_mm512_broadcast_i64x4(_mm512_cvtepi32_epi16"
        "(_mm512_srli_epi32(_mm512_castps_si512({0}), 16)))"
    ),
}
_GATHER_512 = {
    "gather": "{p}_i32gather_{s}({1}, {0}, {b})",
    "gather_masked": "{p}_mask_i32gather_{s}({3}, {2}, {1}, {0}, {b})",
}
_GATHER_VL = {
    "gather": "{p}_i32gather_{s}((const {w} *)({0}), {1}, {b})",
    "gather_masked": "{p}_mmask_i32gather_{s}({3}, {2}, {1}, {0}, {b})",
}
# Masks as vectors of integers; the first operand of `mask_all`, `mask_both` (and) and
# `mask_either` (or) is a C condition.
_MASK_VECTOR = {
    "mask_and": "{p}_and_{v}({0}, {1})",
    "mask_or": "{p}_or_{v}({0}, {1})",
    "mask_not": "{p}_xor_{v}({0}, {p}_set1_epi32(-1))",
    "mask_all": "{p}_set1_epi32({0} ? -1 : 0)",
    "mask_both": "({0} ? {1} : {p}_setzero_{v}())",
    "mask_either": "({0} ? {p}_set1_epi32(-1) : {1})",
    "mask_first": "{p}_cmpgt_{e}({p}_set1_{t}(({k}){0}), {n})",  # lanes below a count of 0 .. lanes
}
_MASK_BITS = {
    "mask_and": "({m})({0} & {1})",
    "mask_or": "({m})({0} | {1})",
    "mask_not": "({m})~{0}",
    "mask_all": "({m})({0} ? {a} : 0)",
    "mask_both": "({m})({0} ? {1} : 0)",
    "mask_either": "({m})({0} ? {a} : {1})",
    "mask_first": "({m})({a}u >> ({l} - {0}))",
}


def _vector(dtype: DType, *, avx512: bool) -> dict[tuple[str, DType], str]:
    is_float = dtype.is_float
    texts = dict(_FLOAT if is_float else _INT)
    if avx512:
        texts |= _FLOAT_AVX512 if is_float else _INT_AVX512
        texts |= _PREDICATED
        texts |= _GATHER_512 if _bits(dtype) == 512 else _GATHER_VL
        texts |= _MASK_BITS
        if is_float and _bits(dtype) != 512:
            texts |= {name: _FLOAT_AVX2[name] for name in ("round", "floor")}
    else:
        texts |= _FLOAT_AVX2 if is_float else _INT_AVX2
        texts |= {INT32: _INT32, INT64: _INT64_AVX2}.get(dtype.scalar, {})
        texts |= _MASK_VECTOR
    if avx512 and dtype.scalar == FLOAT32 and _bits(dtype) == 512:
        texts |= _LOOKUP
    texts["lane_numbers"] = "{n}"
    texts |= _parts(dtype)
    words = _words(dtype)
    table: dict[tuple[str, DType], str] = {}
    for name, text in texts.items():
        for word, value in words.items():
            text = text.replace("{" + word + "}", value)
        table[name, dtype] = text
    return table


def _parts(dtype: DType) -> dict[str, str]:
    """Lanes out of a register, by the number of the part: one of them, a quarter or a half."""
    held = "(__v{l}si)" if dtype.scalar == INT32 else ""
    texts = {"lanes_1": f"({held}{{0}})[{{1}}]"}
    kind = "f" if dtype.is_float else "i"
    for parts in (2, 4):
        bits, lanes = _bits(dtype) // parts, dtype.lanes // parts
        if bits < 128 or lanes < MIN_LANES:
            continue
        if _bits(dtype) == 256:
            suffix = _suffix(dtype) if dtype.is_float else "si256"
            name = f"extract{kind}128_{suffix}"
        else:
            size = f"{dtype.bits}x{lanes}"
            name = f"extract{kind}{size}_{_suffix(dtype)}"
        texts[f"lanes_{lanes}"] = f"{{p}}_{name}({{0}}, {{1}})"
    return texts


def _words(dtype: DType) -> dict[str, str]:
    """What the letters in the tables stand for, for one vector type."""
    prefix, suffix, bits = _prefix(dtype), _suffix(dtype), _bits(dtype)
    integer = f"epi{dtype.bits}"
    wide = dtype.bits == 64
    numbers = ", ".join(str(lane) for lane in range(dtype.lanes))
    reverse = ", ".join(str(lane) for lane in reversed(range(dtype.lanes)))
    listed = {
        (32, 128): f"_mm_setr_epi32({numbers})",
        (32, 256): f"_mm256_setr_epi32({numbers})",
        (32, 512): f"_mm512_setr_epi32({numbers})",
        (64, 256): f"_mm256_setr_epi64x({numbers})",
        (64, 512): f"_mm512_set_epi64({reverse})",
    }[dtype.bits, bits]
    element = {FLOAT32: "float", FLOAT64: "double", INT32: "int"}.get(dtype.scalar, "long long")
    return {
        "p": prefix,
        "s": suffix,
        "e": integer,
        "k": "long long" if wide else "int",
        "v": f"si{bits}",
        "t": integer + ("x" if wide and bits < 512 else ""),
        "i": "void" if bits == 512 else f"__m{bits}i",
        "w": element,
        "b": str(dtype.bytes),
        "c": f"{prefix}_cast{suffix}_si{bits}",
        "d": f"{prefix}_castsi{bits}_{suffix}",
        "n": listed,
        "m": "__mmask16" if dtype.lanes == 16 else "__mmask8",
        "a": hex((1 << dtype.lanes) - 1),
        "l": str(dtype.lanes),
    }


# the feature that it takes, then of accumulators and the bits of the operands' elements
_TENSOR_AVX512 = {
    ("vpdpbusd", INT32): ("vnni", "{p}_dpbusd_epi32({0}, {1}, {2})"),
    ("vpdpwssd", INT32): ("vnni", "{p}_dpwssd_epi32({0}, {1}, {2})"),
    ("vdpbf16ps", FLOAT32): ("bf16", "{p}_dpbf16_ps({0}, (__m{w}bh)({1}), (__m{w}bh)({2}))"),
}
_TENSOR_AVX2 = {
    ("vpdpbusd", INT32): ("vnni", "{p}_dpbusd_avx_epi32({0}, {1}, {2})"),
    ("vpdpwssd", INT32): ("vnni", "{p}_dpwssd_avx_epi32({0}, {1}, {2})"),
    ("vpmaddwd", INT32): ("", "{p}_add_epi32({0}, {p}_madd_epi16({1}, {2}))"),
}


def _tensor(dtype: DType, features: Sequence[str], *, avx512: bool) -> dict[tuple[str, DType], str]:
    """The tensor intrinsics on accumulators of a type that the features have, and loads of some of
    the elements of their operands.
    """
    known = _TENSOR_AVX512 if avx512 else _TENSOR_AVX2
    table = {
        (name, dtype): text.replace("{p}", _prefix(dtype)).replace("{w}", str(_bits(dtype)))
        for (name, element), (feature, text) in known.items()
        if element == dtype.scalar and (not feature or feature in features)
    }
    if dtype.scalar == INT32 and not avx512:
        for bits in (8, 16):
            table[f"elements_{bits}", dtype] = f"{_prefix(dtype)}_setr_epi{bits}({{0}})"
    if dtype.scalar == INT32 and avx512 and features:
        for bits in (8, 16):  # pointer, mask of a bit per element
            mask = f"(__mmask{_bits(dtype) // bits}){{1}}"
            table[f"load_bits_masked_{bits}", dtype] = (
                f"{_prefix(dtype)}_maskz_loadu_epi{bits}({mask}, {{0}})"
            )
    return table


def _conversions(
    source: DType, types: Mapping[DType, str], *, avx512: bool
) -> dict[tuple[str, DType], str]:
    """`cast_<type>` and `reinterpret_<type>`, looked up with the type that is converted."""
    table: dict[tuple[str, DType], str] = {}
    for result in types:
        if result.lanes != source.lanes or result.scalar == source.scalar:
            continue
        text = _cast(source, result, avx512)
        if text is not None:
            table[f"cast_{result.scalar}", source] = text
        if result.bits == source.bits:
            bits = _bits(source)
            names = (
                (_suffix(source), f"si{bits}")
                if source.is_float
                else (f"si{bits}", _suffix(result))
            )
            table[f"reinterpret_{result.scalar}", source] = (
                f"{_prefix(source)}_cast{names[0]}_{names[1]}({{0}})"
            )
    if not avx512 and source.scalar == INT32 and source.lanes == 4:  # masks of two widths
        table["mask_widen", source] = "_mm256_cvtepi32_epi64({0})"
        table["mask_narrow", source] = _LOW_WORDS
    return table


_LOW_WORDS = (
    "_mm256_castsi256_si128(_mm256_permutevar8x32_epi32"
    "({0}, _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0)))"
)


def _cast(source: DType, result: DType, avx512: bool) -> str | None:
    if (source.scalar, result.scalar) == (INT64, INT32) and not avx512:
        return _LOW_WORDS
    needs_dq = INT64 in (source.scalar, result.scalar) and source.scalar != INT32
    if needs_dq and not avx512:
        return None
    wider = source if _bits(source) >= _bits(result) else result
    prefix = _prefix(wider)
    truncate = "t" if source.is_float and not result.is_float else ""
    if (source.scalar, result.scalar) == (INT32, INT64):
        return f"{prefix}_cvtepi32_epi64({{0}})"
    return f"{prefix}_cvt{truncate}{_suffix(source)}_{_suffix(result)}({{0}})"
