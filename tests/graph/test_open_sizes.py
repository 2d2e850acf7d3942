"""Engines for all the sizes that a run may have: values, bits, memory, files, refusals."""

from __future__ import annotations

import ctypes
import pickle
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.exported import exported
from tests.graph.open_models import encoder, perceptron
from tilewright.graph.compile import MemoryLimitError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import ArgumentError, Array
from tilewright.runtime.engine.engine import Engine
from tilewright.tir.sizes import size_in

pytestmark = pytest.mark.needs_cc

PERCEPTRON = {"batch": (1, 4, 16)}
ENCODER = {"batch": (1, 2, 3), "seq": (1, 8, 20)}


@cache
def perceptron_engine() -> Engine:
    return tw.compile(perceptron(), "c", shapes=PERCEPTRON)


@cache
def encoder_engine() -> Engine:
    return tw.compile(encoder(), "c", shapes=ENCODER)


def rows(batch: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((batch, 24), dtype=np.float32)


def words(batch: int, seq: int) -> dict[str, Array]:
    rng = np.random.default_rng(batch * 100 + seq)
    mask = (rng.random((batch, seq)) < 0.8).astype(np.int64)
    mask[:, 0] = 1
    return {"ids": rng.integers(0, 50, (batch, seq)), "mask": mask}


@pytest.mark.parametrize("batch", [1, 2, 3, 5, 15, 16])
def test_one_engine_serves_every_batch(batch: int) -> None:
    x = rows(batch)
    wanted = evaluate(import_onnx(perceptron(), shapes=PERCEPTRON), {"x": x})["y"]
    found = perceptron_engine()(x)
    assert found.shape == (batch, 12)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (1, 20), (2, 7), (3, 16), (3, 17), (2, 1)])
def test_one_engine_serves_every_batch_and_sequence(batch: int, seq: int) -> None:
    given = words(batch, seq)
    wanted = evaluate(import_onnx(encoder(), shapes=ENCODER), given)["y"]
    for threads in (1, 3):
        found = encoder_engine().run(given, threads=threads)["y"]
        np.testing.assert_allclose(found, wanted, atol=3e-6)


def test_a_row_has_the_same_bits_in_every_batch() -> None:
    engine, x = perceptron_engine(), rows(16)
    whole = engine(x)
    for batch in (1, 2, 7, 15):
        assert engine(x[:batch]).tobytes() == whole[:batch].tobytes()


def test_every_kernel_is_proved_and_checked_and_the_engine_at_two_choices() -> None:
    report = encoder_engine().explain()
    assert all(kernel.proof.startswith("proved") for kernel in report.kernels)
    assert all(kernel.check == "ok" for kernel in report.kernels)
    assert "at batch 2, seq 8: ok" in report.whole
    assert "at batch 1, seq 1: ok" in report.whole


def test_the_engine_names_what_a_run_decides() -> None:
    engine = encoder_engine()
    assert [spec.shape for spec in engine.inputs] == [("batch", "seq"), ("batch", "seq")]
    assert str(engine.outputs[0]) == "y: float32[batch, seq, 8]"
    assert "input[0]: int64[batch, seq]" in engine.plan
    assert "batch*seq" in engine.plan


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"x": rows(17)}, "axis 0 of 'x' has 17 elements; expected 'batch', which is 1 to 16."),
        ({"x": rows(1)[0]}, "'x' has shape (24,), expected (batch, 24)."),
        ({"x": rows(2)[:, :3].copy()}, "'x' has shape (2, 3), expected (batch, 24)."),
    ],
)
def test_a_size_outside_of_its_bounds_is_refused(given: Mapping[str, Array], message: str) -> None:
    engine = perceptron_engine()
    out = np.full((4, 12), 7, np.float32)
    with pytest.raises(ArgumentError) as caught:
        engine.run(given)
    assert message in str(caught.value)
    with pytest.raises(ArgumentError, match="'batch' is 4 in 'x' and 3 in 'y'"):
        engine.run({"x": rows(4)}, out={"y": out[:3].copy()})
    assert (out == 7).all()
    assert engine(rows(3)).shape == (3, 12)


