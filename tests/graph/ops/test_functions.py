"""Functions of one number over opsets and special values, against ONNX's reference."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto

from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.functions import Cast, Erfc, Expm1, Log1p
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.te import te

from ..cases import Case, check_case, check_compiled, model_of


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


OPSETS = {
    "Abs": (7, 13),
    "Ceil": (7, 13),
    "Erf": (9, 13),
    "Exp": (7, 13),
    "Floor": (7, 13),
    "Log": (7, 13),
    "Round": (11, 22),
    "Sqrt": (7, 13),
    "Tanh": (7, 13),
}
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88, -88], dtype=np.float32
)
HALVES = np.arange(-6, 7).astype(np.float32).reshape(1, 13) / 2
TRUTH = np.array([[True, False, True]])
CASES = [
    *(
        Case(operator, (x,), {}, opsets)
        for operator, opsets in OPSETS.items()
        for x in (
            HALVES,
            SPECIAL,
            normal(3, 70),
            normal(4, dtype="float64"),
            normal(),
            normal(0, 2),
        )
    ),
    Case("Abs", (np.array([-3, 0, 5, -128], dtype=np.int8),), {}, (13,)),
    Case("Abs", (np.array([3, 0, 255], dtype=np.uint8),), {}, (13,)),
    *(
        Case("Cast", (x,), {"to": int(getattr(TensorProto, kind))}, (9, 13, 19, 21, 25))
        for x in (HALVES + 8, np.arange(-3, 4), np.arange(5, dtype=np.uint8), TRUTH)
        for kind in ("FLOAT", "DOUBLE", "INT64", "INT32", "INT8", "BOOL")
    ),
    Case("CastLike", (HALVES, np.arange(2)), {}, (15, 25)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_functions_agree_with_float64() -> None:
    check_compiled([case for case in CASES if case.operator != "Round"])
    check_compiled([case for case in CASES if case.operator == "Round"])


def test_interpreted_functions_agree_with_float64() -> None:
    check_compiled([case for case in CASES if case.operator != "Round"], "python")


def test_the_oracle_does_not_round_where_a_model_casts_to_floats() -> None:
    model, _ = model_of([Case("Cast", (np.zeros(1),), {"to": int(TensorProto.FLOAT)})], 21)
    x = np.array([1 / 3])
    assert evaluate(import_onnx(model), {"c0_x0": x})["y0"] == x
    assert evaluate(import_onnx(model), {"c0_x0": x}, dtype=None)["y0"] == np.float32(1 / 3)


def test_floats_are_cut_off_not_rounded() -> None:
    (y,) = Cast("int8").reference(np.array([1.9, -1.9, np.nan, 300.0, -np.inf]))
    assert y.tolist() == [1, -1, 0, 127, -128]


def test_a_cast_to_a_type_that_the_language_lacks_is_refused_by_name() -> None:
    model, _ = model_of([Case("Cast", (HALVES,), {"to": int(TensorProto.FLOAT8E8M0)})], 21)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert "it converts to float8e8m0, which has neither zero nor sign" in str(caught.value)


SMALL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e-30, 1e-8, 0.3, -0.3, 9, -9, 30])


@pytest.mark.parametrize(
    ("op", "function", "places"),
    [(Expm1(), math.expm1, 8), (Log1p(), math.log1p, 8), (Erfc(), math.erfc, 0)],
    ids=str,
)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_functions_that_keep_what_is_small(
    op: Expm1 | Log1p | Erfc, function: Callable[[float], float], places: int, kind: str
) -> None:
    """places: how many units in the last place they may be off; of Erfc as its docstring says."""
    array = SMALL[SMALL > -1] if isinstance(op, Log1p) else SMALL
    array = np.append(array, [np.nan]).astype(kind)
    wanted = np.array([function(number) for number in array.astype(float).tolist()])
    x = te.placeholder(array.shape, kind, name="x")
    (y,) = op.express(x, name="y")
    (found,) = interpret(te.func(x, y, name="f"), array)
    unit = np.finfo(kind).eps
    allowed = unit * (places or (8 + 2 * np.minimum(array.astype(float), 9) ** 2))
    least = 1e-37 if kind == "float32" else 0.0  # what is no normal number has fewer digits
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    with np.errstate(invalid="ignore"):  # of two that are infinite
        near = np.abs(found - wanted) <= allowed * np.abs(wanted) + least
    assert (near | np.isnan(wanted) | (found == wanted)).all()
    np.testing.assert_allclose(op.reference(array.astype(float))[0], wanted, rtol=1e-15)
