"""A network that torchao quantised: products of bytes, and what PyTorch computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul
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
