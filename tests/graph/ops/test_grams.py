"""TfIdfVectorizer of integers, against onnxruntime and ONNX's reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

from ..onnx_reference import Attribute

NodeModel = Callable[..., onnx.ModelProto]
Run = Callable[..., list[Array]]
X = np.random.default_rng(3).integers(0, 4, (3, 17))
POOL: dict[str, Attribute] = {
    "min_gram_length": 1,
    "max_gram_length": 3,
    "max_skip_count": 2,
    "ngram_counts": [0, 3, 9],
    "ngram_indexes": [1, 0, 5, 2, 4, 3, 6, 8],
    "pool_int64s": [2, 0, 1, *(0, 1, 3, 2, 2, 2), *(1, 1, 1, 0, 2, 3)],
}
WEIGHTS = [0.5, 2, 1, 3, 0.25, 4, 5, 6]


@pytest.mark.needs_cc
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_grams_are_counted_and_weighted(
    node_model: NodeModel, run_onnxruntime: Run, mode: str
) -> None:
    for x in (X, X[0].astype(np.int32), X[:, :1]):
        for least, weights in ((1, {}), (2, {"weights": WEIGHTS})):
            attributes = POOL | {"mode": mode, "min_gram_length": least} | weights
            model = node_model("TfIdfVectorizer", {"x": x}, **attributes)
            model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
            (wanted,) = run_onnxruntime(model, {"x": x})
            graph = import_onnx(model)
            found = [evaluate(graph, {"x": x}, dtype=None)["y"]]
            if x is X and least == 1:
                found.append(compile(graph, cache=False).run({"x": x})["y"])
            for y in found:
                assert (y.dtype, y.shape) == (wanted.dtype, wanted.shape)
                np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_numbers_beyond_the_type_of_the_input_occur_nowhere(node_model: NodeModel) -> None:
    pool = {**POOL, "pool_int64s": [1 << 32, *POOL["pool_int64s"][1:]], "mode": "TF"}
    x = np.zeros(4, np.int32)
    (y,) = evaluate(import_onnx(node_model("TfIdfVectorizer", {"x": x}, **pool)), {"x": x}).values()
    assert y.tolist() == [4, 0, 0, 0, 0, 0, 0, 0, 0]


def test_grams_that_meet_in_one_place_are_counted_together(node_model: NodeModel) -> None:
    pool = {
        **POOL,
        "max_gram_length": 1,
        "ngram_counts": [0],
        "pool_int64s": [0, 1, 2],
        "ngram_indexes": [0, 2, 0],
    }
    model = node_model("TfIdfVectorizer", {"x": X}, mode="TF", **pool)
    (y,) = evaluate(import_onnx(model), {"x": X}).values()
    numbers = [[np.sum(row == n) for n in range(3)] for row in X]
    assert y.tolist() == [[a + c, 0, b] for a, b, c in numbers]


def test_what_does_not_fit_is_refused(node_model: NodeModel) -> None:
    uneven = POOL | {"ngram_counts": [0, 2, 9]}
    with pytest.raises(ModelError) as caught:
        import_onnx(node_model("TfIdfVectorizer", {"x": X}, mode="TF", **uneven))
    assert str(caught.value) == (
        "ModelError: model: node 'the_node' (TfIdfVectorizer) has a pool of 15 numbers, which "
        "begins at [0, 2, 9] for the grams of each length, 8 places and 8 weights; expected whole "
        "grams, and a place and a finite weight for each. [onnx-grams]"
    )
    model = node_model("TfIdfVectorizer", {"x": X.astype(np.float32)}, mode="TF", **POOL)
    with pytest.raises(ModelError) as caught:
        import_onnx(model)
    assert str(caught.value) == (
        "ModelError: model: node 'the_node' (TfIdfVectorizer) reads 'x' of type float32[3, 17]; "
        "expected integers of one or two axes. [onnx-grams-input]"
    )
    for changed, reason in (
        ({"mode": "BM25"}, "mode is 'BM25'; known are TF, IDF, TFIDF"),
        (
            {"mode": "IDF", "ngram_indexes": [0] * 8},
            "mode is IDF, and several grams have one place",
        ),
    ):
        with pytest.raises(UnsupportedOperator, match=reason):
            import_onnx(node_model("TfIdfVectorizer", {"x": X}, **{**POOL, **changed}))
