"""Operators on bits over element types, against ONNX's reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.isas import HERE
from tilewright import emulated
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ops.bits import BitCast, BitwiseNot
from tilewright.graph.ops.functions import Sqrt
from tilewright.graph.reference.reference import evaluate
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


OF_FLOATS = [
    ("float32", "int32"),
    ("float64", "uint64"),
    ("uint32", "float32"),
    ("int64", "float64"),
]


def bit_cast(source: str, to: str) -> Case:
    x = np.random.default_rng(6).standard_normal((5, 21))
    kind = source if source.startswith("float") else to
    bits = x.astype(kind).view(source)
    return Case("BitCast", (bits,), {"to": helper.np_dtype_to_tensor_dtype(np.dtype(to))}, (26,))


@pytest.mark.parametrize(("source", "to"), OF_FLOATS)
def test_the_bits_of_a_float_are_an_integer(source: str, to: str) -> None:
    check_case(bit_cast(source, to))


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", ["python", *HERE])
def test_compiled_bits_are_the_same(target: str) -> None:
    cases = [bit_cast(source, to) for source, to in OF_FLOATS]
    check_compiled(cases, target, rtol=0, atol=0)


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_a_gpu_that_is_emulated_gives_them() -> None:
    model, feeds = model_of([bit_cast(source, to) for source, to in OF_FLOATS], 26)
    graph = import_onnx(model)
    found = emulated(compile(graph, "cuda:sm_90a", cache=False)).run(feeds)
    expected = evaluate(graph, feeds, dtype=None)
    np.testing.assert_equal(found, expected)


@pytest.mark.needs_cc
def test_bits_of_what_a_kernel_computes_are_taken_there() -> None:
    """The root of a power of 4 has no rounding; others may differ in their last bit."""
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (40,)))
    bits = builder.add(BitCast(), builder.add(Sqrt(), x))
    builder.add(BitCast("int32", "float32"), bits, output="y")
    engine = compile(builder.finish(("y",)), cache=False)
    assert engine.verify()
    given = (4.0 ** np.arange(-20, 20)).astype(np.float32)
    np.testing.assert_array_equal(engine.run({"x": given})["y"], np.sqrt(given))


@pytest.mark.parametrize(
    ("source", "to"), [("float16", TensorProto.INT16), ("int8", TensorProto.BOOL)]
)
def test_the_bits_of_others_are_refused(source: str, to: int) -> None:
    model, _ = model_of([Case("BitCast", (np.zeros(3, source),), {"to": to})], 26)
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    reason = "known are integers of one width, and floats of 32 and 64 bits"
    assert reason in str(caught.value)
    with pytest.raises(ModelError) as refused:
        BitCast("float32", "int64").infer((TensorType("float32", (3,)),))
    assert str(refused.value) == (
        "ModelError: BitCast: expected float32 of 4 or 8 bytes, as int64 has, got float32[3]. "
        "[bit-cast]"
    )


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
