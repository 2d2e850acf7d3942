"""tw.with_weights: products with the weights of few bits that a file holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.block_weights import BlockWeights, packed_levels
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.precision.blocks.stored_weights import StoredWeightsError, with_weights
from tilewright.graph.precision.blocks.weights import QuantizeError
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned

RNG = np.random.default_rng(0)
STEPS, COLUMNS, GROUP = 64, 24, 32
BLOCKS = STEPS // GROUP


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def stored(bits: int = 4, **others: Any) -> BlockWeights:
    levels = RNG.integers(0, 1 << bits, (COLUMNS, BLOCKS, GROUP)).astype(np.uint8)
    scales = (RNG.random((COLUMNS, BLOCKS)) / 10).astype(np.float16)
    return BlockWeights(
        (STEPS, COLUMNS), bits, GROUP, packed_levels(levels, bits), scales, **others
    )


def network(rows: int = 3, *, turned: bool = False) -> Graph:
    net = GraphBuilder("net")
    x = net.input("x", TensorType("float32", (rows, STEPS)))
    shape = (COLUMNS, STEPS) if turned else (STEPS, COLUMNS)
    w = net.constant("w", owned(normal(*shape)))
    if turned:
        net.add(Gemm(trans_b=True), x, w, net.constant("b", owned(normal(COLUMNS))), output="y")
    else:
        net.add(MatMul(), x, w, output="y", name="the_product")
    return net.finish(("y",))


KINDS = {
    "plain": lambda: stored(),
    "8 bits": lambda: stored(8),
    "zeros of bytes": lambda: stored(zeros=RNG.integers(0, 16, (COLUMNS, BLOCKS)).astype("uint8")),
    "zeros above bytes": lambda: stored(8, zeros=np.full((COLUMNS, BLOCKS), 256, np.int16)),
    "offsets": lambda: stored(offsets=normal(COLUMNS, BLOCKS)),
    "an order": lambda: stored(order=RNG.permutation(STEPS).astype(np.int32)),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_multiplies_with_what_the_weights_stand_for(name: str, turned: bool) -> None:
    weights, graph = KINDS[name](), network(turned=turned)
    made = with_weights(graph, {"w": weights})
    x = normal(3, STEPS)
    bias = np.asarray(graph.constants["b"]) if turned else 0
    expected = x.astype(np.float64) @ weights.dequantized() + bias
    found = evaluate(made, {"x": x})["y"]
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert "w" not in made.constants


@pytest.mark.needs_cc
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("name", ["offsets", "an order"])
def test_its_engine_does(name: str, rows: int) -> None:
    weights = KINDS[name]()
    engine = tw.compile(with_weights(network(rows), {"the_product": weights}))
    x = normal(rows, STEPS)
    expected = x.astype(np.float64) @ weights.dequantized()
    assert np.abs(engine(x) - expected).max() <= 1e-5 * np.abs(expected).max()
    assert engine.verify()


def refused(weights: dict[str, BlockWeights]) -> str:
    with pytest.raises(StoredWeightsError) as caught:
        with_weights(network(), weights)
    return str(caught.value)


def test_data_may_be_rounded_where_the_caller_says_so() -> None:
    for name, data in (("plain", "int8"), ("an order", "int8"), ("offsets", "")):
        made = with_weights(network(), {"w": KINDS[name]()}, data_type="int8")
        found = [node.op.data for node in made.nodes if isinstance(node.op, BlockMatMul)]
        assert found == [data]
    with pytest.raises(QuantizeError) as caught:
        with_weights(network(), {"w": stored()}, data_type="uint8")
    assert str(caught.value) == (
        "QuantizeError: with_weights: data_type='uint8'; expected 'float' or 'int8'. "
        "[quantize-data-type]"
    )


def test_what_does_not_fit_is_refused() -> None:
    assert refused({"v": stored()}) == (
        "StoredWeightsError: with_weights: 'v' is no product with constant weights, nor the "
        "weights of one; expected one of: 'the_product'. [stored-weights-name]"
    )
    levels, scales = np.zeros((8, 2, 16), np.uint8), np.zeros((8, 2), np.float32)
    assert refused({"w": BlockWeights((64, 8), 4, 32, levels, scales)}) == (
        "StoredWeightsError: with_weights: 'w' cannot multiply with weights [64, 8] of 4 bits in "
        "blocks of 32, 320 B: it multiplies with [64, 24]. [stored-weights-fit]\n"
        "  Hint: `dequantized()` gives the matrix in float32."
    )
    levels, scales = np.zeros((24, 32, 1), np.uint8), np.zeros((24, 32), np.float32)
    assert "a block is no number of whole words of 32 bits" in refused(
        {"w": BlockWeights((64, 24), 4, 2, levels, scales)}
    )
