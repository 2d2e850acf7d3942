"""MatMulInteger and ConvInteger, exact, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graph.onnx_reference import agree, model_of
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.convolution import Conv, IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array


def drawn(seed: int, dtype: str, *shape: int) -> Array:
    kind = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(kind.min, kind.max + 1, shape)
    return np.asarray(found).astype(dtype)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("a", "b", "zeros"),
    [
        ((3, 300), (300, 5), ()),
        ((3, 4), (4, 5), ((), ())),
        ((3, 4), (4, 5), ((1,), (5,))),
        ((2, 3, 4), (2, 4, 5), ((2, 3, 1), (2, 1, 5))),
    ],
)
def test_products_are_exact(
    a: tuple[int, ...], b: tuple[int, ...], zeros: tuple[tuple[int, ...], ...]
) -> None:
    inputs = {"a": drawn(1, "uint8", *a), "b": drawn(2, "int8", *b)}
    for name, dtype, shape in zip(("p", "q"), ("uint8", "int8"), zeros, strict=False):
        inputs[name] = np.asarray(drawn(3, dtype, *shape))
    agree("MatMulInteger", inputs, opset=10, tolerance=0, engine=True)


@pytest.mark.parametrize("a", ["int8", "uint8"])
@pytest.mark.parametrize("b", ["int8", "uint8"])
def test_bytes_with_and_without_sign_are_multiplied(a: str, b: str) -> None:
    inputs = {"a": drawn(1, a, 2, 3, 4), "b": drawn(2, b, 4, 5)}
    agree("MatMulInteger", inputs, opset=10, tolerance=0)
    zeros = {"p": drawn(3, a), "q": drawn(4, b)}
    agree("MatMulInteger", inputs | zeros, opset=10, tolerance=0)
    agree("MatMulInteger", inputs | zeros, opset=10, constants=("b", "p", "q"), tolerance=0)


@pytest.mark.parametrize("a", ["int8", "uint8"])
@pytest.mark.parametrize("zeros", ["pq", "p", ""])
def test_bytes_meet_constants_as_processors_multiply_them(a: str, zeros: str) -> None:
    """uint8 by int8, with no zero points in the product, as the first node of a model, too."""
    inputs = {"a": drawn(1, a, 3, 8), "b": drawn(2, "int8", 8, 5)}
    inputs |= {name: np.array(3, kind) for name, kind in zip("pq", (a, "int8"), strict=True)}
    inputs = {name: value for name, value in inputs.items() if name in "ab" + zeros}
    graph = import_onnx(model_of("MatMulInteger", inputs, opset=10, constants=tuple("b" + zeros)))
    (product,) = (node for node in graph.nodes if isinstance(node.op, IntegerMatMul))
    assert product.op == IntegerMatMul()
    assert [graph.types[value].dtype for value in product.inputs] == ["uint8", "int8"]


def test_each_row_may_have_its_zero_point() -> None:
    """As ONNX says; its reference evaluator takes no such list."""
    a, b = drawn(1, "uint8", 3, 4), drawn(2, "uint8", 4, 5)
    inputs = {"a": a, "b": b, "p": drawn(3, "uint8", 3)}
    graph = import_onnx(model_of("MatMulInteger", inputs, opset=10))
    (y,) = evaluate(graph, inputs, dtype=None).values()
    rows = a.astype(np.int32) - inputs["p"].astype(np.int32).reshape(3, 1)
    np.testing.assert_array_equal(y, rows @ b.astype(np.int32))


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("groups", [1, 2])
def test_convolutions_are_exact(dtype: str, groups: int) -> None:
    x, w = drawn(1, "uint8", 2, 4, 7, 6), drawn(2, dtype, 6, 4 // groups, 3, 3)
    inputs = {"x": x, "w": w, "p": np.array(13, np.uint8), "q": np.array(2, dtype)}
    names = ("w", "p", "q")
    settings = {"pads": [1, 1, 1, 1], "strides": [2, 1]}
    agree(
        "ConvInteger",
        inputs,
        opset=10,
        constants=names,
        tolerance=0,
        engine=True,
        group=groups,
        **settings,
    )
    small = {"x": x, "w": w[..., :1, :1]}
    agree("ConvInteger", small, opset=10, constants=("w",), tolerance=0, engine=True, group=groups)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("zeros", ["p", "q", "pq", ""])
@pytest.mark.parametrize("groups", [1, 2])
def test_windows_are_sums_of_bytes_whoever_knows_their_zero_points(
    dtype: str, zeros: str, groups: int
) -> None:
    """Where a run decides what stands for 0, the weights on padding are known to count nothing."""
    inputs = {
        "x": drawn(1, dtype, 2, 3 * groups, 9, 8),
        "w": drawn(2, "int8", 4 * groups, 3, 3, 2),
        "p": drawn(3, dtype) if "p" in zeros else np.array(0, dtype),
        "q": drawn(4, "int8", 4 * groups) if "q" in zeros else np.zeros(4 * groups, np.int8),
    }
    settings = {"pads": [1, 0, 2, 1], "strides": [2, 1], "dilations": [1, 2], "group": groups}
    image = inputs["x"].astype(np.int32) - inputs["p"].astype(np.int32)
    weights = inputs["w"].astype(np.int32) - inputs["q"].astype(np.int32).reshape(-1, 1, 1, 1)
    (expected,) = Conv((2, 1), (1, 0, 2, 1), (1, 2), groups).reference(image, weights)
    for constants in (("w", "p", "q"), ("q",), ()):
        model = model_of("ConvInteger", inputs, opset=10, constants=constants, **settings)
        graph = import_onnx(model)
        kinds = {type(node.op) for node in graph.nodes}
        assert IntegerConv in kinds
        assert Conv not in kinds
        feeds = {name: inputs[name] for name in graph.inputs}
        (found,) = evaluate(graph, feeds, dtype=None).values()
        np.testing.assert_array_equal(found, expected)


def test_zero_points_that_do_not_fit_are_refused(refused_node: Callable[..., str]) -> None:
    inputs = {
        "a": drawn(1, "uint8", 3, 4),
        "b": drawn(2, "uint8", 4, 5),
        "p": drawn(3, "uint8", 2),
    }
    assert refused_node("MatMulInteger", inputs, opset=10) == (
        "ModelError: model: node 'the_node' (MatMulInteger) has zero points uint8[2] for "
        "uint8[3, 4]; expected one, or one for each element of axis 0. [onnx-zero-points]"
    )
