"""Models with weights of few bits for a GPU, without one: what stays packed in its memory, what the
emulation gives, and what the report says.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.driver import compile_ahead_cuda
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.types import TensorType
from tilewright.runtime.cuda.device import availability as availability_module
from tilewright.runtime.cuda.device.availability import Unavailable
from tilewright.runtime.engine.engine import Engine

from .test_packed_weights import KINDS, K, N, data, network

pytestmark = [pytest.mark.needs_cxx, pytest.mark.usefixtures("nvrtc")]

GPU = "cuda:sm_80"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compile_ahead_cuda, availability_module):
        monkeypatch.setattr(module, "availability", lambda: Unavailable("none here", "get one."))


def is_packed(engine: Engine, weights: int, bits: int) -> bool:
    """Whether device memory has so many weights in so many bits, and nothing is made of them."""
    stored = engine.memory_plan.weights_bytes <= weights * bits // 8 * 1.5 + 2048
    return stored and "prepare" not in engine.plan and engine.memory_plan.arena_bytes < weights


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", [GPU, "cuda:sm_90a"])
@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_a_file_stay_packed_in_device_memory(kind: str, rows: int, target: str) -> None:
    model, x = network(kind, rows), data(rows)
    engine = tw.compile(model, target, cache=False, verify="emulated")
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = tw.emulated(engine, checked=True)(x)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert is_packed(engine, K * N, 4 if "4" in kind else 8)
    report = engine.explain()
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert set(report.proofs) == {"proved"}
    assert report.whole.startswith("ok emulated")


def test_scales_of_columns_keep_bytes_packed_and_are_shared_by_threads() -> None:
    rng, steps = np.random.default_rng(0), 1024
    w = helper.make_tensor("w", TensorProto.INT8, (steps, 64), rng.integers(-128, 128, steps * 64))
    scales = rng.uniform(0.01, 0.1, 64).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["real"], axis=1),
        helper.make_node("MatMul", ["x", "real"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "columns",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, steps))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 64))],
        [w, numpy_helper.from_array(scales, "s")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    engine = tw.compile(model, GPU, cache=False, verify="emulated")
    x = rng.standard_normal((1, steps), np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = tw.emulated(engine)(x)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert is_packed(engine, steps * 64, 8)
    (kernel,) = engine.explain().kernels
    assert kernel.rule == "grid block rows"


def test_rows_that_a_call_decides() -> None:
    model = network("INT4", "rows")
    engine = tw.compile(model, GPU, shapes={"rows": (1, 8, 40)}, cache=False, verify="emulated")
    assert is_packed(engine, K * N, 4)
    run = tw.emulated(engine)
    for rows in (1, 3, 40):
        (expected,) = ReferenceEvaluator(model).run(None, {"x": data(rows)})
        found = run(data(rows))
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def perceptron(kind: str, rows: int) -> Graph:
    """Two products, a Relu between them."""
    rng, builder = np.random.default_rng(1), GraphBuilder("mlp")
    x = builder.input("x", TensorType(kind, (rows, 256)))
    w, v = (
        builder.constant(name, (rng.standard_normal(shape) / 16).astype(kind))
        for name, shape in (("w", (256, 96)), ("v", (96, 64)))
    )
    hidden = builder.add(Relu(), builder.add(MatMul(), x, w))
    return builder.finish((builder.add(MatMul(), hidden, v, output="y"),))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("rows", [2, 24])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_a_model_whose_weights_are_quantised(bits: int, rows: int, kind: str) -> None:
    model = tw.quantize_weights(perceptron(kind, rows), bits=bits, group=16, symmetric=False)
    engine = tw.compile(model, GPU, cache=False, verify="emulated")
    assert is_packed(engine, 256 * 96 + 96 * 64, bits + 4)  # of groups so short scales are much
    assert engine.explain().whole.startswith("ok emulated")
    assert tw.emulated(engine).verify()


def test_a_strict_engine_keeps_them_packed_and_sums_in_order() -> None:
    for rows in (2, 24):
        model = tw.quantize_weights(perceptron("float32", rows), bits=4, group=32)
        engine = tw.compile(model, GPU, cache=False, strict=True, verify="emulated")
        assert is_packed(engine, 256 * 96 + 96 * 64, 4)
        assert set(engine.explain().proofs) == {"proved"}


def test_the_report_says_which_rule_serves_which_product() -> None:
    few, many = (
        tw.compile(network("INT4", rows), GPU, cache=False, verify="off") for rows in (1, 40)
    )
    rules = [[kernel.rule for kernel in engine.explain().kernels] for engine in (few, many)]
    assert rules == [["grid block rows"], ["grid products"]]
    assert "pass GridBlockProducts: " in str(few.explain())


def test_data_that_may_be_rounded_stay_floats_and_the_report_says_why() -> None:
    model = tw.quantize_weights(perceptron("float32", 1), bits=4, group=32, data_type="int8")
    text = str(tw.compile(model, GPU, cache=False, verify="off").explain())
    assert "has no instruction that multiplies bytes in groups" in text
