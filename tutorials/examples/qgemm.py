"""A quantised product of signed bytes, from the expression alone: the rule finds the instruction.

`vpdpbusd` multiplies unsigned by signed bytes. Signed data is stored 128 higher, and what that adds
to each column, 128 times the sum of its weights, depends on constants alone: it is computed once,
when the kernel is built. Bias, scale, rounding and limits run on the accumulators, which leave as
bytes.
"""

from __future__ import annotations

import numpy as np

from tilewright import PrimFunc, Schedule, te
from tilewright.schedule.rules.default import rule_for
from tilewright.tir.target.target import Target

TARGET = "c:avx512+vnni"
SMALL, REAL = (7, 37, 22), (1536, 1536, 1536)
OFFSET, SCALE = 128, 2.0**-9


def program(m: int, n: int, k: int) -> PrimFunc:
    """Y = round(((A - 128) B + bias) * scale) as int8, A stored 128 higher than meant."""
    a = te.placeholder((m, k), "uint8", name="A")
    b = te.placeholder((k, n), "int8", name="B", constant=True)
    bias = te.placeholder((n,), "int32", name="bias", constant=True)
    p, q = te.reduce_axis(k, name="p"), te.reduce_axis(k, name="q")
    sums = te.compute((n,), lambda j: te.sum(te.cast(b[p, j], "int32"), axis=p), name="sums")
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(te.cast(a[i, q], "int32") * te.cast(b[q, j], "int32"), axis=q),
        name="C",
    )

    def requantised(i: te.Expr, j: te.Expr) -> te.Expr:
        whole = bias[j] - sums[j] * OFFSET + c[i, j]
        real = te.cast(whole, "float32") * SCALE
        return te.cast(te.minimum(te.maximum(te.round(real), -128.0), 127.0), "int8")

    return te.func(a, b, bias, te.compute((m, n), requantised, name="Y"), name="qgemm")


def reference(a: np.ndarray, b: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """The same by NumPy."""
    real = ((a.astype(np.int32) - OFFSET) @ b.astype(np.int32) + bias) * np.float32(SCALE)
    return np.clip(np.round(real), -128, 127).astype(np.int8)


def by_rule(sch: Schedule) -> None:
    """What tw.build does with the expression by itself."""
    target = Target.parse(TARGET)
    rule_for(sch.func, target).apply(sch, target)


SCHEDULES = {"by rule": by_rule}
