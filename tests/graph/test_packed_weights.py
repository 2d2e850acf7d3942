"""Models whose weights are spelled by DequantizeLinear, as engines that keep these packed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.runtime.machine.host import host_target

K, N, BLOCK = 160, 96, 32
KINDS = {"INT4": (-8, 8), "UINT4": (0, 16), "INT8": (-128, 128)}
pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.isa,
    pytest.mark.skipif(host_target().isa == "scalar", reason="nothing is packed without vectors"),
]


def network(kind: str, rows: int | str, *, blocked: bool = True) -> onnx.ModelProto:
    """A product whose weights are levels of a type, in blocks or by columns, and a bias."""
    rng, number = np.random.default_rng(0), TensorProto.DataType.Value(kind)
    w = helper.make_tensor("w", number, (K, N), rng.integers(*KINDS[kind], K * N))
    shape = (K // BLOCK, N) if blocked else (N,)
    scales = rng.uniform(0.01, 0.1, shape).astype(np.float32)
    zeros = helper.make_tensor("z", number, shape, rng.integers(0, 8, scales.size))
    where = {"axis": 0, "block_size": BLOCK} if blocked else {"axis": 1}
    bias = rng.standard_normal(N, np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"], **where),
        helper.make_node("MatMul", ["x", "real"], ["product"]),
        helper.make_node("Add", ["product", "b"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "packed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, K))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (rows, N))],
        [w, numpy_helper.from_array(scales, "s"), zeros, numpy_helper.from_array(bias, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def data(rows: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.random.default_rng(rows).standard_normal((rows, K), np.float32)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("blocked", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_a_file_stay_packed_in_memory(kind: str, blocked: bool, rows: int) -> None:
    model, x = network(kind, rows, blocked=blocked), data(rows)
    engine = tw.compile(model, cache=False)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert np.abs(engine(x) - expected).max() <= 1e-5 * np.abs(expected).max()
    packed = K * N // (2 if "4" in kind else 1)
    numbers = (K // BLOCK if blocked else 1) * N * (4 + 1) + N * 4  # scales, zeros, a bias
    assert engine.memory_plan.weights_bytes <= packed + numbers + 512  # each is aligned
    if not blocked:
        strict = tw.compile(model, strict=True, cache=False)
        assert strict.memory_plan.weights_bytes >= K * N * 4


def test_rows_that_a_call_decides() -> None:
    model = network("INT4", "rows")
    engine = tw.compile(model, shapes={"rows": (1, 8, 32)}, cache=False)
    assert engine.memory_plan.weights_bytes < K * N
    for rows in (1, 3, 32):
        (expected,) = ReferenceEvaluator(model).run(None, {"x": data(rows)})
        assert np.abs(engine(data(rows)) - expected).max() <= 1e-5 * np.abs(expected).max()
