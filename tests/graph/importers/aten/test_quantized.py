"""Networks that torchao quantised: products of bytes, packed weights, and what PyTorch computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import Gemm, IntegerMatMul, MatMul
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

MODELS = Path(__file__).parent / "models"
STEP = 0.0024  # of the levels that the last product reads, about


@pytest.fixture(scope="module")
def data() -> tuple[Array, Array]:
    with np.load(MODELS / "pt2e.npz") as file:
        return file["x"], file["y"]


def test_all_products_are_of_bytes() -> None:
    graph, _ = optimise(import_pt2(MODELS / "pt2e.pt2"))
    kinds = [type(node.op) for node in graph.nodes]
    assert (kinds.count(IntegerConv), kinds.count(IntegerMatMul)) == (3, 1)


def test_it_computes_what_pytorch_does(data: tuple[Array, Array]) -> None:
    x, expected = data
    graph = import_pt2(MODELS / "pt2e.pt2")
    (found,) = evaluate(graph, {graph.inputs[0]: x}, dtype=None).values()
    np.testing.assert_allclose(found, expected, atol=STEP)


@pytest.mark.needs_cc
def test_its_engine_computes_what_pytorch_does(data: tuple[Array, Array]) -> None:
    x, expected = data
    np.testing.assert_allclose(tw.compile(MODELS / "pt2e.pt2")(x), expected, atol=STEP)


PRODUCTS = {"w4": BlockMatMul(4, 32), "w8": BlockMatMul(8, 96), "a8w4": BlockMatMul(4, 32)}


def _optimised(name: str) -> Graph:
    graph, reports = optimise(import_pt2(MODELS / f"ao_{name}.pt2"))
    assert not [report for report in reports if report.verdict == "undone"]
    return graph


@pytest.mark.parametrize("name", PRODUCTS)
def test_weights_that_quantize_makes_stay_packed(name: str) -> None:
    ops = [node.op for node in _optimised(name).nodes]
    assert PRODUCTS[name] in ops
    assert not any(isinstance(op, MatMul | Gemm) for op in ops)


def test_products_of_bytes_whose_scales_a_run_finds() -> None:
    ops = [type(node.op) for node in _optimised("a8w8").nodes]
    assert ops.count(IntegerMatMul) == 2
    assert not {MatMul, Gemm} & set(ops)


@pytest.mark.parametrize("name", [*PRODUCTS, "a8w8"])
@pytest.mark.needs_cc
def test_engines_of_what_quantize_makes_compute_what_pytorch_does(name: str) -> None:
    engine = tw.compile(MODELS / f"ao_{name}.pt2", cache=False)
    with np.load(MODELS / "ao.npz") as file:
        x, expected = file["x"], file[name]
    for rows in (1, 3):
        np.testing.assert_allclose(engine(x[:rows]), expected[:rows], atol=2e-6)
