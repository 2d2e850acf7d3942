"""Engines of recurrent models whose batch and number of steps a run decides: values, one set of
bits, proofs, exported C, refusals.
"""

from __future__ import annotations

import ctypes
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import tilewright as tw
from benchmarks.subjects.recurrent import RecurrentSizes, stacked
from tests.exported import exported
from tilewright.runtime.arrays import ArgumentError, Array
from tilewright.runtime.engine.engine import Engine

pytestmark = pytest.mark.needs_cc

OPEN = RecurrentSizes("steps", "batch", inputs=12, hidden=24)
SHAPES = {"steps": (1, 4, 9), "batch": (1, 2, 4)}
SIZES = ((1, 1), (4, 2), (9, 4), (6, 3))

MODELS = {
    "lstm": stacked("LSTM", OPEN, 1, with_lengths=True),
    "gru": stacked("GRU", OPEN, 1, linear_before_reset=1, with_lengths=True),
    "rnn": stacked("RNN", OPEN, 2, activations=["Tanh", "Softsign"]),
}


@cache
def engine(name: str) -> Engine:
    return tw.compile(MODELS[name], "c", shapes=SHAPES, verify="all")


def given_to(engine: Engine, steps: int, batch: int) -> dict[str, Array]:
    rng = np.random.default_rng(steps * 10 + batch)
    arrays = {
        "x": rng.standard_normal((steps, batch, OPEN.inputs), dtype=np.float32),
        "lengths": rng.integers(min(1, steps), steps + 1, batch).astype(np.int32),
    }
    return {spec.name: arrays[spec.name] for spec in engine.inputs}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_one_engine_serves_every_size_with_one_set_of_bits(name: str) -> None:
    session = ort.InferenceSession(
        MODELS[name].SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for sizes in SIZES:
        given = given_to(engine(name), *sizes)
        found = engine(name).run(given, threads=1)
        for array, expected in zip(found.values(), session.run(None, given), strict=True):
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)
        again = engine(name).run(given, threads=2)
        assert all(array.tobytes() == again[k].tobytes() for k, array in found.items())


@pytest.mark.parametrize("name", MODELS)
def test_every_kernel_is_proved_and_the_engine_checked_at_two_choices(name: str) -> None:
    report = engine(name).explain()
    assert all(kernel.proof.startswith("proved") for kernel in report.kernels)
    assert all(kernel.check == "ok" for kernel in report.kernels)
    assert "at steps 4, batch 2: ok on 1, 2 and 3 threads, equal bits" in report.whole
    assert "at steps 1, batch 1: ok on 1, 2 and 3 threads, equal bits" in report.whole
    assert engine(name).verify(given_to(engine(name), 7, 3))


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_has_the_same_bits_alone_and_in_a_batch(name: str) -> None:
    for sizes in SIZES:
        given = given_to(engine(name), *sizes)
        whole = engine(name).run(given)
        first = {"x": given["x"][:, :1].copy(), "lengths": given.get("lengths", given["x"])[:1]}
        alone = engine(name).run({key: first[key] for key in given})
        for key, array in alone.items():
            assert array.tobytes() == whole[key][:, :1].tobytes()


def test_it_computes_what_an_engine_for_one_choice_of_sizes_does() -> None:
    one = tw.compile(MODELS["gru"], "c", shapes={"steps": 5, "batch": 3})
    given = given_to(one, 5, 3)
    for key, array in one.run(given).items():
        np.testing.assert_allclose(engine("gru").run(given)[key], array, rtol=1e-5, atol=1e-6)


