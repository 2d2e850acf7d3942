"""Engines of recurrent models: right, checked on several threads, exported as C, and with weights
that both steps of a pair share.
"""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from benchmarks.subjects.recurrent import RecurrentSizes, stacked
from tests.exported import exported
from tilewright.driver.lower_program import lower_program
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.types import Array
from tilewright.runtime.engine.engine import Engine
from tilewright.tir.program.program import Launch, Repeat
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.target.target import Target

pytestmark = pytest.mark.needs_cc

SIZES = RecurrentSizes(steps=5, batch=2, inputs=20, hidden=40)

MODELS = {
    "lstm": stacked("LSTM", SIZES, 2, with_lengths=True),
    "gru": stacked("GRU", SIZES, 1),
    "linear gru": stacked("GRU", SIZES, 1, linear_before_reset=1, with_lengths=True),
    "rnn": stacked("RNN", SIZES, 1, activations=["Tanh", "Softsign"], clip=2.0),
}


def given_to(engine: Engine) -> dict[str, Array]:
    x = (
        np.random.default_rng(2)
        .standard_normal((SIZES.steps, SIZES.batch, SIZES.inputs))
        .astype(np.float32)
    )
    arrays = {"x": x, "lengths": np.array([4, 2], np.int32)}
    return {spec.name: arrays[spec.name] for spec in engine.inputs}


@pytest.mark.sampled(6)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", MODELS)
def test_it_is_right_on_any_number_of_threads_and_as_exported_c(name: str, tmp_path: Path) -> None:
    engine = compile(MODELS[name], cache=False)
    assert "equal bits" in str(engine.explain())
    given = given_to(engine)
    session = ort.InferenceSession(
        MODELS[name].SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = engine.run(given)
    for array, expected in zip(found.values(), session.run(None, given), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)
    library, loaded = exported(engine, tmp_path)
    for threads in (1, 2):
        copies = {name: np.empty_like(array) for name, array in found.items()}
        arrays = [given[spec.name] for spec in engine.inputs] + list(copies.values())
        pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
        assert library.recurrent_run(loaded, *pointers, None, threads) == 0
        for output, array in found.items():
            assert array.tobytes() == copies[output].tobytes()


def test_the_steps_of_a_pair_read_the_same_packed_weights_in_opposite_orders() -> None:
    target = Target.parse("c:avx512")
    program = plan_model(import_onnx(MODELS["lstm"]), target, check=False).lowered.program
    made = lower_program(place_syncs(program), target).program
    loops = [step for step in made.body if isinstance(step, Repeat)]
    assert [loop.count for loop in loops] == [SIZES.steps // 2] * 4
    for loop in loops:
        launches = [step for step in loop.body if isinstance(step, Launch)]
        weights = [
            item.position
            for launch in launches
            for item in launch.arguments
            if item.space == "constant"
        ]
        assert len(set(weights)) == 4
        assert weights == [*weights[:4], *weights[3::-1]]
