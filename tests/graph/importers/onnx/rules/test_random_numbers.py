"""Random operators: their distributions, what decides them, and that everybody draws the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.isas import HERE
from tilewright import emulated
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.explain import explain
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, numpy_type
from tilewright.tir.target.target import Target

COUNT = 40_000
FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16
Setting = int | float | list[int] | onnx.GraphProto


def node(operator: str, inputs: str, outputs: str, **settings: Setting) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), outputs.split(), **settings)


def model(
    *nodes: onnx.NodeProto, outputs: str = "y", opset: int = 22, **given: Array
) -> onnx.ModelProto:
    """A model of these nodes whose inputs have the types of these arrays."""
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in given.items()
    ]
    made = [onnx.ValueInfoProto(name=name) for name in outputs.split()]
    graph = helper.make_graph(nodes, "g", declared, made)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def drawn(*nodes: onnx.NodeProto, outputs: str = "y", opset: int = 22, **given: Array) -> Array:
    """The first output, by NumPy, before the passes and after them."""
    graph = import_onnx(model(*nodes, outputs=outputs, opset=opset, **given))
    found = evaluate(graph, given, dtype=None)
    after = evaluate(optimise(graph)[0], given, dtype=None)
    for name in outputs.split():
        np.testing.assert_array_equal(found[name], after[name])
    return found[outputs.split()[0]]


def distance(values: Array, distribution: Callable[[float], float]) -> float:
    """Of Kolmogorov and Smirnov, times the root of the number of values: seldom above 2."""
    expected = np.array([distribution(float(x)) for x in np.sort(values.reshape(-1))])
    places = np.arange(len(expected) + 1) / len(expected)
    apart = max((expected - places[:-1]).max(), (places[1:] - expected).max())
    return float(apart) * math.sqrt(len(expected))


def normal(x: float) -> float:
    return 0.5 * (1 + math.erf(x * math.sqrt(0.5)))


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, HALF])
def test_uniform_numbers_lie_evenly_between_their_ends(kind: int) -> None:
    values = drawn(node("RandomUniform", "", "y", shape=[COUNT], low=-2.0, high=3.0, dtype=kind))
    assert values.dtype == helper.tensor_dtype_to_np_dtype(kind)
    assert values.shape == (COUNT,)
    assert values.min() >= -2
    assert values.max() < 3 if kind != HALF else values.max() <= 3
    assert distance(values, lambda x: (x + 2) / 5) < 2
    assert np.corrcoef(values[1:], values[:-1])[0, 1] == pytest.approx(0, abs=0.02)


def test_a_uniform_number_of_0_to_1_is_never_1() -> None:
    for kind, bits in ((FLOAT, 24), (DOUBLE, 53), (HALF, 11)):
        values = drawn(node("RandomUniform", "", "y", shape=[COUNT], dtype=kind))
        whole = values.astype(np.float64) * 2.0**bits
        assert values.max() < 1
        np.testing.assert_array_equal(whole, np.round(whole))


@pytest.mark.parametrize("kind", [FLOAT, DOUBLE, HALF])
def test_normal_numbers_have_mean_scale_and_tails(kind: int) -> None:
    values = drawn(node("RandomNormal", "", "y", shape=[200, 200], mean=1.5, scale=2.0, dtype=kind))
    assert values.shape == (200, 200)
    standard = (values.astype(np.float64) - 1.5) / 2
    moments = [float(np.mean(standard**power)) for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.15)
    assert distance(standard, normal) < (2 if kind != HALF else 3)
    assert 3.3 < np.abs(standard).max() < 6.7


@pytest.mark.parametrize("opset", [7, 22])
def test_like_another_tensor_they_have_its_shape_and_type(opset: int) -> None:
    x = np.zeros((3, 1, 4))
    for operator in ("RandomNormalLike", "RandomUniformLike"):
        assert drawn(node(operator, "x", "y"), opset=opset, x=x).dtype == np.float64
        values = drawn(node(operator, "x", "y", dtype=FLOAT), opset=opset, x=x)
        assert (values.dtype, values.shape) == (np.dtype(np.float32), (3, 1, 4))


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_few_numbers_or_none(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    assert drawn(node("RandomNormalLike", "x", "y"), x=x).shape == shape


def test_a_seed_decides_and_without_one_the_name_of_the_output() -> None:
    made = model(
        node("RandomUniform", "", "a", shape=[100], seed=3.0),
        node("RandomUniform", "", "b", shape=[100], seed=3.0),
        node("RandomUniform", "", "c", shape=[100], seed=4.0),
        node("RandomUniform", "", "d", shape=[100]),
        node("RandomUniform", "", "e", shape=[100]),
        outputs="a b c d e",
    )
    first, again = (evaluate(import_onnx(made), {}, dtype=None) for _ in range(2))
    np.testing.assert_array_equal(first["a"], first["b"])
    np.testing.assert_equal(first, again)
    different = np.stack([first[name] for name in "acde"])
    assert np.abs(np.corrcoef(different) - np.eye(4)).max() < 0.4
    alone = drawn(node("RandomUniform", "", "d", shape=[100]), outputs="d")
    np.testing.assert_array_equal(alone, first["d"])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_bernoulli_gives_1_as_often_as_is_said(dtype: str) -> None:
    x = np.repeat(np.array([0, 0.25, 0.9, 1], numpy_type(dtype)), 10_000).reshape(4, 10_000)
    values = drawn(node("Bernoulli", "x", "y"), x=x)
    assert values.dtype == x.dtype
    np.testing.assert_allclose(
        values.astype(np.float64).mean(1), x[:, 0].astype(np.float64), atol=0.015
    )
    assert drawn(node("Bernoulli", "x", "y", dtype=TensorProto.BOOL), x=x).dtype == bool


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_multinomial_draws_classes_by_their_weights(dtype: str) -> None:
    shares = np.array([[0.1, 0, 0.6, 0.3, 0], [0, 0.5, 0, 0, 0.5]])
    with np.errstate(divide="ignore"):
        x = (np.log(shares) + 3).astype(numpy_type(dtype))
    values = drawn(node("Multinomial", "x", "y", sample_size=20_000), x=x)
    assert (values.dtype, values.shape) == (np.dtype(np.int32), (2, 20_000))
    counted = np.stack([np.bincount(row, minlength=5) for row in values]) / 20_000
    np.testing.assert_allclose(counted, shares, atol=0.015)
    assert not counted[shares == 0].any()
    wide = drawn(node("Multinomial", "x", "y", dtype=TensorProto.INT64), x=x)
    assert (wide.dtype, wide.shape) == (np.dtype(np.int64), (2, 1))
    single = np.zeros((3, 1), numpy_type(dtype))
    assert not drawn(node("Multinomial", "x", "y", sample_size=4), x=single).any()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dropout_in_training_drops_a_share_and_scales_the_rest(dtype: str) -> None:
    x = np.random.default_rng(1).uniform(1, 2, (50, 400)).astype(numpy_type(dtype))
    settings = {"ratio": np.array(0.3, np.float32), "train": np.array(True)}
    made = model(node("Dropout", "x ratio train", "y mask", seed=5), outputs="y mask", x=x)
    for name, array in settings.items():
        made.graph.initializer.append(numpy_helper.from_array(array, name))
    found = evaluate(import_onnx(made), {"x": x}, dtype=None)
    y, mask = found["y"], found["mask"]
    assert (y.dtype, y.shape, mask.dtype) == (x.dtype, x.shape, np.dtype(bool))
    assert mask.mean() == pytest.approx(0.7, abs=0.02)
    scaled = x.astype(np.float64) / 0.7
    rtol = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
    np.testing.assert_allclose(y.astype(np.float64), np.where(mask, scaled, 0), rtol=rtol)


def test_a_run_may_say_whether_dropout_trains() -> None:
    x = np.ones(1000, np.float32)
    made = node("Dropout", "x ratio train", "y mask", seed=5)
    for share, train, kept in ((0.5, True, 0.5), (0.5, False, 1), (0.0, True, 1), (1.0, True, 0)):
        given = {"x": x, "ratio": np.array(share, np.float32), "train": np.array(train)}
        values = drawn(made, outputs="y mask", **given)
        assert np.count_nonzero(values) == pytest.approx(1000 * kept, abs=60)
        assert set(values.tolist()) <= {0, 1 / max(kept, 0.5)}


@pytest.mark.parametrize(("opset", "dtype"), [(7, "float32"), (10, "bool"), (22, "bool")])
def test_without_training_the_mask_is_true(opset: int, dtype: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    settings = {} if opset == 22 else {"ratio": 0.4}
    made = node("Dropout", "x", "y mask", **settings)
    graph = import_onnx(model(made, outputs="y mask", opset=opset, x=x))
    found = evaluate(graph, {"x": x}, dtype=None)
    np.testing.assert_array_equal(found["y"], x)
    assert (found["mask"].dtype, found["mask"].tolist()) == (np.dtype(dtype), [[1] * 3] * 2)


def of_all(x: Array) -> onnx.ModelProto:
    return model(
        node("RandomNormal", "", "b", shape=[77]),
        node("RandomNormalLike", "x", "c", dtype=DOUBLE),
        node("Bernoulli", "x", "d"),
        node("Multinomial", "x", "e", sample_size=5),
        node("RandomUniformLike", "x", "f", dtype=DOUBLE),
        outputs="b c d e f",
        x=x,
    )


X = np.random.default_rng(2).uniform(0, 1, (7, 9)).astype(np.float32)


@pytest.mark.needs_cc
@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", ["python", *HERE])
def test_every_target_draws_the_same_in_every_run(target: str) -> None:
    engine = compile(of_all(X), target, cache=False)
    assert engine.verify()
    expected = evaluate(import_onnx(of_all(X)), {"x": X}, dtype=None)
    first, again = engine.run({"x": X}), engine.run({"x": X})
    np.testing.assert_equal(first, again)
    for name in "def":  # nothing rounds
        np.testing.assert_array_equal(first[name], expected[name])
    for name in "bc":
        np.testing.assert_allclose(first[name], expected[name], rtol=1e-5, atol=2e-6)


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_a_gpu_that_is_emulated_draws_them() -> None:
    graph = import_onnx(of_all(X))
    found = emulated(compile(graph, "cuda:sm_90a", cache=False)).run({"x": X})
    expected = evaluate(graph, {"x": X}, dtype=None)
    for name in "def":
        np.testing.assert_array_equal(found[name], expected[name])
    np.testing.assert_allclose(found["b"], expected["b"], rtol=1e-5, atol=2e-6)


def test_an_open_size_says_how_many() -> None:
    made = model(node("RandomNormalLike", "x", "y"), x=np.zeros((2, 3), np.float32))
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    graph = import_onnx(made, shapes={"n": (0, 4, 9)})
    longest = evaluate(graph, {"x": np.zeros((9, 3), np.float32)}, dtype=None)["y"]
    short = evaluate(graph, {"x": np.zeros((4, 3), np.float32)}, dtype=None)["y"]
    np.testing.assert_array_equal(longest[:4], short)


def test_the_report_says_that_runs_draw_the_same() -> None:
    planned = plan_model(import_onnx(of_all(X)), Target.parse("c:avx2"))
    said = "random numbers are the same in every run; noise that is new in each is an input"
    assert said in explain(planned)


def test_a_loop_that_draws_is_refused() -> None:
    body = helper.make_graph(
        [
            node("RandomUniform", "", "u", shape=[3]),
            node("Add", "a u", "b"),
            node("Identity", "c", "d"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, ()),
            helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("a", FLOAT, (3,)),
        ],
        [onnx.ValueInfoProto(name="d"), onnx.ValueInfoProto(name="b")],
    )
    x, n = np.zeros(3, np.float32), np.array(5)
    with pytest.raises(UnsupportedOperator) as refused:
        import_onnx(model(helper.make_node("Loop", ["n", "", "x"], ["y"], body=body), x=x, n=n))
    assert "its iterations would all draw the same random numbers" in str(refused.value)


def test_others_are_refused(golden: Callable[[str, str], None]) -> None:
    texts = []
    for made in (
        node("RandomNormal", "", "y", shape=[2], dtype=TensorProto.INT32),
        node("RandomNormalLike", "x", "y"),
        node("RandomUniform", "", "y", shape=[-2]),
        node("Multinomial", "x", "y"),
    ):
        with pytest.raises(ModelError) as refused:
            import_onnx(model(made, x=np.zeros(3, np.int32)))
        texts.append(str(refused.value))
    golden("errors/onnx_random.txt", "\n\n".join(texts))
