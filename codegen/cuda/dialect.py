"""CUDA C, as the emitter writes it: it needs no header."""

from __future__ import annotations

from ..text.dialect import Dialect
from ..text.functions import HELPERS

CUDA = Dialect(
    name="cuda",
    types={
        "bool": "unsigned char",
        "int8": "signed char",
        "int16": "short",
        "int32": "int",
        "int64": "long long",
        "uint8": "unsigned char",
        "uint16": "unsigned short",
        "uint32": "unsigned int",
        "uint64": "unsigned long long",
        "float32": "float",
        "float64": "double",
    },
    index="int",
    infinity={32: "__int_as_float(0x7f800000)", 64: "__longlong_as_double(0x7ff0000000000000)"},
    nan={32: "__int_as_float(0x7fc00000)", 64: "__longlong_as_double(0x7ff8000000000000)"},
    smallest={32: "(-2147483647 - 1)", 64: "(-9223372036854775807LL - 1)"},
    float_of={32: "__int_as_float", 64: "__longlong_as_double"},
    bits_of={32: "__float_as_int", 64: "__double_as_longlong"},
    barrier="__syncthreads();",
    unroll="#pragma unroll {}",
    inline="static __device__ __forceinline__",
    helpers=HELPERS,
)
