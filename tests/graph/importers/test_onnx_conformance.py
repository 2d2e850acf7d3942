"""ONNX's own node tests: what we import gives the expected results; the rest is refused by name."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import onnx.backend.test.loader
import pytest
from onnx import TensorProto, numpy_helper

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

# Why a case may be refused: no such operator, an element type or an opset that we do not have,
# inputs that are no tensors, sizes that stay open
REFUSALS = {"onnx-unsupported", "model-dtype", "onnx-opset", "onnx-input-kind", "shapes-open"}


def array(value: Array | TensorProto) -> Array:
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


@pytest.mark.slow
def test_every_case_is_right_or_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators of the cases overflow on purpose
        cases = onnx.backend.test.loader.load_model_tests(kind="node")
    outcomes: Counter[str] = Counter()
    for case in cases:
        try:
            graph = import_onnx(case.model)
        except ModelError as error:
            outcomes[error.code] += 1
            continue
        outcomes["imported"] += 1
        for version in (graph, optimise(graph)[0]):
            for inputs, outputs in case.data_sets:
                feeds = dict(zip(graph.inputs, map(array, inputs), strict=True))
                results = evaluate(version, feeds, dtype=None)
                for name, expected in zip(graph.outputs, map(array, outputs), strict=True):
                    assert results[name].dtype == expected.dtype, case.name
                    assert results[name].shape == expected.shape, case.name
                    np.testing.assert_allclose(
                        results[name], expected, rtol=case.rtol, atol=case.atol, err_msg=case.name
                    )
    assert outcomes.pop("imported") >= 400
    assert set(outcomes) <= REFUSALS
