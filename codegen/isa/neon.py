"""NEON as tables: 128-bit vectors, masks as unsigned integers as wide as the data.

There are no masked loads or stores and no gathers, so what needs one runs lane after lane.
Minima and maxima take the second operand of two equal ones, as on the other instruction sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.dtype import FLOAT32, FLOAT64, INT32, INT64, DType
from .selection import shuffle_operation

BYTES = 16

# {s} is f32, f64, s32 or s64; {m} is u32 or u64, the mask of such a vector; {i} is s32 or s64, {t}
# the C type of such an integer, {u} that of a lane of a mask; {n} is the vector 0, 1, 2, ...; {not}
# and {ones} turn all bits of a mask.
_BOTH = {
    "add": "vaddq_{s}({0}, {1})",
    "sub": "vsubq_{s}({0}, {1})",
    "broadcast": "vdupq_n_{s}({0})",
    "eq": "vceqq_{s}({0}, {1})",
    "ne": "{not}(vceqq_{s}({0}, {1}){ones})",
    "lt": "vcltq_{s}({0}, {1})",
    "le": "vcleq_{s}({0}, {1})",
    "blend": "vbslq_{s}({0}, {1}, {2})",  # mask, on, off
    "lane_numbers": "{n}",
    "lanes_1": "{0}[{1}]",
    "mask_and": "vandq_{m}({0}, {1})",
    "mask_or": "vorrq_{m}({0}, {1})",
    "mask_not": "{not}({0}{ones})",
    "mask_all": "vdupq_n_{m}({0} ? ~({u})0 : 0)",
    "mask_both": "({0} ? {1} : vdupq_n_{m}(0))",
    "mask_either": "({0} ? vdupq_n_{m}(~({u})0) : {1})",
    "mask_first": "vcgtq_{i}(vdupq_n_{i}(({t}){0}), {n})",  # lanes below a count of 0 .. lanes
}
_FLOAT = {
    "mul": "vmulq_{s}({0}, {1})",
    "div": "vdivq_{s}({0}, {1})",
    "fma": "vfmaq_{s}({2}, {0}, {1})",
    "sqrt": "vsqrtq_{s}({0})",
    "abs": "vabsq_{s}({0})",
    "neg": "vreinterpretq_{s}_{i}(veorq_{i}(vreinterpretq_{i}_{s}({0}), vdupq_n_{i}({low})))",
    "round": "vrndnq_{s}({0})",
    "floor": "vrndmq_{s}({0})",
    "min_any": "vbslq_{s}(vcltq_{s}({0}, {1}), {0}, {1})",
    "max_any": "vbslq_{s}(vcgtq_{s}({0}, {1}), {0}, {1})",
    "min": "vbslq_{s}(vcltq_{s}({0}, {1}), {0}, vbslq_{s}(vceqq_{s}({0}, {0}), {1}, {0}))",
    "max": "vbslq_{s}(vcgtq_{s}({0}, {1}), {0}, vbslq_{s}(vceqq_{s}({0}, {0}), {1}, {0}))",
    "zero": "vdupq_n_{s}(0)",
    "load": "vld1q_{s}({0})",
    "store": "vst1q_{s}({0}, {1})",  # pointer, value
}
_INTEGER = {
    "and": "vandq_{s}({0}, {1})",
    "or": "vorrq_{s}({0}, {1})",
    "xor": "veorq_{s}({0}, {1})",
    "zero": "vdupq_n_{s}(0)",
    "load": "vld1q_{s}((const {t} *)({0}))",
    "store": "vst1q_{s}(({t} *)({0}), {1})",
    "shift_left": "vshlq_{s}({0}, vdupq_n_{s}({1}))",
    "shift_right": "vshlq_{s}({0}, vdupq_n_{s}(-({1})))",
}
_INTEGER_32 = {
    "mul": "vmulq_{s}({0}, {1})",
    "min": "vminq_{s}({0}, {1})",
    "max": "vmaxq_{s}({0}, {1})",
}
_CASTS = {
    (FLOAT32, INT32): "vcvtq_s32_f32({0})",
    (INT32, FLOAT32): "vcvtq_f32_s32({0})",
    (FLOAT64, INT64): "vcvtq_s64_f64({0})",
    (INT64, FLOAT64): "vcvtq_f64_s64({0})",
}

# the feature that it takes, then of accumulators and the bits of the operands' bytes
_TENSOR = {
    "smmla": ("i8mm", "vmmlaq_s32({0}, (int8x16_t)({1}), (int8x16_t)({2}))"),
    "usmmla": ("i8mm", "vusmmlaq_s32({0}, (uint8x16_t)({1}), (int8x16_t)({2}))"),
    "ummla": (
        "i8mm",
        "(int32x4_t)vmmlaq_u32((uint32x4_t)({0}), (uint8x16_t)({1}), (uint8x16_t)({2}))",
    ),
    "usdot": ("i8mm", "vusdotq_s32({0}, (uint8x16_t)({1}), (int8x16_t)({2}))"),
    "sdot": ("dotprod", "vdotq_s32({0}, (int8x16_t)({1}), (int8x16_t)({2}))"),
    "udot": (
        "dotprod",
        "(int32x4_t)vdotq_u32((uint32x4_t)({0}), (uint8x16_t)({1}), (uint8x16_t)({2}))",
    ),
}
_HALVES = {  # of two vectors: what an instruction for two rows of two columns has of each
    (0, 1, 4, 5): "(int32x4_t)vzip1q_s64((int64x2_t)({0}), (int64x2_t)({1}))",
    (2, 3, 6, 7): "(int32x4_t)vzip2q_s64((int64x2_t)({0}), (int64x2_t)({1}))",
}
_BYTES = {
    "load_bits_8": "(int32x4_t)vld1q_s8((const int8_t *)({0}))",
    "elements_8": "(int32x4_t)((int8x16_t){{{0}}})",  # some of them
}

TYPES: dict[DType, str] = {
    FLOAT32.with_lanes(4): "float32x4_t",
    FLOAT64.with_lanes(2): "float64x2_t",
    INT32.with_lanes(4): "int32x4_t",
    INT64.with_lanes(2): "int64x2_t",
}
MASKS = {4: "uint32x4_t", 2: "uint64x2_t"}


def scalar_operations() -> dict[tuple[str, DType], str]:
    """What one instruction does to a scalar."""
    return {
        ("fma", FLOAT32): "__builtin_fmaf({0}, {1}, {2})",
        ("fma", FLOAT64): "__builtin_fma({0}, {1}, {2})",
        ("neg", FLOAT32): "tw_to_f32(tw_of_f32({0}) ^ INT32_MIN)",
        ("neg", FLOAT64): "tw_to_f64(tw_of_f64({0}) ^ INT64_MIN)",
        ("floor", FLOAT32): "__builtin_floorf({0})",
        ("floor", FLOAT64): "__builtin_floor({0})",
    }


def vector_operations(features: Sequence[str]) -> dict[tuple[str, DType], str]:
    """The C expression of each operation on each vector type, those of tensor intrinsics that the
    features have among them.
    """
    table: dict[tuple[str, DType], str] = {}
    for dtype in TYPES:
        texts = _BOTH | (_FLOAT if dtype.is_float else _INTEGER)
        if dtype.scalar == INT32:
            texts |= _INTEGER_32
        words = _words(dtype)
        for name, text in texts.items():
            for word, value in words.items():
                text = text.replace("{" + word + "}", value)
            table[name, dtype] = text
    for (source, result), text in _CASTS.items():
        like = source.with_lanes(BYTES // source.bytes)
        table[f"cast_{result}", like] = text
        names = f"{_suffix(result)}_{_suffix(source)}"
        table[f"reinterpret_{result}", like] = f"vreinterpretq_{names}({{0}})"
    return table | _tensor(features)


def _tensor(features: Sequence[str]) -> dict[tuple[str, DType], str]:
    """The tensor intrinsics that the features have, and loads of the bytes of their operands."""
    sums = INT32.with_lanes(4)
    found = {(name, sums): text for name, (feature, text) in _TENSOR.items() if feature in features}
    if found:
        found |= {(name, sums): text for name, text in _BYTES.items()}
    if "i8mm" in features:
        found |= {(shuffle_operation(order), sums): text for order, text in _HALVES.items()}
        found["pair", INT64.with_lanes(2)] = "(int64x2_t){{ {0}, {1} }}"
    return found


def _suffix(dtype: DType) -> str:
    return f"{'f' if dtype.is_float else 's'}{dtype.bits}"


def _words(dtype: DType) -> dict[str, str]:
    """What the letters in the tables stand for, for one vector type."""
    bits = dtype.bits
    numbers = ", ".join(str(lane) for lane in range(dtype.lanes))
    return {
        "s": _suffix(dtype),
        "m": f"u{bits}",
        "i": f"s{bits}",
        "t": f"int{bits}_t",
        "u": f"uint{bits}_t",
        "low": f"INT{bits}_MIN",
        "n": f"((int{bits}x{dtype.lanes}_t){{{{{numbers}}}}})",
        "not": "vmvnq_u32" if bits == 32 else "veorq_u64",
        "ones": "" if bits == 32 else ", vdupq_n_u64(~(uint64_t)0)",
    }
