"""Functions of angles and hyperbolic functions over opsets and special values, against ONNX's
reference.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ops.angles import Cos, Sin, Tan
from tilewright.graph.types import Array

from ..cases import Case, check_case, check_compiled


def between(least: float, most: float, *shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(1).uniform(least, most, shape).astype(dtype)


WIDE, UNIT = (-9.0, 9.0), (-1.0, 1.0)
FUNCTIONS = {
    "Sin": (7, *WIDE),
    "Cos": (7, *WIDE),
    "Tan": (7, -1.4, 1.4),
    "Asin": (7, *UNIT),
    "Acos": (7, *UNIT),
    "Atan": (7, *WIDE),
    "Sinh": (9, *WIDE),
    "Cosh": (9, *WIDE),
    "Asinh": (9, *WIDE),
    "Acosh": (9, 1.0, 90.0),
    "Atanh": (9, *UNIT),
}
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.3, 1.5, -1.5, 3, -3], np.float32)
CASES = [
    Case(name, (x,), {}, (first, 22))
    for name, (first, least, most) in FUNCTIONS.items()
    for x in (
        between(least, most, 3, 70),
        between(least, most, 40, dtype="float64"),
        between(least, most),
        between(least, most, 0, 2),
        SPECIAL,
    )
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_they_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_they_agree_with_float64() -> None:
    check_compiled(CASES)


def test_half_precision_is_computed_in_float32() -> None:
    cases = [
        Case(name, (between(least, most, 50, dtype="float16"),), {}, (22,))
        for name, (_, least, most) in FUNCTIONS.items()
    ]
    check_compiled(cases, "python", rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("op", [Sin(), Cos(), Tan()], ids=str)
def test_an_angle_beyond_what_the_language_takes_is_nan(op: Sin | Cos | Tan) -> None:
    (found,) = op.reference(np.array([32768.0, 32769.0, -1e9], np.float32))
    assert np.isnan(found).tolist() == [False, True, True]
