"""Models that branch and loop, of sizes that a run decides: values at several sizes, one set of
bits, and all that an engine does besides running.
"""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import tilewright as tw
from tests.exported import exported
from tilewright.runtime.arrays import ArgumentError
from tilewright.runtime.engine.engine import Engine

from .flow_models import INT64, Array, body, floats, graph, model, node, value

pytestmark = pytest.mark.needs_cc

BATCH, SEQ = (1, 2, 5), (0, 4, 9)
SIZES = ((1, 1), (2, 4), (5, 9), (3, 0))


@dataclass(frozen=True)
class OpenModel:
    """A model, the ranges of its sizes, inputs for a batch and a length, and what it gives."""

    proto: ModelProto
    shapes: Mapping[str, tuple[int, int, int]]
    given: Callable[[int, int], dict[str, Array]]
    wanted: Callable[..., list[Array]]


def recurrent() -> OpenModel:
    """Rows of an array are scanned, and rows of another one collected."""
    w, u = floats((8, 16)), floats((16, 16), 2)
    cell = graph(
        "cell",
        [
            node("MatMul", ["row", "w"], ["a"]),
            node("MatMul", ["h", "u"], ["b"]),
            node("Add", ["a", "b"], ["c"]),
            node("Tanh", ["c"], ["next"]),
            node("Identity", ["next"], ["made"]),
        ],
        [value("h", shape=("batch", 16)), value("row", shape=("batch", 8))],
        [value("next"), value("made")],
        w=w,
        u=u,
    )
    proto = model(
        [node("Scan", ["h", "x"], ["last", "all"], name="rnn", body=cell, num_scan_inputs=1)],
        [value("h", shape=("batch", 16)), value("x", shape=("seq", "batch", 8))],
        [value("last"), value("all")],
    )

    def wanted(h: Array, x: Array) -> list[Array]:
        made = np.zeros((len(x), *h.shape), np.float32)
        for n, row in enumerate(x):
            h = made[n] = np.tanh(row @ w + h @ u)
        return [h, made]

    return OpenModel(
        proto,
        {"batch": BATCH, "seq": SEQ},
        lambda batch, seq: {"h": floats((batch, 16)), "x": floats((seq, batch, 8), 1)},
        wanted,
    )


def backwards() -> OpenModel:
    """A scan from the last row on, over an axis in the middle; the first row comes out last."""
    cell = graph(
        "cell",
        [
            node("Add", ["h", "row"], ["c"]),
            node("Tanh", ["c"], ["next"]),
            node("Exp", ["c"], ["made"]),
        ],
        [value("h", shape=("batch", 8)), value("row", shape=("batch", 8))],
        [value("next"), value("made")],
    )
    scan = node(
        "Scan",
        ["h", "x"],
        ["last", "all"],
        name="scan",
        body=cell,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1],
        scan_input_directions=[1],
        scan_output_directions=[1],
    )
    proto = model(
        [scan, node("Neg", ["all"], ["y"])],
        [value("h", shape=("batch", 8)), value("x", shape=("batch", "seq", 8))],
        [value("last"), value("y")],
    )

    def wanted(h: Array, x: Array) -> list[Array]:
        made = np.zeros(x.shape, np.float32)
        for n in range(x.shape[1] - 1, -1, -1):
            c = h + x[:, n]
            h, made[:, n] = np.tanh(c), np.exp(c)
        return [h, -made]

    return OpenModel(
        proto,
        {"batch": BATCH, "seq": SEQ},
        lambda batch, seq: {"h": floats((batch, 8)), "x": floats((batch, seq, 8), 1)},
        wanted,
    )


