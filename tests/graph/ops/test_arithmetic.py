"""Arithmetic over opsets, element types and broadcasting, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.driver.build import build
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.arithmetic import Div
from tilewright.graph.ops.whole_powers import PowInteger
from tilewright.graph.types import Array
from tilewright.tir.te import te

from ..cases import Case, check_case, check_compiled, expected_of, model_of

BINARY = {"Add": (7, 13, 14), "Sub": (7, 13, 14), "Mul": (7, 13, 14), "Div": (7, 13, 14)}
FOLDS = {"Sum": (8, 13), "Mean": (8, 13), "Max": (8, 12, 13), "Min": (8, 12, 13)}
SHAPES = [((2, 3, 4, 5), (3, 1, 1)), ((2, 1, 4), (3, 1)), ((), (3, 2)), ((), ()), ((0, 3), (1, 3))]


def normal(seed: int, *shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def whole(seed: int, *shape: int, dtype: str = "int64", least: int = -9) -> Array:
    return np.random.default_rng(seed).integers(least, 10, shape).astype(dtype)


def nonzero(seed: int, *shape: int, dtype: str = "int64", least: int = -9) -> Array:
    numbers = whole(seed, *shape, dtype=dtype, least=least)
    return np.where(numbers == 0, np.ones((), dtype), numbers)


def number(value: float, dtype: str = "float32") -> Array:
    return np.array(value, dtype=dtype)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -7.0, 1e15], dtype=np.float32)
CASES = [
    *(
        Case(operator, (normal(1, *a), normal(2, *b)), opsets=opsets)
        for operator, opsets in BINARY.items()
        for a, b in SHAPES
    ),
    *(Case(operator, (normal(1, 3, 4), normal(2, 4)), {}, (14,), (1,)) for operator in BINARY),
    *(Case(operator, (SPECIAL, SPECIAL[::-1].copy()), {}, (14,)) for operator in BINARY),
    *(
        Case(operator, (whole(1, 5, 7, dtype=kind), nonzero(2, 7, dtype=kind)), {}, (14,))
        for operator in BINARY
        for kind in ("int64", "int32", "int8")
    ),
    Case("Div", (whole(1, 5, 7, dtype="uint8", least=0), nonzero(2, 7, dtype="uint8", least=1))),
    Case("Div", (normal(1, 4, dtype="float64"), normal(2, 4, dtype="float64"))),
    *(
        Case(operator, tuple(normal(n, *s) for n, s in enumerate(shapes)), {}, opsets)
        for operator, opsets in FOLDS.items()
        for shapes in ([(3, 4)], [(2, 3, 4), (3, 1)], [(3, 4), (1,), (), (3, 1)], [(0, 2), (2,)])
    ),
    *(Case(name, (SPECIAL, SPECIAL[::-1].copy()), {}, (13,)) for name in ("Max", "Min")),
    *(Case(name, (whole(1, 3, 4), whole(2, 4)), {}, (13,)) for name in ("Max", "Min")),
    Case("Pow", (np.abs(normal(1, 3, 4)), normal(2, 4)), {}, (7, 13, 15)),
    Case("Pow", (normal(1, 3, 4), number(2)), {}, (7, 15), (1,)),
    Case("Pow", (normal(1, 3, 4), number(3, "int64")), {}, (12, 15), (1,)),
    Case("Pow", (normal(1, 3, 4), whole(2, 3, 1, dtype="int32")), {}, (15,)),
    Case("Pow", (normal(1, 3), normal(2, 3, dtype="float64") * 0 + 2), {}, (15,)),
    Case("Pow", (SPECIAL, number(2)), {}, (15,), (1,)),
    Case("Pow", (whole(1, 5, 7), whole(2, 7, least=0)), {}, (12, 15)),
    Case("Pow", (whole(1, 5, 7, dtype="int32"), whole(2, 7, least=0) % 8), {}, (15,)),
    Case("Pow", (whole(1, 5, 7), whole(2, 7, dtype="uint8", least=0)), {}, (15,)),
    Case("Pow", (whole(1, 3, 4, least=1), number(1.5)), {}, (15,), (1,)),
    Case("Pow", (whole(1, 3, 4, dtype="int32", least=1), normal(2, 4)), {}, (15,)),
    *(
        Case("Mod", (whole(1, 5, 7, dtype=kind), nonzero(2, 7, dtype=kind)), {"fmod": f}, (10, 13))
        for kind in ("int8", "int16", "int32", "int64")
        for f in (0, 1)
    ),
    Case("Mod", (whole(1, 5, 7, dtype="uint8", least=0), nonzero(2, 7, dtype="uint8", least=1))),
    *(
        Case("Mod", (9 * normal(1, 5, 7, dtype=kind), normal(2, 7, dtype=kind)), {"fmod": f}, (13,))
        for kind in ("float32", "float64")
        for f in (0, 1)
    ),
    *(Case("Mod", (SPECIAL, SPECIAL[::-1].copy()), {"fmod": f}, (13,)) for f in (0, 1)),
    Case("Mod", (SPECIAL, number(np.inf)), {"fmod": 1}, (13,)),
    Case("Sign", (SPECIAL,), {}, (9, 13)),
    *(Case("Sign", (whole(1, 5, dtype=kind),), {}, (13,)) for kind in ("int8", "int64")),
    Case("Sign", (whole(1, 5, dtype="uint8", least=0),), {}, (13,)),
    Case("Neg", (normal(1, 3, 4),), {}, (6 + 1, 13)),
    Case("Neg", (whole(1, 4, dtype="int32"),), {}, (13,)),
    Case("Neg", (SPECIAL,), {}, (13,)),
    Case("Reciprocal", (normal(1, 3, 4),), {}, (7, 13)),
    Case("Reciprocal", (SPECIAL,), {}, (13,)),
    Case("Clip", (SPECIAL,), {"min": -1.0, "max": 2.0}, (7,)),
    Case("Clip", (normal(1, 3, 4),), {"max": 0.5}, (10,)),
    Case("Clip", (SPECIAL, number(-1), number(2)), {}, (11, 12, 13), (1, 2)),
    Case("Clip", (normal(1, 3, 4), number(-0.5)), {}, (11, 13), (1,)),
    Case("Clip", (normal(1, 3, 4), None, number(0.5)), {}, (13,)),
    Case("Clip", (normal(1, 3, 4), number(0.5), number(-0.5)), {}, (13,)),
    Case("Clip", (whole(1, 3, 4), number(-2, "int64"), number(3, "int64")), {}, (12, 13), (1, 2)),
    Case("Clip", (normal(1, 3, 4),), {}, (13,)),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_arithmetic_agrees_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
@pytest.mark.isa
def test_compiled_arithmetic_agrees_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 12])


def test_interpreted_arithmetic_agrees_with_float64() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 12], "python")


def test_integers_are_divided_towards_zero_and_wrap() -> None:
    a = np.array([7, -7, 7, -7, 6, -6, 5, -128], dtype=np.int8)
    b = np.array([2, 2, -2, -2, 3, -3, 0, -1], dtype=np.int8)
    (quotient,) = Div().reference(a, b)
    assert quotient.dtype == np.int8
    assert quotient.tolist() == [3, -3, -3, 3, 2, 2, 0, -128]


def test_powers_of_integers_wrap_and_negative_ones_are_rounded_towards_zero() -> None:
    x = np.array([0, 1, -1, -1, 2, -3, 2, 2, 1, -1, 3], np.int64)
    n = np.array([0, -5, -3, -4, -1, -1, 63, 64, 10**9, 10**9 + 1, 41], np.int64)
    (power,) = PowInteger().reference(x, n)
    wrapped = (3**41 + 2**63) % 2**64 - 2**63
    assert power.tolist() == [1, 1, -1, 1, 0, 0, -(2**63), 0, 1, -1, wrapped]


@pytest.mark.needs_cc
def test_compiled_powers_of_integers_have_the_bits_of_the_reference() -> None:
    draw = np.random.default_rng(3)
    x, n = draw.integers(-9, 10, 500), draw.integers(-4, 80, 500)
    a, b = (te.placeholder(each.shape, "int64", name=m) for each, m in ((x, "a"), (n, "b")))
    kernel = build(te.func(a, b, *PowInteger().express(a, b, name="y"), name="f"))
    np.testing.assert_array_equal(kernel(x, n), PowInteger().reference(x, n)[0])


def test_clip_of_old_opsets_is_bounded_by_the_largest_float() -> None:
    model, feeds = model_of([Case("Clip", (SPECIAL,), {"min": 0.0})], 10)
    (expected,) = expected_of(model, feeds)
    assert expected[1] == np.finfo(np.float32).max


def test_what_has_no_meaning_here_is_refused() -> None:
    exponent = whole(2, 3, dtype="uint64", least=0)
    model, _ = model_of([Case("Pow", (whole(1, 3), exponent))], 15)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert "the exponent is uint64[3]; known are integers that int64 has" in str(caught.value)
    model, _ = model_of([Case("Clip", (normal(1, 3), normal(2, 3)))], 13)
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    assert str(refused.value) == (
        "ModelError: model: node 'y0' (Clip) has the bound 'c0_x1' of type float32[3]; expected "
        "one element. [onnx-clip]"
    )
