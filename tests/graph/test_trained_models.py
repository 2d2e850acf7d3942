"""Models fitted to data and exported, as `benchmarks/trained_models.py` makes them, on rows that
they have not seen: what onnxruntime says of them.

The files of `trained/` are those of a run of it under 40 KB; `rows.npz` has the first rows of each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.graph.learned_models import expected_of, same
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

FOLDER = Path(__file__).parent / "trained"
NAMES = sorted(path.stem for path in FOLDER.glob("*.onnx"))
TOLERANCE = 1e-5


def rows_of(name: str) -> dict[str, Array]:
    """The rows of a model, by the name of its input."""
    (own,) = onnx.load(FOLDER / f"{name}.onnx").graph.input
    with np.load(FOLDER / "rows.npz") as rows:
        return {own.name: rows[name]}


@pytest.mark.parametrize("name", NAMES)
def test_a_trained_model_says_what_onnxruntime_says(name: str) -> None:
    model, inputs = onnx.load(FOLDER / f"{name}.onnx"), rows_of(name)
    shapes = {key: array.shape for key, array in inputs.items()}
    found = evaluate(import_onnx(model, shapes=shapes), inputs, dtype=None)
    for key, wanted in expected_of(model, inputs).items():
        same(found[key], wanted, TOLERANCE)


@pytest.mark.needs_cc
@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", NAMES)
def test_compiled_with_open_rows_it_says_the_same(name: str) -> None:
    model, inputs = onnx.load(FOLDER / f"{name}.onnx"), rows_of(name)
    engine = compile(model, cache=False)
    for count in (1, 5):
        given = {key: array[:count] for key, array in inputs.items()}
        found = engine.run(given)
        for key, wanted in expected_of(model, given).items():
            same(found[key], wanted, TOLERANCE)
