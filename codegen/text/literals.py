"""C types and constants: every number is written so that the compiler reads back the same bits."""

from __future__ import annotations

import math

import numpy as np

from ...tir.dtype import DType
from ...tir.expr import Const

_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"}
_BITS = {8: "uint8_t", 16: "uint16_t"}


def c_type(dtype: DType) -> str:
    """The C type of one element in memory; of a storage type, that of its bits."""
    if dtype.is_storage:
        return _BITS[8 * dtype.bytes]
    return _TYPES.get(str(dtype.scalar), f"{dtype.scalar}_t")


def literal(constant: Const) -> str:
    """The C text of a scalar constant."""
    if constant.type.is_storage:
        return hex(_bits(constant))
    if constant.type.is_float:
        return float_literal(float(constant.value), constant.type)
    value = int(constant.value)
    if constant.type.is_integer and constant.type.bits == 64:
        if constant.type.kind.value == "uint" and value >= 1 << 63:
            return f"{value}u"
        return "INT64_MIN" if value == -(1 << 63) else str(value)
    return "INT32_MIN" if value == -(1 << 31) else str(value)


def _bits(constant: Const) -> int:
    """The bits of a constant of a storage type."""
    kind = constant.type.numpy
    return int(np.asarray(constant.value, kind).view(f"u{kind.itemsize}"))


def float_literal(value: float, dtype: DType) -> str:
    """A float as the shortest decimal that is read back as the same bits."""
    single = dtype.bits == 32
    if math.isnan(value):
        return '__builtin_nanf("")' if single else '__builtin_nan("")'
    if math.isinf(value):
        text = "__builtin_inff()" if single else "__builtin_inf()"
        return text if value > 0 else f"-{text}"
    number = np.float32(value) if single else np.float64(value)
    text = np.format_float_positional(number, unique=True, trim="0")
    if len(text) > 16:
        text = np.format_float_scientific(number, unique=True, trim="0")
    return f"{text}f" if single else text
