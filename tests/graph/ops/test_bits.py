"""Operators on bits over element types, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.bits import BitwiseNot
from tilewright.graph.types import Array, TensorType

from ..cases import Case, check_case, check_compiled, model_of

KINDS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def whole(seed: int, *shape: int, dtype: str) -> Array:
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max, shape, dtype, endpoint=True)


def counts(*shape: int, dtype: str) -> Array:
    bits = np.iinfo(dtype).bits
    return np.random.default_rng(9).integers(0, bits, shape).astype(dtype)


OUTSIDE = np.array([-1, -128, 8, 9, 127, 7, 0, 1], np.int8)
CASES = [
    *(
        Case(name, (whole(1, 2, 3, 4, dtype=kind), whole(2, 3, 1, dtype=kind)), {}, (18,))
        for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for kind in KINDS
    ),
    *(Case("BitwiseNot", (whole(3, 3, 4, dtype=kind),), {}, (18,)) for kind in KINDS),
    Case("BitwiseNot", (whole(3, 0, 4, dtype="int32"),), {}, (18,)),
    *(
        Case(
            "BitShift",
            (whole(4, 3, 5, dtype=kind), counts(5, dtype=kind)),
            {"direction": way},
            (11, 26) if kind.startswith("u") else (28,),
        )
        for way in ("LEFT", "RIGHT")
        for kind in KINDS
    ),
    *(
        Case("BitShift", (np.full(8, number, np.int8), OUTSIDE), {"direction": way}, (28,))
        for way in ("LEFT", "RIGHT")
        for number in (-5, 93)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_they_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_they_agree() -> None:
    check_compiled([case for case in CASES if max(case.opsets) <= 26], rtol=0, atol=0)
    check_compiled([case for case in CASES if max(case.opsets) == 28], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("source", "to"),
    [("uint8", "int8"), ("int32", "uint32"), ("uint64", "int64"), ("int16", "int16")],
)
def test_the_bits_of_an_integer_are_those_of_another(source: str, to: str) -> None:
    x = whole(5, 40, dtype=source)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    check_case(Case("BitCast", (x,), {"to": kind}, (26,)))


def test_the_bits_of_floats_are_refused() -> None:
    x = np.zeros(3, np.float32)
    model, _ = model_of([Case("BitCast", (x,), {"to": TensorProto.INT32})], 26)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    reason = "it gives the bits of float32 as int32; known are integers of one width"
    assert reason in str(caught.value)


def test_floats_and_unknown_directions_are_refused() -> None:
    with pytest.raises(ModelError) as refused:
        BitwiseNot().infer((TensorType("float32", (2,)),))
    assert str(refused.value) == (
        "ModelError: BitwiseNot: expected integers, got float32. [op-integer]"
    )
    x = whole(1, 3, dtype="int32")
    model, _ = model_of([Case("BitShift", (x, x), {"direction": "UP"})], 28)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert "direction is 'UP'" in str(caught.value)