def as_often_as_rows() -> OpenModel:
    """A size is the trip count, so what the loop collects has as many rows."""
    inner = body(
        "step",
        [
            node("Mul", ["s", "half"], ["m"]),
            node("Add", ["m", "x"], ["next"]),
            node("ReduceSum", ["next"], ["row"], keepdims=0),
        ],
        [value("s", shape=("batch", 8))],
        ["next", "row"],
        half=np.float32(0.5),
    )
    proto = model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "zero"], ["n"]),
            node("Loop", ["n", "", "x"], ["y", "sums"], name="loop", body=inner),
        ],
        [value("x", shape=("batch", 8))],
        [value("y"), value("sums")],
        zero=np.array(0),
    )

    def wanted(x: Array) -> list[Array]:
        s, sums = x, []
        for _ in range(len(x)):
            s = s * np.float32(0.5) + x
            sums.append(s.sum())
        return [s, np.array(sums)]

    return OpenModel(proto, {"batch": BATCH}, lambda batch, _: {"x": floats((batch, 8))}, wanted)


def branch_in_a_loop() -> OpenModel:
    """Data say how often; a branch within reads what is outside, in a shape that is computed."""
    then = graph(
        "yes",
        [node("Add", ["s", "h"], ["a"]), node("Reshape", ["a", "shape"], ["t"])],
        [],
        [value("t")],
    )
    otherwise = graph("no", [node("Tanh", ["s"], ["e"])], [], [value("e")])
    inner = body(
        "step",
        [
            node("Less", ["i", "two"], ["early"]),
            node("If", ["early"], ["b"], name="choice", then_branch=then, else_branch=otherwise),
            node("Sigmoid", ["h"], ["invariant"]),
            node("Mul", ["b", "invariant"], ["next"]),
        ],
        [value("s", shape=("batch", "seq"))],
        ["next"],
        two=np.array(2),
    )
    proto = model(
        [
            node("Relu", ["x"], ["h"]),
            node("Shape", ["x"], ["shape"]),
            node("Loop", ["n", "", "x"], ["y"], name="loop", body=inner),
        ],
        [value("n", INT64, ()), value("x", shape=("batch", "seq"))],
        [value("y")],
    )

    def wanted(n: Array, x: Array) -> list[Array]:
        s, h = x, np.maximum(x, 0)
        for i in range(int(n)):
            s = (s + h if i < 2 else np.tanh(s)) / (1 + np.exp(-h))
        return [s]

    return OpenModel(
        proto,
        {"batch": BATCH, "seq": SEQ},
        lambda batch, seq: {"n": np.array(batch + seq), "x": floats((batch, seq))},
        wanted,
    )


MODELS = {
    make.__name__: make for make in (recurrent, backwards, as_often_as_rows, branch_in_a_loop)
}


@cache
def made(name: str) -> OpenModel:
    return MODELS[name]()


@cache
def engine(name: str) -> Engine:
    return tw.compile(made(name).proto, "c", shapes=made(name).shapes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_one_engine_serves_every_size_with_one_set_of_bits(name: str) -> None:
    for batch, seq in SIZES:
        given = made(name).given(batch, seq)
        found = engine(name).run(given, threads=1)
        for one, array in zip(made(name).wanted(**given), found.values(), strict=True):
            assert array.shape == one.shape
            np.testing.assert_allclose(array, one, rtol=1e-4, atol=1e-5)
        again = engine(name).run(given, threads=2)
        assert all(array.tobytes() == again[k].tobytes() for k, array in found.items())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MODELS)
def test_it_is_proved_and_checked_at_the_usual_and_the_least_sizes(name: str) -> None:
    report = engine(name).explain()
    assert all(kernel.proof.startswith("proved") for kernel in report.kernels)
    assert report.whole.count("ok on 1, 2 and 3 threads") == 2
    given = made(name).given(4, 7)
    assert engine(name).verify(given)


