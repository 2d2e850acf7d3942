"""C, as the emitter writes it."""

from __future__ import annotations

from ..text.dialect import Dialect
from ..text.functions import HELPERS, Helper

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
_HELPERS = {
    "tw_aligned": Helper("int", "const void *p, size_t bytes", "(uintptr_t)p % bytes == 0"),
    "tw_load_i32": Helper(
        "int32_t", "const void *from", "*(int32_t *)memcpy(&(int32_t){ 0 }, from, 4)"
    ),
    "tw_load_i64": Helper(
        "int64_t", "const void *from", "*(int64_t *)memcpy(&(int64_t){ 0 }, from, 8)"
    ),
    "tw_load_first": Helper(
        "int32_t", "const void *p, size_t n", "*(int32_t *)memcpy(&(int32_t){ 0 }, p, n)"
    ),
    "tw_load_first_64": Helper(
        "int64_t", "const void *p, size_t n", "*(int64_t *)memcpy(&(int64_t){ 0 }, p, n)"
    ),
    # AVX2: the low 16 or 8 bits of eight numbers of 32 bits, side by side
    "tw_low_16": Helper("__m128i", "__m256i v", "tw_join_16(tw_only(v, 65535))"),
    "tw_low_8": Helper("__m128i", "__m256i v", "tw_join_8(tw_join_16(tw_only(v, 255)))"),
    "tw_only": Helper(
        "__m256i", "__m256i v, int bits", "_mm256_and_si256(v, _mm256_set1_epi32(bits))"
    ),
    "tw_join_16": Helper(
        "__m128i", "__m256i v", "_mm_packus_epi32(_mm256_castsi256_si128(v), tw_upper(v))"
    ),
    "tw_join_8": Helper("__m128i", "__m128i v", "_mm_packus_epi16(v, v)"),
    # the same of numbers with a sign
    "tw_join_signed_16": Helper(
        "__m128i", "__m256i v", "_mm_packs_epi32(_mm256_castsi256_si128(v), tw_upper(v))"
    ),
    "tw_join_signed_8": Helper("__m128i", "__m128i v", "_mm_packs_epi16(v, v)"),
    "tw_upper": Helper("__m128i", "__m256i v", "_mm256_extracti128_si256(v, 1)"),
    "tw_to_f32": Helper(
        "float", "int32_t bits", "(union { int32_t bits; float value; }){ bits }.value"
    ),
    "tw_of_f32": Helper(
        "int32_t", "float value", "(union { float value; int32_t bits; }){ value }.bits"
    ),
    "tw_to_f64": Helper(
        "double", "int64_t bits", "(union { int64_t bits; double value; }){ bits }.value"
    ),
    "tw_of_f64": Helper(
        "int64_t", "double value", "(union { double value; int64_t bits; }){ value }.bits"
    ),
}
C = Dialect(
    name="c",
    types={name: f"{name}_t" for name in _INTEGERS} | _TYPES,
    index="int64_t",
    infinity={32: "__builtin_inff()", 64: "__builtin_inf()"},
    nan={32: '__builtin_nanf("")', 64: '__builtin_nan("")'},
    smallest={32: "INT32_MIN", 64: "INT64_MIN"},
    float_of={32: "tw_to_f32", 64: "tw_to_f64"},
    bits_of={32: "tw_of_f32", 64: "tw_of_f64"},
    barrier="team->barrier(team->state, thread);",
    unroll="#pragma GCC unroll {}",
    inline="static inline",
    helpers=HELPERS | _HELPERS,
)
