"""QuantizeLinear and DequantizeLinear against ONNX's reference, which the types of a scale and the
shapes of its parts decide.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, numpy_type

RNG = np.random.default_rng(4)
INTEGERS = ("uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2")
FLOATS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn")


def number(name: str) -> int:
    """ONNX's number of a type."""
    return int(helper.np_dtype_to_tensor_dtype(numpy_type(name)))


def numbers(*shape: int, dtype: str = "float32", size: float = 40) -> Array:
    """Normal numbers, halves among them, so that quotients by powers of two are ties."""
    drawn = np.rint(RNG.standard_normal(shape) * size) / 2
    return np.asarray(drawn).astype(numpy_type(dtype))


def scales(*shape: int, dtype: str = "float32") -> Array:
    return np.asarray(2.0 ** RNG.integers(-2, 3, shape)).astype(numpy_type(dtype))


def zeros(*shape: int, dtype: str) -> Array:
    low, high = (-2, 2) if not dtype.startswith("u") else (0, 4)
    return np.asarray(RNG.integers(low, high, shape)).astype(numpy_type(dtype))


def model_of(
    operator: str, inputs: tuple[Array, ...], opset: int, **attributes: int
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds = {f"x{n}": array for n, array in enumerate(inputs)}
    node = helper.make_node(operator, list(feeds), ["y"], **attributes)
    declared = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for k, v in feeds.items()
    ]
    graph = helper.make_graph([node], "one", declared, [onnx.ValueInfoProto(name="y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), feeds


def check(
    operator: str,
    inputs: tuple[Array, ...],
    opset: int = 25,
    *,
    compiled: bool = False,
    **attributes: int,
) -> None:
    """One node gives what ONNX's reference does."""
    model, feeds = model_of(operator, inputs, opset, **attributes)
    judge, _ = model_of(operator, inputs, max(opset, 19), **attributes)  # the first that it knows
    with np.errstate(all="ignore"):
        (wanted,) = ReferenceEvaluator(judge).run(None, feeds)
    got = [evaluate(import_onnx(model), feeds, dtype=None)["y"]]
    if compiled:
        got.append(compile(model, cache=False).run(feeds)["y"])
    for one in got:
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(one.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("name", [*INTEGERS, *FLOATS])
def test_each_type_is_quantized_and_back(name: str) -> None:
    integer = name in INTEGERS
    for shape, scale in (
        ((3, 4, 5), ()),
        ((3, 4, 5), (4,)),
        ((7,), (1,)),
        ((0, 4), (4,)),
        ((), ()),
    ):
        zero = zeros(*scale, dtype=name) if integer else np.zeros(scale, numpy_type(name))
        x, s = numbers(*shape), scales(*scale)
        check("QuantizeLinear", (x, s, zero))
        q = np.resize(np.arange(256).astype(np.uint8), shape).astype(numpy_type(name))
        check("DequantizeLinear", (q, s, zero))
        check("DequantizeLinear", (q, s))


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25])
def test_every_version_is_read(opset: int) -> None:
    x, zero = numbers(2, 3, 4), zeros(3, dtype="int8")
    if opset == 10:
        check("QuantizeLinear", (x, scales(), zeros(dtype="int8")), opset)
        check("DequantizeLinear", (zeros(2, 3, dtype="uint8"), scales()), opset)
        return
    for axis in (1, -2):
        check("QuantizeLinear", (x, scales(3), zero), opset, axis=axis)
        check("DequantizeLinear", (x.astype(np.int8), scales(3), zero), opset, axis=axis)
    check("QuantizeLinear", (x, scales()), opset)  # uint8
    check("DequantizeLinear", (np.arange(-4, 4, dtype=np.int32) * 1000, scales()), opset)


@pytest.mark.parametrize("size", [12, 11, 9])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_blocks_have_a_scale_each(size: int, axis: int) -> None:
    """The last one may be shorter."""
    shape = [2, 3, 2]
    shape[axis] = size
    blocks = list(shape)
    blocks[axis] = -(-size // 4)
    x = numbers(*shape)
    check(
        "QuantizeLinear",
        (x, scales(*blocks), zeros(*blocks, dtype="int4")),
        axis=axis,
        block_size=4,
    )
    q = x.astype(np.int8)
    check(
        "DequantizeLinear",
        (q, scales(*blocks), zeros(*blocks, dtype="int8")),
        axis=axis,
        block_size=4,
    )


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_a_quotient_is_that_of_its_type(name: str) -> None:
    """Rounded to 16 bits before it is rounded to an integer, which may make a tie of it."""
    bits = np.arange(1 << 16, dtype=np.uint16).view(numpy_type(name))
    x = bits[np.abs(bits.astype(np.float32)) < 300].reshape(-1)
    for scale in (3.0, 0.7, 1.25):
        s = np.array(scale, numpy_type(name))
        check(
            "QuantizeLinear",
            (x, s, np.array(0, np.int8)),
            compiled=(name, scale) == ("float16", 3.0),
        )
        wide = x.astype(np.float32), s.astype(np.float32), np.array(0, np.int8)
        check("QuantizeLinear", wide, precision=number(name))


def test_what_a_result_is_may_be_said() -> None:
    x = numbers(3, 4)
    for name in (*INTEGERS, *FLOATS):
        check("QuantizeLinear", (x, scales()), output_dtype=number(name))
    for name in ("float16", "bfloat16", "float32"):
        q = x.astype(np.int8)
        check("DequantizeLinear", (q, scales()), output_dtype=number(name))
        check("DequantizeLinear", (q, scales(dtype=name)))


def test_a_float8_is_saturated_or_not() -> None:
    x = np.array([0, 1e5, -1e5, np.inf, -np.inf, np.nan, 448, 464, 465, 0.1], np.float32)
    for name in FLOATS[:-1]:
        for saturate in (0, 1):
            check("QuantizeLinear", (x, scales()), output_dtype=number(name), saturate=saturate)


@pytest.mark.needs_cc
def test_engines_quantize_as_onnx_does() -> None:
    shape, blocks = (3, 10, 4), (3, 3, 4)
    for name in ("uint4", "float8_e4m3fnuz"):
        zero = np.zeros(blocks, numpy_type(name))
        inputs = (numbers(*shape), scales(*blocks), zero)
        check("QuantizeLinear", inputs, compiled=True, axis=1, block_size=4)
        q = np.resize(np.arange(16), shape).astype(numpy_type(name))
        check("DequantizeLinear", (q, *inputs[1:]), compiled=True, axis=1, block_size=4)


def test_what_does_not_fit_is_refused() -> None:
    def refusal(operator: str, *inputs: Array, **attributes: int) -> str:
        with pytest.raises(ModelError) as caught:
            import_onnx(model_of(operator, inputs, 25, **attributes)[0])
        return str(caught.value)

    x = numbers(3, 4)
    assert refusal("QuantizeLinear", x, scales(3)) == (
        "ModelError: model: node 'y' (QuantizeLinear) has float32[3] for float32[3, 4] along axis "
        "1; expected one number, one for each element of the axis, or one for each block. "
        "[onnx-quantized-shape]"
    )
    assert "axis 1 in blocks of 3; expected" in refusal(
        "QuantizeLinear", x, scales(3, 3), block_size=3
    )
    zero = zeros(dtype="int8")
    assert refusal("QuantizeLinear", x, scales(), zero, output_dtype=TensorProto.UINT8) == (
        "ModelError: model: node 'y' (QuantizeLinear) gives uint8, and its zero point is int8; "
        "expected one type. [onnx-quantized-type]"
    )
    assert "it converts to float6e2m3, whose elements lie across bytes; known" in refusal(
        "QuantizeLinear", x, scales(), output_dtype=TensorProto.FLOAT6E2M3
    )
