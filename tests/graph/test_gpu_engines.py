"""Whole models for a GPU, without one: compiled, kept, and run by the emulation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver import compile_ahead_cuda
from tilewright.graph import compile_model, engine_cache
from tilewright.graph.compile import compile
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.samples.samples import random_model
from tilewright.graph.types import TensorType
from tilewright.runtime.cuda.device import availability as availability_module
from tilewright.runtime.cuda.device.availability import Available, Unavailable
from tilewright.tir.target.target import Target

from .transformer import encoder

pytestmark = [pytest.mark.needs_cxx, pytest.mark.usefixtures("nvrtc")]

GPU = "cuda:sm_90a"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (compile_ahead_cuda, availability_module):
        monkeypatch.setattr(module, "availability", lambda: Unavailable("none here", "get one."))


def network() -> Graph:
    """A convolution of 3x3, a pooling, two branches that meet."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 10, 10, 4)))
    w, one, other = (
        builder.constant(name, rng.standard_normal(shape).astype("float32"))
        for name, shape in (("w", (3, 3, 4, 16)), ("one", (1, 1, 16, 8)), ("other", (3, 3, 16, 8)))
    )
    y = builder.add(Relu(), builder.add(Conv(layout="NHWC", pads=(1, 1, 1, 1)), x, w))
    y = builder.add(MaxPool(kernel=(2, 2), strides=(2, 2), layout="NHWC"), y)
    left = builder.add(Relu(), builder.add(Conv(layout="NHWC"), y, one), output="left")
    right = builder.add(
        Relu(), builder.add(Conv(layout="NHWC", pads=(1, 1, 1, 1)), y, other), output="right"
    )
    return builder.finish((left, right))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["network", "encoder"])
def test_a_model_is_right_where_it_is_emulated(name: str) -> None:
    model = network() if name == "network" else encoder(1, 7)
    engine = compile(model, GPU, cache=False, verify="emulated")
    report = engine.explain()
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert set(report.proofs) == {"proved"}
    assert report.whole.startswith("ok emulated with each of 2 streams ahead, equal bits")
    run = tw.emulated(engine, checked=name == "network")
    assert run.verify()


def test_an_engine_is_saved_and_loaded_without_a_gpu(tmp_path: Path) -> None:
    engine = compile(network(), GPU, cache=False)
    loaded = tw.load(engine.save(tmp_path / "net.twe"))
    assert loaded.parts.artifact == engine.parts.artifact
    assert [c.image for c in loaded.parts.code.cubins] == [
        c.image for c in engine.parts.code.cubins
    ]
    assert loaded.plan == engine.plan
    assert tw.emulated(loaded).verify()
    assert loaded.explain().whole == engine.explain().whole


def test_without_a_gpu_the_report_says_how_to_have_the_engine_run_whole() -> None:
    assert compile(network(), GPU, cache=False).explain().whole == (
        "not run: no GPU: none here; verify='emulated' runs the engine on the CPU when it is built"
    )
    for verify in ("kernels", "off"):
        engine = compile(network(), GPU, cache=False, verify=verify)
        assert engine.explain().whole == "off"


def test_the_verdict_on_a_whole_engine_is_kept_in_its_file(tmp_path: Path) -> None:
    engine = compile(network(), GPU, cache=False, verify="emulated")
    loaded = tw.load(engine.save(tmp_path / "net.twe"))
    assert loaded.explain().whole.startswith("ok emulated")
    assert f"whole engine: check {engine.explain().whole}" in str(loaded.explain())


def test_branches_have_streams_of_their_own() -> None:
    assert ", 2 streams" in compile(network(), GPU, cache=False, verify="off").plan


@pytest.mark.slow
def test_an_error_that_no_gpu_is_there_to_measure_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compile_model, "rounding_more", lambda planned: planned.decisions)
    engine = compile(network(), GPU, cache=False, tolerance=1e-3)
    assert engine.explain().notes[0] == "tolerance 0.001: not measured: no GPU"


def test_engines_are_kept_by_what_compiled_and_checked_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = Target.parse(GPU)
    without = engine_cache.engine_key("model", target, {})
    assert engine_cache.engine_key("model", target, {}) == without
    there = Available(None, (SimpleNamespace(name="H200"),))  # type: ignore[arg-type]
    monkeypatch.setattr(availability_module, "availability", lambda: there)
    assert engine_cache.engine_key("model", target, {}) != without


@pytest.mark.slow
def test_a_light_model_is_what_float64_gives() -> None:
    sample = random_model("squeezenet")
    engine = compile(sample.model, GPU, cache=False)
    assert set(engine.explain().proofs) == {"proved"}
    assert tw.emulated(engine).verify(sample.inputs)
