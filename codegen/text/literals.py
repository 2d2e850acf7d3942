"""Constants: every number is written so that the compiler reads back the same bits."""

from __future__ import annotations

import math

import numpy as np

from ...tir.expr import Const
from .dialect import Dialect


def literal(constant: Const, dialect: Dialect) -> str:
    """The text of a scalar constant."""
    if constant.type.is_storage:
        return hex(_bits(constant))
    if constant.type.is_float:
        return float_literal(float(constant.value), constant.type.bits, dialect)
    value = int(constant.value)
    if constant.type.is_integer and constant.type.bits == 64:
        if constant.type.kind.value == "uint" and value >= 1 << 63:
            return f"{value}u"
        return dialect.smallest[64] if value == -(1 << 63) else str(value)
    return dialect.smallest[32] if value == -(1 << 31) else str(value)


def _bits(constant: Const) -> int:
    """The bits of a constant of a storage type."""
    kind = constant.type.numpy
    return int(np.asarray(constant.value, kind).view(f"u{kind.itemsize}"))


def float_literal(value: float, bits: int, dialect: Dialect) -> str:
    """A float as the shortest decimal that is read back as the same bits."""
    if math.isnan(value):
        return dialect.nan[bits]
    if math.isinf(value):
        return dialect.infinity[bits] if value > 0 else f"-{dialect.infinity[bits]}"
    single = bits == 32
    number = np.float32(value) if single else np.float64(value)
    text = np.format_float_positional(number, unique=True, trim="0")
    if len(text) > 16:
        text = np.format_float_scientific(number, unique=True, trim="0")
    return f"{text}f" if single else text