@pytest.mark.parametrize("name", MODELS)
def test_it_is_interpreted_saved_and_loaded(name: str, tmp_path: Path) -> None:
    loaded = tw.load(engine(name).save(tmp_path / "flow.twe"))
    assert loaded.plan == engine(name).plan
    interpreted = tw.compile(made(name).proto, "python", shapes=made(name).shapes, verify="off")
    for batch, seq in SIZES:
        given = made(name).given(batch, seq)
        expected, plain = engine(name).run(given), interpreted.run(given)
        for key, array in loaded.run(given).items():
            assert array.tobytes() == expected[key].tobytes()
            np.testing.assert_allclose(plain[key], array, rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")
@pytest.mark.parametrize("name", MODELS)
def test_its_c_gives_the_same_bits_and_refuses_other_sizes(name: str, tmp_path: Path) -> None:
    library, loaded = exported(engine(name), tmp_path)
    dims = list(made(name).shapes)

    def run(arrays: list[Array], sizes: tuple[int, int], threads: int) -> int:
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        numbers = [ctypes.c_int64(sizes[("batch", "seq").index(dim)]) for dim in dims]
        return int(library.flow_run(loaded, *pointers, *numbers, None, threads))

    for sizes in SIZES:
        given = made(name).given(*sizes)
        inputs = [given[spec.name] for spec in engine(name).inputs]
        expected = engine(name).run(given)
        for threads in (1, 2):
            found = [np.empty_like(array) for array in expected.values()]
            assert run([*inputs, *found], sizes, threads) == 0
            for one, array in zip(found, expected.values(), strict=True):
                assert one.tobytes() == array.tobytes()
    given = made(name).given(5, 9)
    inputs = [given[spec.name] for spec in engine(name).inputs]
    untouched = [np.full_like(array, 7) for array in engine(name).run(given).values()]
    for sizes in ((0, 9), (6, 9)):
        assert run([*inputs, *untouched], sizes, 1) == -2
    assert all((array == 7).all() for array in untouched)


def test_sizes_outside_of_their_bounds_are_refused_and_nothing_is_written() -> None:
    flow, open_model = engine("recurrent"), made("recurrent")
    out = {"last": np.full((5, 16), 7, np.float32), "all": np.full((9, 5, 16), 7, np.float32)}
    for batch, seq in ((6, 9), (5, 10)):
        with pytest.raises(ArgumentError):
            flow.run(open_model.given(batch, seq), out=out)
    given = {**open_model.given(5, 9), "h": floats((4, 16))}
    with pytest.raises(ArgumentError, match="'batch' is 4 in 'h' and 5 in 'x'"):
        flow.run(given, out=out)
    assert all((array == 7).all() for array in out.values())
    assert flow.run(open_model.given(5, 9), out=out)["all"].shape == (9, 5, 16)
    assert not (out["all"] == 7).any()


def test_rows_lie_at_strides_that_sizes_decide() -> None:
    source = engine("recurrent").parts.artifact.main
    assert "for (int64_t i0 = 0; i0 < size_seq; i0++)" in source
    assert "(char *)args[1] + i0 * 32 * size_batch" in source
    source = engine("backwards").parts.artifact.main
    assert " + (size_seq - 1 - i0) * 32 * size_batch" in source


def test_it_is_explained_and_its_steps_are_timed() -> None:
    lines = engine("recurrent").explain().notes
    assert [line for line in lines if line.startswith("loop: ")] == [
        "loop: rnn: seq times, 2 launches, 1 carried values, 320 B copied each time"
    ]
    times = engine("recurrent").profile(made("recurrent").given(3, 6), rounds=1)
    assert {step.runs for step in times.steps if step.label in ("a", "b, c, n")} == {6}
    memory = engine("recurrent").memory_plan
    assert max(tensor.offset + tensor.bytes for tensor in memory.tensors) <= memory.arena_bytes


def test_work_that_no_iteration_changes_is_done_once_before_the_loop() -> None:
    launches = engine("branch_in_a_loop").plan.splitlines()
    loop = next(n for n, line in enumerate(launches) if line.startswith("for i0"))
    assert any("sigmoid" in line for line in launches[:loop])
    assert not any("sigmoid" in line for line in launches[loop:])
