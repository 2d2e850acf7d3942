"""graph/kernels/searched_scatter.py: on a GPU each element searches the updates for its own."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import emulated
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.kernels.algorithms import ALGORITHMS
from tilewright.graph.kernels.fused_kernel import FusedKernel, KernelOperand, KernelStep
from tilewright.graph.kernels.searched_scatter import (
    SearchedScatterElements,
    SearchedScatterND,
    as_search,
)
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.scattering import ScatterElements, ScatterND
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType
from tilewright.tir.target.target import Target

from ..cases import Case, model_of

X = TensorType("float32", (6, 5))
OPERANDS = (
    KernelOperand("x", X),
    KernelOperand("indices", TensorType("int64", (6, 3))),
    KernelOperand("updates", TensorType("float32", (6, 3))),
)


def kernel(op: Operator, *inputs: int) -> FusedKernel:
    return FusedKernel(OPERANDS, (KernelStep(op, inputs), KernelStep(Relu(), (3,))))


def test_scatters_become_searches_with_all_that_they_say() -> None:
    found = as_search(kernel(ScatterElements("max", 1), 0, 1, 2))
    assert found is not None
    assert found.steps[0] == KernelStep(SearchedScatterElements("max", 1), (0, 1, 2))
    assert found.steps[1] == KernelStep(Relu(), (3,))
    found = as_search(kernel(ScatterND("add"), 0, 1, 2))
    assert found is not None
    assert found.steps[0].op == SearchedScatterND("add")
    assert as_search(found) is None
    assert as_search(FusedKernel(OPERANDS[:1], (KernelStep(Relu(), (0,)),))) is None


def test_it_is_for_gpus_alone() -> None:
    fused, algorithm = kernel(ScatterElements("add", 1), 0, 1, 2), ALGORITHMS["search"]
    assert algorithm.admit(fused, Target.parse("c:avx2"), False, None) is None
    assert algorithm.admit(fused, Target.parse("cuda:sm_90a"), True, None) is not None


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a"])
def test_a_gpu_that_is_emulated_gives_the_values(architecture: str) -> None:
    rng = np.random.default_rng(4)
    x, updates = (rng.integers(-9, 9, s).astype(np.float32) for s in ((6, 5), (6, 9)))
    places = rng.integers(-5, 5, (6, 9))
    cases = [
        Case("ScatterElements", (x, places, updates), {"axis": 1, "reduction": "add"}, (18,)),
        Case("ScatterND", (x, rng.integers(-6, 6, (4, 1)), updates[:4, :5].copy()), {}, (18,)),
    ]
    model, feeds = model_of(cases, 18)
    graph = import_onnx(model)
    engine = compile(graph, f"cuda:{architecture}", cache=False)
    found, expected = emulated(engine).run(feeds), evaluate(graph, feeds, dtype=None)
    np.testing.assert_equal(found, expected)
