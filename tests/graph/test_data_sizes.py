"""Data decide sizes: what is found has its true shape, in engines, files, and exported C."""

from __future__ import annotations

import ctypes
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import tilewright as tw
from tests.exported import exported
from tests.graph.data_size_models import MODELS, Inputs, nonzero
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import ArgumentError, Array
from tilewright.runtime.engine.engine import Engine
from tilewright.tir.errors import TargetError

pytestmark = [pytest.mark.needs_cc, pytest.mark.sampled(14)]

SHARES = (0, 0.1, 0.5, 0.9, 1)
those = pytest.mark.parametrize("name", MODELS)


@cache
def engine_of(name: str) -> Engine:
    return tw.compile(MODELS[name].model, "c", shapes=MODELS[name].shapes)


def inputs_of(name: str, share: float) -> Inputs:
    return MODELS[name].inputs(share, np.random.default_rng(int(100 * share)))


@cache
def session_of(name: str) -> onnxruntime.InferenceSession:
    model = MODELS[name].model.SerializeToString()
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def expected(name: str, given: Inputs) -> dict[str, Array]:
    session = session_of(name)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, given), strict=True))


def check(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    assert {n: a.shape for n, a in found.items()} == {n: a.shape for n, a in wanted.items()}
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_allclose(found[name], array, rtol=1e-6, atol=1e-6)


@those
@pytest.mark.parametrize("share", SHARES)
def test_outputs_have_the_size_that_data_say(name: str, share: float) -> None:
    given = inputs_of(name, share)
    wanted = expected(name, given)
    for threads in (1, 3):
        check(engine_of(name).run(given, threads=threads), wanted)
    check(
        evaluate(import_onnx(MODELS[name].model, shapes=MODELS[name].shapes), given, dtype=None),
        wanted,
    )


@those
def test_every_kernel_is_proved_and_checked_and_so_is_the_engine(name: str) -> None:
    report = engine_of(name).explain()
    assert all(kernel.proof.startswith("proved") for kernel in report.kernels)
    assert all(kernel.check == "ok" for kernel in report.kernels)
    assert report.whole.startswith("ok on 1, 2 and 3 threads, equal bits")
    assert engine_of(name).verify(inputs_of(name, 0.5))


@those
def test_the_exported_c_has_the_same_bits_and_says_the_sizes(name: str, tmp_path: Path) -> None:
    engine = engine_of(name)
    library, weights = exported(engine, tmp_path)
    run = library[f"{engine.name}_run"]
    computed = engine.interface.computed
    artifact = engine.parts.code.c_program
    assert artifact is not None
    sizes = [step for step in artifact.sizes_read if step.dim in computed]
    for share in (0, 0.5, 1):
        given = inputs_of(name, share)
        wanted = engine.run(given)
        for threads in (1, 2):
            made = [np.zeros(p.largest_shape, p.dtype.numpy) for p in engine.parts.artifact.outputs]
            found = [ctypes.c_int64(-1) for _ in sizes]
            pointers = [given[spec.name].ctypes.data_as(ctypes.c_void_p) for spec in engine.inputs]
            pointers += [array.ctypes.data_as(ctypes.c_void_p) for array in made]
            told = [ctypes.byref(number) for number in found]
            assert run(weights, *pointers, *told, None, threads) == 0
            values = {s.dim: n.value for s, n in zip(sizes, found, strict=True)}
            for array, result in zip(
                engine.interface.written(made, values), wanted.values(), strict=True
            ):
                assert array.shape == result.shape
                assert array.tobytes() == result.tobytes()
    header = (tmp_path / "c" / "model.h").read_text()
    for step in sizes:
        assert f"computed size {step.dim.name}: 0 to {step.dim.high}" in header


@those
def test_saved_pickled_and_interpreted_engines_give_the_same(name: str, tmp_path: Path) -> None:
    engine = engine_of(name)
    loaded = tw.load(engine.save(tmp_path / "sizes.twe"))
    pickled = pickle.loads(pickle.dumps(engine))
    interpreted = tw.compile(MODELS[name].model, "python", shapes=MODELS[name].shapes, verify="off")
    for share in (0, 0.5, 1):
        given = inputs_of(name, share)
        wanted = engine.run(given)
        for other in (loaded, pickled):
            for one, result in zip(other.run(given).values(), wanted.values(), strict=True):
                assert (one.shape, one.tobytes()) == (result.shape, result.tobytes())
        if share == 0.5:
            check(interpreted.run(given), wanted)
            again = tw.load(interpreted.save(tmp_path / "interpreted.twe"))
            check(again.run(given), wanted)
    assert loaded.verify(inputs_of(name, 0.5))


def test_a_context_gives_what_its_last_run_has_written() -> None:
    name = "NonZero of a matrix"
    context = engine_of(name).context(threads=2)
    x = inputs_of(name, 0.5)["x"]
    context.bind({"x": x})
    for share in (1, 0, 0.5):
        x[...] = inputs_of(name, share)["x"]
        context.run()
        check(context.outputs, expected(name, {"x": x}))


def test_the_engine_names_the_size_and_reads_it_in_its_plan() -> None:
    engine = engine_of("NonZero of a matrix")
    assert str(engine.outputs[0]) == "y: int64[2, y_count]"
    assert "size(y_count = arena[" in engine.plan
    notes = "\n".join(engine.explain().notes)
    assert "size: node 'y.size' (DataSize): 'y.counttrue' says what it is in each run" in notes
    assert "const int64_t size_y_count = *(const int64_t *)(scratch + " in engine.source
    profile = engine.profile(inputs_of("NonZero of a matrix", 0.5), threads=1, rounds=2)
    assert "size read" in [step.label for step in profile.steps]


def test_memory_is_promised_for_the_largest_size_and_none_is_written_past_it() -> None:
    engine = engine_of("NonZero of many")
    plan = engine.memory_plan
    assert plan.arena_bytes >= 3 * 20 * 9 * 8
    assert max(tensor.offset + tensor.bytes for tensor in plan.tensors) <= plan.arena_bytes


def test_an_array_for_an_output_whose_size_nobody_knows_is_refused() -> None:
    engine = engine_of("NonZero of a vector")
    given = inputs_of("NonZero of a vector", 0.5)
    with pytest.raises(ArgumentError) as caught:
        engine.run(given, out={"y": np.zeros((1, 37), np.int64)})
    assert str(caught.value) == (
        "ArgumentValueError: data_sizes: 'out' gives the output 'y', whose size 'y_count' data "
        "decide; expected none for it: a run makes it. [engine-out-size]"
    )
    total = np.zeros((), np.float32)
    found = engine.run(given, out={"sum": total})
    assert found["sum"] is total
    check(found, expected("NonZero of a vector", given))


def test_a_gpu_takes_no_sizes_that_data_decide_yet() -> None:
    with pytest.raises(TargetError) as caught:
        tw.compile(nonzero(5, 7).model, "cuda:sm_80", verify="off")
    assert str(caught.value) == (
        "TargetError: cuda: data decide the size 'y_count' of 'data_sizes'; expected sizes that "
        "the inputs tell: on a GPU a run is one graph. [cuda-data-size]\n"
        "  Hint: tw.compile(model, 'c') runs it on the CPU."
    )


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "TopK",
            {"x": np.zeros((3, 11), np.float32), "k": np.array([12])},
            "'k' of y.sizewithin is 12; expected 0 to 11.",
        ),
        (
            "TopK",
            {"x": np.zeros((3, 11), np.float32), "k": np.array([-1])},
            "'k' of y.sizewithin is -1; expected 0 to 11.",
        ),
        (
            "Range of integers",
            {"start": np.array(0), "limit": np.array(21), "step": np.array(1)},
            "'length of numbers' of numbers.sizewithin is 21; expected 0 to 20.",
        ),
        (
            "Range of integers",
            {"start": np.array(0), "limit": np.array(2), "step": np.array(0)},
            "'length of numbers' of numbers.sizewithin is 1099511627776; expected 0 to 20.",
        ),
        (
            "Loop that collects as often as data say",
            {
                "x": np.ones((2, 3), np.float32),
                "most": np.array(1e9, np.float32),
                "times": np.array(1 << 40),
            },
            "'number of rows of totals' of last.sizewithin is 13; expected 0 to 12.",
        ),
    ],
)
def test_data_beyond_a_bound_are_an_error_and_the_engine_goes_on(
    name: str, given: Inputs, message: str
) -> None:
    engine = engine_of(name)
    fenced = engine.code.frame(2, fence=4096)  # type: ignore[call-arg]
    fenced.fences[0][...] = fenced.fences[1][...] = 0xA5  # type: ignore[attr-defined]
    arrays = engine.interface.accept(given)
    for array in arrays[1]:
        array[...] = 7
    fenced.point(*arrays)
    with pytest.raises(IndexError) as caught:
        fenced.run(2)
    assert message in str(caught.value)
    for fence in fenced.fences:  # type: ignore[attr-defined]
        assert (fence == 0xA5).all()
    with pytest.raises(IndexError):
        engine.run(given)
    again = inputs_of(name, 0.5)
    check(engine.run(again), expected(name, again))
