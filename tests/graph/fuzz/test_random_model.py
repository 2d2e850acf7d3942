"""graph/fuzz: what is drawn, what is compared, what is told and kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace

import onnx
import pytest

from tilewright.driver.fuzz.session import FuzzWorker
from tilewright.graph.fuzz import session, worker
from tilewright.graph.fuzz.random_model import KINDS, random_model
from tilewright.graph.fuzz.session import ModelSummary, fuzz_models
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.verification.systems import SYSTEMS, ModelRun, OtherSystem, SystemFailed
from tilewright.runtime.arrays import Array
from tilewright.runtime.engine.engine import Engine


def ops(graph: onnx.GraphProto) -> set[str]:
    """The operators of a graph and of those within it."""
    found = {node.op_type for node in graph.node}
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= ops(attribute.g)
    return found


def test_models_have_open_sizes_and_regions() -> None:
    drawn = [random_model(seed) for seed in range(120)]
    assert {model.kind for model in drawn} == set(KINDS)
    for model in drawn:
        assert bool(model.ranges) == (model.kind != "regions")
    wide = set.union(*(ops(model.proto.graph) for model in drawn))
    assert wide >= {"If", "Loop", "Scan", "Softmax", "MatMul", "Slice", "Expand", "Reshape"}
    assert random_model(7).proto == random_model(7).proto


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_model_means_what_onnx_says(kind: str, seed: int) -> None:
    model = random_model(seed, kind)
    sizes = model.sizes(Random(seed))
    given = model.inputs(sizes, seed)
    for name, (low, usual, high) in model.ranges.items():
        assert low <= usual <= high
        assert low <= sizes[name] <= high
    graph = import_onnx(model.proto, shapes=dict(model.ranges) or None)
    pytest.importorskip("onnxruntime", reason="the comparison with ONNX Runtime needs it")
    expected = SYSTEMS["onnxruntime"].load(model.proto)(given)
    for name, array in evaluate(graph, given).items():
        assert array.shape == expected[name].shape
        assert array == pytest.approx(expected[name], abs=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_random_models_have_the_values_of_their_reference(seed: int) -> None:
    found = worker.answer(seed, "c:scalar")
    assert found["failure"] == ""
    assert int(str(found["kernels"])) > 0


@pytest.mark.needs_cc
def test_what_is_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Engine.run

    def off(self: Engine, given: dict[str, Array], **how: int) -> dict[str, Array]:
        found = run(self, given, **how)
        return {name: array + 1 for name, array in found.items()}

    monkeypatch.setattr(Engine, "run", off)
    assert "is off by 1" in str(worker.answer(0, "c:scalar")["failure"])


def other_system(offset: float = 0.0, reason: str = "") -> OtherSystem:
    """The reference, off by so much; reason: why it does not run."""

    def load(model: onnx.ModelProto) -> ModelRun:
        def run(given: Mapping[str, Array]) -> dict[str, Array]:
            if reason:
                raise SystemFailed(reason, code="verify-system-fails")
            graph = import_onnx(model, shapes=dict(random_model(4).ranges) or None)
            found = evaluate(graph, given, dtype=None)
            return {name: (array + offset).astype(array.dtype) for name, array in found.items()}

        return run

    return SimpleNamespace(name="onnxruntime", title="onnxruntime 0", load=load)


@pytest.mark.needs_cc
def test_what_onnxruntime_says_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "has_onnxruntime", lambda: True)
    monkeypatch.setitem(SYSTEMS, "onnxruntime", other_system())
    assert worker.answer(4, "c:scalar")["beside"] == "compared"
    monkeypatch.setitem(SYSTEMS, "onnxruntime", other_system(reason="no such operator"))
    assert worker.answer(4, "c:scalar")["beside"] == "not run: no such operator"
    monkeypatch.setitem(SYSTEMS, "onnxruntime", other_system(offset=0.5))
    assert "onnxruntime differs: " in str(worker.answer(4, "c:scalar")["failure"])
    monkeypatch.setattr(worker, "has_onnxruntime", lambda: False)
    assert worker.answer(4, "c:scalar")["beside"] == ""


def test_a_worker_answers_in_json() -> None:
    command = [sys.executable, "-m", "tilewright.graph.fuzz.worker"]
    seed = next(n for n in range(99) if random_model(n).kind == "both")
    line = json.dumps({"seed": seed, "target": None}) + "\n"
    done = subprocess.run(command, input=line, capture_output=True, text=True, check=True)
    (entry,) = json.loads(done.stdout)
    assert (entry["kind"], entry["failure"]) == ("both", "")


def test_failures_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def ask(self: FuzzWorker, request: dict[str, object], seconds: float) -> object:
        if request["seed"] == 5_000_001:
            return "crashed: SIGSEGV"
        if request["seed"] == 5_000_002:
            raise KeyboardInterrupt
        return [{"kind": "sizes", "kernels": 2, "failure": ""}]

    monkeypatch.setattr(session.FuzzWorker, "ask", ask)
    folder = tmp_path / "kept"
    summary = fuzz_models(60.0, seed=5, corpus=folder)
    assert isinstance(summary, ModelSummary)
    assert (summary.cases, summary.kernels, summary.interrupted) == (2, 2, True)
    (failed,) = summary.failures
    assert failed.text == "the worker crashed: SIGSEGV"
    assert failed.path == folder / "seed_5000001.onnx"
    assert onnx.load(failed.path) == random_model(5_000_001).proto