def test_sizes_that_disagree_between_inputs_are_refused() -> None:
    engine, given = encoder_engine(), words(2, 7)
    with pytest.raises(ArgumentError) as caught:
        engine.run({**given, "mask": given["mask"][:, :6].copy()})
    assert "'seq' is 7 in 'ids' and 6 in 'mask'; expected one size" in str(caught.value)
    assert engine.run(given)["y"].shape == (2, 7, 8)


def test_a_context_is_bound_to_one_choice_after_the_other() -> None:
    engine, context = perceptron_engine(), perceptron_engine().context(threads=2)
    for batch in (1, 16, 3):
        x = rows(batch, seed=batch)
        context.bind({"x": x}).run()
        assert context.outputs["y"].tobytes() == engine(x).tobytes()


def test_memory_is_promised_for_the_largest_sizes() -> None:
    plan = perceptron_engine().memory_plan
    assert plan.arena_bytes >= 16 * (40 + 12) * 4
    assert max(tensor.offset + tensor.bytes for tensor in plan.tensors) <= plan.arena_bytes


def test_memory_is_told_as_a_function_of_the_sizes(tmp_path: Path) -> None:
    engine = encoder_engine()
    plan = engine.memory_plan
    assert str(plan.live_bytes) == "192*batch*seq"
    text = (
        "of the arena a run needs 192*batch*seq bytes: 3 KiB at "
        "batch 2, seq 8, 11.2 KiB at batch 3, seq 20"
    )
    assert str(plan).endswith(f"; {text}")
    assert text in engine.explain().notes
    assert str(tw.load(engine.save(tmp_path / "memory.twe")).memory_plan) == str(plan)
    assert plan.live_bytes_at({"batch": 3, "seq": 20}) == 192 * 60 <= plan.arena_bytes


@pytest.mark.parametrize(("batch", "seq"), [(1, 1), (1, 20), (2, 7), (3, 1), (3, 20)])
def test_what_a_run_needs_is_what_its_tensors_take_at_these_sizes(batch: int, seq: int) -> None:
    artifact, plan = encoder_engine().parts.artifact, encoder_engine().memory_plan
    values = {dim: {"batch": batch, "seq": seq}[dim.name] for dim in artifact.dims}
    bytes_of = [size_in(tensor.size, values) for tensor in plan.tensors]
    needed = [
        sum(n for n, t in zip(bytes_of, plan.tensors, strict=True) if t.first <= at <= t.last)
        for at in range(len(artifact.launches))
    ]
    assert plan.live_bytes_at({"batch": batch, "seq": seq}) == max(needed)


def test_a_limit_of_memory_holds_for_the_largest_sizes() -> None:
    with pytest.raises(MemoryLimitError) as caught:
        tw.compile(perceptron(), "c", shapes=PERCEPTRON, max_bytes=100)
    lines = str(caught.value).splitlines()
    assert "iB at the largest sizes, 'batch' 16; expected at most 100 B. [compile-" in lines[0]
    assert lines[2:] == [
        "  Hint: raise max_bytes, or lower max_contexts.",
        "  Hint: shapes={...} with smaller largest sizes takes less.",
    ]
    with pytest.raises(MemoryLimitError, match="so they were assumed: 'batch' 1 to 16, usually 4"):
        tw.compile(perceptron(), "c", max_bytes=100)


def test_a_saved_engine_and_a_pickled_one_take_every_size(tmp_path: Path) -> None:
    engine = encoder_engine()
    loaded = tw.load(engine.save(tmp_path / "open.twe"))
    pickled = pickle.loads(pickle.dumps(engine))
    assert loaded.inputs == engine.inputs
    for batch, seq in ((1, 3), (3, 20)):
        given = words(batch, seq)
        wanted = engine.run(given)["y"].tobytes()
        assert loaded.run(given)["y"].tobytes() == wanted
        assert pickled.run(given)["y"].tobytes() == wanted
    assert loaded.verify(words(2, 5))
    with pytest.raises(ArgumentError, match="which is 1 to 3"):
        loaded.run(words(4, 3))


def test_an_interpreted_engine_takes_every_size() -> None:
    engine = tw.compile(perceptron(), "python", shapes={"batch": (1, 2, 4)}, verify="off")
    for batch in (1, 4):
        np.testing.assert_allclose(engine(rows(batch)), perceptron_engine()(rows(batch)), atol=1e-6)


