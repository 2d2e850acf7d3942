"""Det: stacks of matrices, pivots, matrices that have no inverse."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import emulated
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ops.linear_algebra.determinant import Det
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, TensorType

from ...cases import Case, check_case, check_compiled, model_of


def normal(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


SWAPPED = np.array([[0, 2, 1], [3, 0, 0], [0, 0, 5]], np.float32)
SINGULAR = np.array([[1, 2, 3], [2, 4, 6], [0, 1, 7]], np.float32)
CASES = [
    *(Case("Det", (normal(n, n),), {}, (11, 22)) for n in (1, 2, 3, 4, 7)),
    Case("Det", (normal(2, 3, 5, 5),), {}, (22,)),
    Case("Det", (normal(6, 4, 4, dtype="float64"),), {}, (22,)),
    Case("Det", (np.stack([SWAPPED, SINGULAR, np.zeros((3, 3), np.float32)]),), {}, (22,)),
    Case("Det", (normal(0, 3, 3),), {}, (22,)),
    Case("Det", (normal(2, 0, 0),), {}, (22,)),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_determinants_agree_with_the_reference(case: Case) -> None:
    check_case(case, atol=1e-5)


@pytest.mark.needs_cc
def test_compiled_determinants_agree_with_float64() -> None:
    check_compiled(CASES, atol=1e-5)


@pytest.mark.needs_cc
def test_the_largest_matrices_are_as_exact_as_pivoting_makes_them() -> None:
    check_compiled([Case("Det", (normal(64, 16, 16),), {}, (22,))], rtol=1e-3)


@pytest.mark.needs_cc
def test_larger_matrices_are_eliminated_in_a_loop() -> None:
    """A pivot of 0 ends it: what comes behind it is infinite, and the determinant is 0."""
    singular = normal(24, 24, dtype="float64")
    singular[7] = 0
    mixed = np.stack([singular, normal(24, 24, dtype="float64")])
    many = (normal(2, 17, 17) / 2).astype(np.float16)
    arrays = normal(3, 20, 20), mixed, many
    model, feeds = model_of([Case("Det", (x,), {}, (22,)) for x in arrays], 22)
    graph = import_onnx(model)
    engine = compile(graph, cache=False)
    for results in (evaluate(graph, feeds, dtype=None), engine.run(feeds)):
        for x, y in zip(arrays, results.values(), strict=True):
            exact = np.linalg.det(x.astype(np.float64))
            rtol = 1e-3 if x.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(y, exact, rtol=rtol)


def test_half_precision_is_computed_in_float32() -> None:
    cases = [Case("Det", (normal(4, 3, 3, dtype="float16"),), {}, (22,))]
    check_compiled(cases, "python", rtol=4e-3, atol=2e-3)


def test_what_is_no_small_matrix_is_refused() -> None:
    with pytest.raises(ModelError) as refused:
        Det().infer((TensorType("float32", (2, 3)),))
    assert str(refused.value) == (
        "ModelError: Det: expected matrices of n x n, n <= 16, got float32[2, 3]. [det-shape]"
    )
    model, _ = model_of([Case("Det", (normal(16, 17),))], 22)
    with pytest.raises(ModelError) as caught:
        import_onnx(model)
    assert str(caught.value) == (
        "ModelError: model: node 'y0' (Det) reads 'c0_x0' of type float32[16, 17]; expected square "
        "matrices of floating-point numbers. [onnx-matrices]"
    )


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_a_gpu_that_is_emulated_gives_them() -> None:
    """Its proof knows that every row that is read exists."""
    model, feeds = model_of([Case("Det", (normal(6, 4, 4),))], 22)
    graph = import_onnx(model)
    engine = emulated(compile(graph, "cuda:sm_90a", cache=False))
    found, expected = engine.run(feeds)["y0"], evaluate(graph, feeds)["y0"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
