"""Operators whose inputs may have several element types, and integers where floats are usual."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.onnx_reference import Attribute, agree, model_of
from tilewright.graph.compile import compile
from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array


def drawn(seed: int, dtype: str, *shape: int) -> Array:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape).astype(dtype))


def whole(seed: int, dtype: str, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)


def computed(op: str, inputs: dict[str, Array], opset: int, **attributes: Attribute) -> Array:
    graph = import_onnx(model_of(op, inputs, opset=opset, **attributes))
    assert compile(graph, cache=False).verify()
    (y,) = evaluate(graph, inputs, dtype=None).values()
    return y


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("x", "scale", "mean"),
    [("float16", "float16", "float32"), ("float16", "float32", "float32"), ("float32",) * 3],
)
def test_a_normalisation_of_halves_may_have_wider_statistics(x: str, scale: str, mean: str) -> None:
    inputs = {
        "x": drawn(1, x, 2, 3, 4, 5),
        "scale": drawn(2, scale, 3),
        "shift": drawn(3, scale, 3),
        "mean": drawn(4, mean, 3),
        "variance": np.abs(drawn(5, mean, 3)) + np.asarray(0.5, mean),
    }
    got = computed("BatchNormalization", inputs, 15)
    data, *others = (array.astype(np.float64) for array in inputs.values())
    s, b, m, v = (array.reshape(3, 1, 1) for array in others)
    expected = (data - m) / np.sqrt(v + 1e-5) * s + b
    assert got.dtype == x
    np.testing.assert_allclose(got.astype(np.float64), expected, atol=4e-3 if "16" in x else 1e-6)


@pytest.mark.needs_cc
@pytest.mark.parametrize(("x", "scale"), [("float16", "float32"), ("float32", "float16")])
def test_the_scale_of_an_rms_normalisation_says_the_type_of_the_result(x: str, scale: str) -> None:
    inputs = {"x": drawn(1, x, 3, 8), "scale": drawn(2, scale, 8)}
    got = computed("RMSNormalization", inputs, 23)
    data, factor = (array.astype(np.float64) for array in inputs.values())
    expected = data / np.sqrt(np.square(data).mean(-1, keepdims=True) + 1e-5) * factor
    assert got.dtype == scale
    np.testing.assert_allclose(got.astype(np.float64), expected, atol=4e-3)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("axes", [None, [0, -1]])
def test_data_are_less_their_mean_over_their_deviation(dtype: str, axes: list[int] | None) -> None:
    x = drawn(1, dtype, 2, 3, 4, 5)
    given: dict[str, Attribute] = {} if axes is None else {"axes": axes}
    got = computed("MeanVarianceNormalization", {"x": x}, 13, **given)
    where = (0, 2, 3) if axes is None else (0, 3)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(where, keepdims=True)) / wide.std(where, keepdims=True)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, atol=1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("dtype", ["int32", "uint64"])
@pytest.mark.parametrize("turned", [(0, 0), (1, 1)])
def test_a_product_of_integers_with_a_sum(dtype: str, turned: tuple[int, int]) -> None:
    a, b, c = whole(1, dtype, 3, 4), whole(2, dtype, 4, 5), whole(3, dtype, 5)
    given = (
        np.ascontiguousarray(m.T if turn else m) for m, turn in zip((a, b), turned, strict=True)
    )
    inputs = dict(zip("abc", (*given, c), strict=True))
    got = computed("Gemm", inputs, 13, transA=turned[0], transB=turned[1])
    np.testing.assert_array_equal(got, a @ b + c)
    del inputs["c"]
    np.testing.assert_array_equal(
        computed("Gemm", inputs, 13, transA=turned[0], transB=turned[1]), a @ b
    )


def test_a_product_of_integers_takes_no_factors() -> None:
    inputs = {"a": whole(1, "int32", 3, 4), "b": whole(2, "int32", 4, 5)}
    with pytest.raises(UnsupportedOperator, match=r"alpha is 0.5 and beta 1, of integers"):
        import_onnx(model_of("Gemm", inputs, opset=13, alpha=0.5))


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_a_mean_of_integers_rounds_towards_zero(dtype: str) -> None:
    x = whole(1, dtype, 4, 7)
    if dtype.startswith("int"):
        x -= np.asarray(60, dtype)
    got = computed("ReduceMean", {"x": x}, 13, axes=[1], keepdims=0)
    np.testing.assert_array_equal(got, np.trunc(x.sum(1) / 7).astype(dtype))
    none = np.zeros((2, 0), dtype)
    np.testing.assert_array_equal(computed("ReduceMean", {"x": none}, 13, axes=[1]), [[0], [0]])


@pytest.mark.needs_cc
@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_false_is_less_than_true(op: str) -> None:
    x = whole(1, "int32", 6, 3) > 45
    inputs = {"x": x, "axes": np.array([1])}
    agree(op, inputs, opset=20, constants=("axes",), tolerance=0, engine=True)
