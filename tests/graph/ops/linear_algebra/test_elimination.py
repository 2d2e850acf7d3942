"""EliminationStep, of which loops make inverses: pivots, stacks, accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Contributed,
    check_contributed,
    model_of,
    random,
    refusal,
)
from tilewright import emulated
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.linear_algebra.elimination import EliminationStep
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType


def inverse(*x: Array) -> list[Contributed]:
    return [Contributed("Inverse", (array,)) for array in x]


@pytest.mark.needs_cc
def test_inverses_are_those_of_onnxruntime() -> None:
    swapped = np.array([[0, 2, 1], [3, 0, 0], [0, 0, 5]], np.float64)
    check_contributed(
        *inverse(random(1, 4, 4), random(2, 2, 3, 5, 5, dtype="float64"), swapped, random(3, 1, 1)),
        engine=True,
    )
    check_contributed(*inverse(random(4, 3, 4, 4, dtype="float16")), rtol=2e-3, atol=2e-3)


def test_empty_stacks_stay_so() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        graph = import_onnx(model_of(inverse(np.zeros(shape, np.float32))))
        (y,) = evaluate(graph, {"n0_x0": np.zeros(shape, np.float32)}, dtype=None).values()
        assert y.shape == shape


@pytest.mark.needs_cc
def test_the_error_is_that_of_a_stable_elimination() -> None:
    """Within n times the condition number roundings of the largest element, as NumPy's is."""
    for dtype in ("float32", "float64"):
        x = random(5, 4, 40, 40, dtype=dtype)
        graph = import_onnx(model_of(inverse(x)))
        y = compile(graph, cache=False).run({"n0_x0": x})["n0_y0"]
        wide = x.astype(np.float64)
        exact = np.linalg.inv(wide)
        error = np.abs(y - exact).max(axis=(1, 2)) / np.abs(exact).max(axis=(1, 2))
        assert np.all(error < 4 * np.linalg.cond(wide) * np.finfo(dtype).eps)


def test_a_matrix_without_an_inverse_gives_no_numbers() -> None:
    x = np.array([[1, 2], [2, 4]], np.float32)
    graph = import_onnx(model_of(inverse(x)))
    (y,) = evaluate(graph, {"n0_x0": x}, dtype=None).values()
    assert not np.isfinite(y).any()


@pytest.mark.needs_cc
def test_how_many_matrices_there_are_may_be_open() -> None:
    x = random(6, 3, 4, 4)
    model = model_of(inverse(x), symbols={"n0_x0": ("n", 4, 4)})
    engine = compile(model, shapes={"n": (1, 2, 5)}, cache=False)
    for count in (1, 3):
        y = engine.run({"n0_x0": x[:count]})["n0_y0"]
        np.testing.assert_allclose(y, np.linalg.inv(x[:count]), rtol=1e-4, atol=1e-5)


def test_what_is_no_square_matrix_is_refused() -> None:
    assert "expected square matrices" in refusal(inverse(random(1, 3, 4))[0])
    types = (
        TensorType("float32", (2, 3, 3)),
        TensorType("int64", (2, 3)),
        TensorType("int64", ()),
    )
    with pytest.raises(ModelError) as refused:
        EliminationStep().infer(types)
    assert str(refused.value) == (
        "ModelError: EliminationStep: expected matrices of n x n, int32 of [..., n] and a step, "
        "got float32[2, 3, 3], int64[2, 3], int64[]. [elimination-types]"
    )


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_a_gpu_that_is_emulated_gives_them() -> None:
    x = random(7, 6, 4, 4)
    graph = import_onnx(model_of(inverse(x)))
    engine = emulated(compile(graph, "cuda:sm_90a", cache=False))
    found = engine.run({"n0_x0": x})["n0_y0"]
    np.testing.assert_allclose(found, np.linalg.inv(x), rtol=1e-4, atol=1e-5)
