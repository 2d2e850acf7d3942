"""Models that NNCF quantised (nncf/make_nncf.py) compute what onnxruntime does without fusions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import tilewright as tw

FOLDER = Path(__file__).parent / "nncf"
FILES = sorted(path.name for path in FOLDER.glob("*.onnx"))
INTEGERS = {"network": ("IntegerConv", 3), "encoder": ("IntegerMatMul", 6)}  # the fewest


def given(name: str, seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    if name.startswith("network"):
        return {"x": draw.standard_normal((1, 3, 24, 24)).astype(np.float32)}
    return {"ids": draw.integers(0, 50, (1, 24)), "mask": np.ones((1, 24), np.int64)}


def test_there_are_both_kinds_of_both() -> None:
    kinds = [f"{n}_{k}.onnx" for n in ("encoder", "network") for k in ("mixed", "performance")]
    assert kinds == FILES


@pytest.mark.sampled(3)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", FILES)
def test_a_model_of_nncf(name: str) -> None:
    path = FOLDER / name
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(str(path), options)
    engine = tw.compile(path, cache=False)
    off = []
    for seed in range(8):
        x = given(name, seed)
        (expected,) = session.run(None, x)
        (got,) = engine.run(x).values()
        off.append(np.abs(got - expected).max() / np.abs(expected).max())
    # a level next to a tie may go either way, in onnxruntime as well
    assert np.median(off) <= 2e-6
    assert max(off) <= 2e-3
    kind, fewest = INTEGERS[name.split("_")[0]]
    assert str(engine.explain()).count(f"fused: {kind}") >= fewest