@pytest.mark.parametrize("target", ["c", "python"])
def test_an_engine_counts_the_sizes_of_its_runs(target: str) -> None:
    engine = tw.compile(perceptron(), target, shapes=PERCEPTRON, verify="off")
    for batch in (3, 5, 3):
        engine(rows(batch))
    engine.context().bind({"x": rows(5)}).run()
    with pytest.raises(ArgumentError):
        engine(rows(17))
    assert str(engine.stats) == (
        "4 runs, 0 hits of 0 variants\n  batch 3: 2 runs\n  batch 5: 2 runs"
    )
    assert pickle.loads(pickle.dumps(engine)).stats.runs == 0


def test_an_engine_of_one_size_counts_nothing() -> None:
    engine = tw.compile(perceptron(), "python", shapes={"batch": 2}, verify="off")
    engine(rows(2))
    assert str(engine.stats) == "0 runs, 0 hits of 0 variants"


def test_random_inputs_and_verification_at_sizes_of_ones_choice() -> None:
    engine = encoder_engine()
    assert engine.random_inputs()["ids"].shape == (2, 8)
    given = engine.random_inputs(sizes={"seq": 17})
    assert given["ids"].shape == (2, 17)
    assert engine.verify(given)
    with pytest.raises(ArgumentError) as caught:
        engine.random_inputs(sizes={"sep": 3})
    assert str(caught.value) == (
        "ArgumentValueError: open: the size 'sep' is 3; a run decides 'batch' of 1 to 3, 'seq' of "
        "1 to 20. [engine-size]"
    )


def test_a_profile_is_of_the_sizes_that_it_was_given() -> None:
    profile = perceptron_engine().profile({"x": rows(3)}, threads=1, rounds=3)
    assert len(profile.steps) == len(perceptron_engine().parts.artifact.launches)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"batch": (2, 1, 4)}, "shapes: 'batch' has the range (2, 1, 4); expected the least, the"),
        ({"batch": (1, 2)}, "shapes: 'batch' has size (1, 2); expected an integer of 0 or more"),
        ({"x": ((1, 2, 4), 25)}, "shapes: axis 1 of input 'x' float32[batch, 24] is 24, got 25."),
    ],
)
def test_ranges_that_are_none_are_refused(shapes: dict[str, object], message: str) -> None:
    with pytest.raises(tw.TilewrightError) as caught:
        import_onnx(perceptron(), shapes=shapes)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_a_range_may_stand_in_the_shape_of_an_input() -> None:
    by_symbol = import_onnx(perceptron(), shapes=PERCEPTRON)
    by_input = import_onnx(perceptron(), shapes={"x": ((1, 4, 16), 24)})
    assert str(by_input) == str(by_symbol)
    assert [(d.low, d.usual, d.high) for d in by_input.dims] == [(1, 4, 16)]
    both = import_onnx(encoder(), shapes={"ids": ((1, 2, 3), 5), "mask": ((1, 2, 3), 5)})
    assert str(both.types["y"]) == "float32[batch, 5, 8]"


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
def test_its_c_gives_the_same_bits_and_refuses_other_sizes(tmp_path: Path) -> None:
    engine = encoder_engine()
    library, loaded = exported(engine, tmp_path)

    def run(given: Mapping[str, Array], y: Array, batch: int, seq: int, threads: int = 1) -> int:
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (given["ids"], given["mask"], y)]
        sizes = ctypes.c_int64(batch), ctypes.c_int64(seq)
        return int(library.open_run(loaded, *pointers, *sizes, None, threads))

    for batch, seq in ((1, 1), (2, 7), (3, 20)):
        given = words(batch, seq)
        expected = engine.run(given)["y"]
        for threads in (1, 2):
            found = np.empty_like(expected)
            assert run(given, found, batch, seq, threads) == 0
            assert found.tobytes() == expected.tobytes()
    untouched = np.full_like(expected, 7)
    for batch, seq in ((0, 20), (4, 20), (3, 21), (3, -1)):
        assert run(given, untouched, batch, seq) == -2
    assert (untouched == 7).all()
