"""Measuring an expansion: dense samples, evaluated on whole arrays, against a wider type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tilewright.codegen.lower.math.expand import expand_call
from tilewright.tir.dtype import dtype
from tilewright.tir.expr import Call, Expr, Var, const
from tilewright.tir.intrinsics import by_name
from tilewright.tir.reference.array_expr import evaluate_expr

Wide = np.longdouble
HAS_WIDE = np.finfo(np.longdouble).nmant > 60


@dataclass(frozen=True)
class Expansion:
    """A call in arithmetic, with fused multiply-add and without, as a function of arrays."""

    variables: tuple[Var, ...]
    expr: Expr
    unfused: Expr

    def __call__(self, *arrays: np.ndarray, fused: bool = True) -> np.ndarray:
        values = dict(zip(self.variables, arrays, strict=True))
        result = evaluate_expr(self.expr if fused else self.unfused, values)
        return np.broadcast_to(result, arrays[0].shape)


Expand = Callable[..., Expansion]
Measure = Callable[[np.ndarray, np.ndarray], float]


@pytest.fixture
def expand() -> Expand:
    """expand(name, type, exponent=None): the expansion of a function, a fixed exponent or not."""

    def make(name: str, kind: str, exponent: float | None = None) -> Expansion:
        intrinsic = by_name(name)
        variables = tuple(Var(hint, dtype(kind)) for hint in "xy"[: intrinsic.arity])
        arguments: tuple[Expr, ...] = variables
        if exponent is not None:
            variables, arguments = variables[:1], (variables[0], const(exponent, kind))
        call = Call(intrinsic, arguments)
        return Expansion(variables, expand_call(call), expand_call(call, fused=False))

    return make


@pytest.fixture
def error_in_ulp() -> Measure:
    """error_in_ulp(result, exact): the largest error; `exact` in a wider type, all of it finite."""

    def measure(result: np.ndarray, exact: np.ndarray) -> float:
        ulp = np.spacing(np.abs(exact).astype(result.dtype)).astype(Wide)
        error = np.abs(result.astype(Wide) - exact.astype(Wide)) / ulp
        assert np.isfinite(error).all()
        return float(error.max())

    return measure


@pytest.fixture
def wider() -> Callable[[np.ndarray], np.ndarray]:
    """The same numbers in a type with more digits; skips where the machine has none."""

    def widen(x: np.ndarray) -> np.ndarray:
        if x.dtype == np.float32:
            return x.astype(np.float64)
        if not HAS_WIDE:
            pytest.skip("this machine has no float wider than float64")
        return x.astype(Wide)

    return widen