def test_data_may_decide_how_many_steps_there_are() -> None:
    sizes = RecurrentSizes(5, 3, inputs=4, hidden=8)
    model = stacked("GRU", sizes, 1)
    node, (_, _, reshape) = model.graph.node[0], model.graph.node
    node.input[0] = "kept"
    keep = onnx.helper.make_node("Compress", ["x", "keep"], ["kept"], axis=0)
    model.graph.node.remove(reshape)  # to five steps
    model.graph.node.insert(0, keep)
    model.graph.output[0].name = "turned0"
    model.graph.input.append(onnx.helper.make_tensor_value_info("keep", 9, [5]))
    counted = tw.compile(model, "c")
    assert all(kernel.proof.startswith("proved") for kernel in counted.explain().kernels)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((5, 3, 4), dtype=np.float32)
    for keeps in ([1, 1, 1, 1, 1], [0, 1, 0, 1, 0], [0, 0, 0, 1, 0]):
        given = {"x": x, "keep": np.array(keeps, bool)}
        for array, expected in zip(
            counted.run(given).values(), session.run(None, given), strict=True
        ):
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, rtol=1e-4, atol=1e-5)


def test_no_steps_give_the_first_states() -> None:
    shapes = {"steps": (0, 1, 3), "batch": (1, 2, 4)}
    found = tw.compile(MODELS["rnn"], "c", shapes=shapes, verify="all")
    assert all(kernel.proof.startswith("proved") for kernel in found.explain().kernels)
    for steps in range(4):
        given = given_to(found, steps, 3)
        for key, array in found.run(given).items():
            if steps:
                assert array.tobytes() == engine("rnn").run(given)[key].tobytes()
            else:
                assert not array.any()


def test_pairs_of_steps_run_in_one_loop_and_the_last_one_in_another() -> None:
    notes = [note for note in engine("gru").explain().notes if note.startswith("loop: ")]
    assert [note.split(",")[0] for note in notes] == [
        "loop: layer0: steps//2 times",
        "loop: layer0: steps - 2*(steps//2) times",
        "loop: layer0: steps - 2*(steps//2) times",
        "loop: layer0: steps//2 times",
    ]


def test_sizes_outside_of_their_bounds_are_refused_and_nothing_is_written() -> None:
    gru = engine("gru")
    out = {"joined0": np.full((9, 4, 48), 7, np.float32), "last": np.full((2, 4, 24), 7.0)}
    out["last"] = out["last"].astype(np.float32)
    for steps, batch in ((10, 4), (9, 5)):
        with pytest.raises(ArgumentError):
            gru.run(given_to(gru, steps, batch), out=out)
    given = {**given_to(gru, 9, 4), "lengths": np.ones(3, np.int32)}
    with pytest.raises(ArgumentError, match="'batch' is 4 in 'x' and 3 in 'lengths'"):
        gru.run(given, out=out)
    assert all((array == 7).all() for array in out.values())


@pytest.mark.parametrize("name", MODELS)
def test_it_is_saved_and_loaded(name: str, tmp_path: Path) -> None:
    loaded = tw.load(engine(name).save(tmp_path / "recurrent.twe"))
    assert loaded.plan == engine(name).plan
    given = given_to(loaded, 5, 3)
    expected = engine(name).run(given)
    assert all(array.tobytes() == expected[k].tobytes() for k, array in loaded.run(given).items())


@pytest.mark.sampled(2)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", MODELS)
def test_its_c_gives_the_same_bits_and_refuses_other_sizes(name: str, tmp_path: Path) -> None:
    library, loaded = exported(engine(name), tmp_path)

    def run(arrays: list[Array], sizes: tuple[int, int], threads: int) -> int:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        numbers = [ctypes.c_int64(size) for size in sizes]
        return int(library.recurrent_run(loaded, *pointers, *numbers, None, threads))

    for sizes in SIZES:
        given = given_to(engine(name), *sizes)
        expected = engine(name).run(given)
        for threads in (1, 2):
            found = [np.empty_like(array) for array in expected.values()]
            assert run([*given.values(), *found], sizes, threads) == 0
            for one, array in zip(found, expected.values(), strict=True):
                assert one.tobytes() == array.tobytes()
    untouched = [np.full_like(array, 7) for array in expected.values()]
    for sizes in ((0, 3), (10, 3), (6, 0), (6, 5)):
        assert run([*given.values(), *untouched], sizes, 1) == -2
    assert all((array == 7).all() for array in untouched)
