"""Engines for a GPU that serve all the sizes that a run may have, as the emulation runs them."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import tilewright as tw
from tests.graph.open_models import encoder, model_of, perceptron
from tests.graph.test_open_sizes import PERCEPTRON, rows, words
from tests.graph.transformer import Writer
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.driver import compile_ahead_cuda
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import ArgumentError
from tilewright.runtime.cuda.device import availability as availability_module
from tilewright.runtime.cuda.device.availability import Unavailable
from tilewright.runtime.cuda.program_json import cuda_program_to_json
from tilewright.runtime.engine.engine import Engine

pytestmark = [pytest.mark.needs_cxx, pytest.mark.usefixtures("nvrtc")]

GPU = "cuda:sm_90a"
ENCODER = {"batch": (1, 2, 3), "seq": (1, 8, 32)}
CHOICES = [(1, 1), (1, 32), (2, 7), (3, 16), (3, 32)]


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compile_ahead_cuda, availability_module):
        monkeypatch.setattr(module, "availability", lambda: Unavailable("none here", "get one."))


@cache
def perceptron_engine() -> Engine:
    return tw.compile(perceptron(), GPU, shapes=PERCEPTRON, verify="emulated")


@cache
def encoder_engine() -> Engine:
    return tw.compile(encoder(), GPU, shapes=ENCODER, verify="emulated")


def artifact_of(engine: Engine) -> CudaProgram:
    artifact = engine.parts.artifact
    assert isinstance(artifact, CudaProgram)
    return artifact


@pytest.mark.sampled(6)
@pytest.mark.parametrize("batch", [1, 2, 7, 15, 16])
def test_one_engine_serves_every_batch(batch: int) -> None:
    x = rows(batch)
    wanted = evaluate(import_onnx(perceptron(), shapes=PERCEPTRON), {"x": x})["y"]
    found = tw.emulated(perceptron_engine(), checked=batch == 7)(x)
    assert found.shape == (batch, 12)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.slow
def test_one_engine_serves_every_batch_and_sequence_in_turn() -> None:
    run = tw.emulated(encoder_engine())
    for batch, seq in (*CHOICES, CHOICES[0]):
        given = words(batch, seq)
        wanted = evaluate(import_onnx(encoder(), shapes=ENCODER), given)["y"]
        np.testing.assert_allclose(run.run(given)["y"], wanted, atol=3e-6)


def test_a_row_has_the_same_bits_in_every_batch() -> None:
    run, x = tw.emulated(perceptron_engine()), rows(16)
    whole = run(x)
    for batch in (1, 3, 15):
        assert run(x[:batch]).tobytes() == whole[:batch].tobytes()


@pytest.mark.slow
def test_every_kernel_is_checked_at_several_sizes_and_the_engine_at_two() -> None:
    wanted = {perceptron_engine: ("4", "1"), encoder_engine: ("2, seq 8", "1, seq 1")}
    for make, places in wanted.items():
        report = make().explain()
        assert set(report.proofs) == {"proved"}
        assert {kernel.check for kernel in report.kernels} == {"ok"}
        assert all(f"at batch {place}: ok emulated" in report.whole for place in places)


def test_the_plan_says_which_sizes_a_launch_takes_and_where_they_end_its_grid() -> None:
    plan = perceptron_engine().plan
    assert "input[0]: float32[batch, 24]" in plan
    assert "; batch = batch)" in plan
    plan = encoder_engine().plan
    assert "<<<(2, up to 6, 1), (8, 8, 1)>>>" in plan
    assert "; batch_seq = batch*seq)" in plan


def test_memory_is_promised_for_the_largest_sizes() -> None:
    plan = perceptron_engine().memory_plan
    assert plan.arena_bytes >= 16 * (40 + 12) * 4
    assert max(tensor.offset + tensor.bytes for tensor in plan.tensors) <= plan.arena_bytes


def test_a_saved_engine_and_a_pickled_one_take_every_size(tmp_path: Path) -> None:
    engine = encoder_engine()
    loaded = tw.load(engine.save(tmp_path / "open.twe"))
    pickled = pickle.loads(pickle.dumps(engine))
    for other in (loaded, pickled):
        wanted = cuda_program_to_json(artifact_of(engine))
        assert cuda_program_to_json(artifact_of(other)) == wanted
        assert other.plan == engine.plan
    for batch, seq in ((1, 3), (3, 20)):
        given = words(batch, seq)
        bits = tw.emulated(engine).run(given)["y"].tobytes()
        assert tw.emulated(loaded).run(given)["y"].tobytes() == bits
    assert tw.emulated(loaded).verify(words(2, 5))


def test_a_size_outside_of_its_bounds_is_refused_before_anything_runs() -> None:
    run, given = tw.emulated(encoder_engine()), words(2, 7)
    out = np.full((2, 7, 8), 7, np.float32)
    with pytest.raises(ArgumentError, match="axis 0 of 'ids' has 4 elements; expected 'batch'"):
        run.run(words(4, 3))
    with pytest.raises(ArgumentError, match="'seq' is 7 in 'ids' and 6 in 'mask'"):
        run.run({**given, "mask": given["mask"][:, :6].copy()}, out={"y": out})
    assert (out == 7).all()
    assert run.run(given)["y"].shape == (2, 7, 8)


def softmax() -> onnx.ModelProto:
    """A softmax of rows, of which there may be none, and their doubles."""
    writer = Writer(1)
    writer.add("Softmax", writer.add("Add", "x", "x"), output="y", axis=-1)
    return model_of(writer, {"x": (TensorProto.FLOAT, ["rows", 300])})


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", [GPU, "cuda:sm_80"])
def test_no_rows_are_no_launch(target: str) -> None:
    engine = tw.compile(softmax(), target, shapes={"rows": (0, 3, 40)}, verify="emulated")
    run = tw.emulated(engine, checked=True)
    for count in (0, 1, 40, 0):
        x = np.random.default_rng(count).standard_normal((count, 300)).astype(np.float32)
        wanted = np.exp(2 * x - 2 * x.max(axis=1, keepdims=True, initial=-np.inf))
        wanted /= wanted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(run(x), wanted, atol=1e-6)
    whole = artifact_of(engine)
    artifact = whole.at({whole.dims[0]: 0})
    assert [artifact.launches_at(step) for step in artifact.launches] == [()]


def counted() -> onnx.ModelProto:
    """x over the number of its columns, which the kernel is told as a size alone."""
    w = Writer(1)
    count = w.add("Gather", w.add("Shape", "x"), w.whole("last", 1), axis=0)
    w.add("Div", "x", w.add("Cast", count, to=TensorProto.FLOAT), output="y")
    return model_of(w, {"x": (TensorProto.FLOAT, [3, "seq"])})


def test_a_size_that_no_array_of_a_kernel_tells_is_said_by_its_launch() -> None:
    engine = tw.compile(counted(), GPU, shapes={"seq": (1, 4, 50)}, verify="emulated")
    artifact = artifact_of(engine)
    untold = [size for k in artifact.kernels for size in k.sizes if size.parameter is None]
    assert untold
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    for count in (1, 50, 7):
        x = np.random.default_rng(count).standard_normal((3, count), dtype=np.float32)
        np.testing.assert_allclose(tw.emulated(engine)(x), x / np.float32(count), rtol=1e-6)
