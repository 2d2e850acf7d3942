"""Truth values over opsets, element types and broadcasting, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.ops.logic import And, Where
from tilewright.graph.types import Array, TensorType

from ..cases import Case, check_case, check_compiled


def truth(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).random(shape) < 0.5


def whole(seed: int, *shape: int, dtype: str = "int64") -> Array:
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(dtype)


COMPARISONS = {
    "Equal": (11, 13, 19),
    "Greater": (9, 13),
    "GreaterOrEqual": (12, 16),
    "Less": (9, 13),
    "LessOrEqual": (12, 16),
}
SHAPES = [((3, 5), (3, 5)), ((2, 3, 4), (3, 1)), ((), (3, 2)), ((), ()), ((0, 3), (1, 3))]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -7.0, np.nan], dtype=np.float32)
CASES = [
    *(
        Case(name, (whole(1, *a, dtype=kind), whole(2, *b, dtype=kind)), {}, opsets)
        for name, opsets in COMPARISONS.items()
        for a, b in SHAPES
        for kind in ("float32", "int64", "int32")
    ),
    *(Case(name, (SPECIAL, SPECIAL[::-1].copy()), {}, (16,)) for name in COMPARISONS),
    Case("IsInf", (SPECIAL,), {}, (10, 20)),
    Case("IsInf", (SPECIAL.astype("float64"),), {"detect_negative": 0}, (10, 20)),
    Case("IsInf", (SPECIAL,), {"detect_positive": 0}, (20,)),
    Case("IsInf", (SPECIAL,), {"detect_positive": 0, "detect_negative": 0}, (20,)),
    Case("Equal", (truth(1, 3, 5), truth(2, 5)), {}, (7, 11, 13)),
    Case("Equal", (whole(1, 3, 5), whole(2)), {}, (13,), (1,)),
    *(
        Case(name, (truth(1, *a), truth(2, *b)), {}, (7, 17))
        for name in ("And", "Or", "Xor")
        for a, b in SHAPES
    ),
    *(Case("Not", (truth(1, *shape),), {}, (7, 17)) for shape in [(3, 5), (), (0, 2)]),
    *(Case("IsNaN", (x,), {}, (9, 13, 20)) for x in (SPECIAL, SPECIAL.astype(np.float64))),
    *(
        Case(
            "Where", (truth(1, *c), whole(1, *a, dtype=kind), whole(2, *b, dtype=kind)), {}, (9, 16)
        )
        for c, a, b in [((3, 4), (3, 4), (3, 4)), ((2, 1, 4), (3, 1), ()), ((1,), (2, 3), (3,))]
        for kind in ("float32", "float64", "int64", "bool")
    ),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_truth_values_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_truth_values_agree() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 13])


def test_interpreted_truth_values_agree() -> None:
    check_compiled([case for case in CASES if max(case.opsets) >= 13], "python")


def test_numbers_are_no_truth_values() -> None:
    number, boolean = TensorType("int64", (2,)), TensorType("bool", (2,))
    with pytest.raises(ModelError) as caught:
        And().infer((boolean, number))
    assert str(caught.value) == "ModelError: And: expected bool, got int64. [op-bool]"
    with pytest.raises(ModelError) as caught:
        Where().infer((number, number, number))
    assert str(caught.value) == "ModelError: Where: expected bool, got int64. [op-bool]"
    with pytest.raises(ModelError) as caught:
        Where().infer((boolean, number, TensorType("int32", (2,))))
    assert str(caught.value) == (
        "ModelError: Where: inputs must have one element type, got int64[2], int32[2]. [op-dtypes]"
    )
