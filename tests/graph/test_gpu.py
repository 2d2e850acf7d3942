"""Whole models on a GPU: `pytest -m gpu tests/graph/test_gpu.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.samples.samples import LIGHT_MODELS, random_model
from tilewright.runtime.cuda.device.array import DeviceArray
from tilewright.runtime.cuda.device.availability import Unavailable, availability
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.index_checks import IndexRangeError

from .open_models import encoder as open_encoder
from .test_gpu_engines import network
from .test_half import CASES
from .test_open_gpu_engines import CHOICES, ENCODER
from .test_open_sizes import words
from .transformer import WORDS, encoder

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def context() -> DeviceContext:
    found = availability()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}: {found.hint}")
    return found.context()


def test_a_small_network_is_right_again_and_again(context: DeviceContext, tmp_path: Path) -> None:
    engine = compile(network(), "cuda", cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    for seed in range(3):
        assert engine.verify(seed=seed)
    assert tw.load(engine.save(tmp_path / "net.twe")).verify()


def test_it_gives_what_the_emulation_gives(context: DeviceContext) -> None:
    engine = compile(network(), "cuda", cache=False, verify="off")
    given = engine.random_inputs(5)
    emulated = tw.emulated(engine).run(given)
    for name, array in engine.run(given).items():
        np.testing.assert_allclose(array, emulated[name], rtol=1e-6, atol=1e-6)


def test_arrays_of_the_device_are_used_where_they_lie(context: DeviceContext) -> None:
    engine = compile(network(), "cuda", cache=False, verify="off")
    given = engine.random_inputs()
    wanted = engine.run(given)
    there = {name: DeviceArray.of(context, array) for name, array in given.items()}
    made = {o.name: DeviceArray.empty(context, o.shape, o.dtype) for o in engine.outputs}
    bound = engine.context().bind(there, made)
    for _ in range(3):
        bound.run()
    for name, array in made.items():
        np.testing.assert_array_equal(array.numpy(), wanted[name])
    assert 0 < bound.time(0.05).median < 1e-2


def test_one_engine_serves_all_sizes(context: DeviceContext) -> None:
    engine = compile(open_encoder(), "cuda", shapes=ENCODER, cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.explain().whole.count("ok twice") == 2
    bound, bits = engine.context(), {}
    for batch, seq in CHOICES * 2:
        given = words(batch, seq)
        wanted = evaluate(import_onnx(open_encoder(), shapes=ENCODER), given)["y"]
        bound.bind(given).run()
        np.testing.assert_allclose(bound.outputs["y"], wanted, atol=1e-5)
        found = bits.setdefault((batch, seq), bound.outputs["y"].tobytes())
        assert found == bound.outputs["y"].tobytes()
        there = {name: DeviceArray.of(context, array) for name, array in given.items()}
        assert engine.run(there)["y"].tobytes() == found
    assert 0 < bound.time(0.05).median < 1e-2
    assert engine.profile(given, rounds=3).steps


def test_contexts_run_at_the_same_time(context: DeviceContext) -> None:
    engine = compile(network(), "cuda", cache=False, verify="off")
    given = [engine.random_inputs(seed) for seed in range(4)]
    wanted = [engine.run(arrays) for arrays in given]
    contexts = [engine.context().bind(arrays) for arrays in given]
    for one in contexts:
        one.run()
    for one, results in zip(contexts, wanted, strict=True):
        for name, array in one.outputs.items():
            np.testing.assert_array_equal(array, results[name])


def test_an_encoder_is_right_and_its_indices_are_checked(context: DeviceContext) -> None:
    engine = compile(encoder(1, 7), "cuda", cache=False)
    given = {"ids": np.arange(7).reshape(1, 7), "seen": np.ones((1, 7), np.int64)}
    assert engine.verify(given)
    given["ids"][0, 3] = WORDS
    with pytest.raises(IndexRangeError):
        engine.run(given)


@pytest.mark.parametrize("name", CASES)
def test_models_in_halves_are_right(name: str, context: DeviceContext) -> None:
    engine = compile(CASES[name], "cuda", cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.verify()


def test_a_profile_names_every_launch(context: DeviceContext) -> None:
    engine = compile(network(), "cuda", cache=False, verify="off")
    profile = engine.profile(rounds=3)
    assert len(profile.steps) == len(engine.parts.artifact.launches)
    assert all(0 < step.seconds < 1e-2 for step in profile.steps)


@pytest.mark.slow
@pytest.mark.parametrize("name", LIGHT_MODELS)
def test_light_models_are_what_float64_gives(name: str, context: DeviceContext) -> None:
    sample = random_model(name)
    engine = compile(sample.model, "cuda", cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.verify(sample.inputs)
