"""Engines that read, or write, where data say along axes whose sizes a run decides: values, proofs,
files, exported C, the emulation of a GPU, and what a call says of an index that lies outside.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tests.exported import exported
from tests.graph.transformer import Writer
from tilewright.driver import compile_ahead_cuda
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import Array
from tilewright.runtime.cuda.device import availability as availability_module
from tilewright.runtime.cuda.device.availability import Unavailable
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.index_checks import IndexRangeError

pytestmark = pytest.mark.needs_cc

WIDTH = 6
SIZES = {"rows": (1, 9, 40), "batch": (1, 2, 4), "seq": (1, 5, 12), "many": (0, 3, 7)}
CHOICES = [(40, 4, 12, 7), (1, 1, 1, 0), (23, 3, 7, 1)]
INT, FLOAT = TensorProto.INT64, TensorProto.FLOAT
NAMES = ("embedded", "row", "end", "picked", "tail", "written", "added", "moved")
INPUTS = {
    "table": (FLOAT, ["rows", WIDTH]),
    "words": (INT, ["batch", "seq"]),
    "x": (FLOAT, ["batch", "seq", WIDTH]),
    "at": (INT, ["batch", 1]),
    "columns": (INT, ["batch", 3, WIDTH]),
    "places": (INT, ["many", 1]),
    "updates": (FLOAT, ["many", WIDTH]),
}


def model() -> onnx.ModelProto:
    """Each operator that takes indices, of open axes."""
    w = Writer(1)
    w.add("Exp", w.add("Gather", "table", "words"), output="embedded")
    w.add("GatherND", "x", "at", output="row", batch_dims=1)
    ends = w.add("Unsqueeze", w.add("ArgMax", "words", axis=1, keepdims=0), w.whole("behind", 1))
    w.add("GatherND", "x", ends, output="end", batch_dims=1)
    w.add("GatherElements", "x", "columns", output="picked", axis=1)
    w.add("Gather", "x", w.whole("minus", -1), output="tail", axis=1)
    w.add("ScatterND", "table", "places", "updates", output="written")
    w.add("ScatterND", "table", "places", "updates", output="added", reduction="add")
    w.add("ScatterElements", "x", "columns", "picked", output="moved", axis=1)
    given = [helper.make_tensor_value_info(n, kind, dims) for n, (kind, dims) in INPUTS.items()]
    made = [helper.make_tensor_value_info(name, FLOAT, None) for name in NAMES]
    weights = [numpy_helper.from_array(a, n) for n, a in w.weights.items()]
    graph = helper.make_graph(w.nodes, "indices", given, made, weights)
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def drawn(rows: int, batch: int, seq: int, many: int) -> dict[str, Array]:
    """Inputs with indices from both ends, at every edge."""
    rng = np.random.default_rng(rows)
    sizes = {"rows": rows, "batch": batch, "seq": seq, "many": many}
    shapes = {n: [sizes.get(str(d), d) for d in dims] for n, (_, dims) in INPUTS.items()}
    ends = {"words": rows, "at": seq, "columns": seq, "places": rows}
    given: dict[str, Array] = {}
    for name, shape in shapes.items():
        if name not in ends:
            given[name] = rng.standard_normal(shape, dtype=np.float32)  # type: ignore[arg-type]
            continue
        given[name] = rng.integers(-ends[name], ends[name], shape)  # type: ignore[arg-type]
        given[name].flat[:2] = ends[name] - 1, -ends[name]
    return given


@cache
def engine() -> Engine:
    return tw.compile(model(), "c", shapes=SIZES)


@cache
def session() -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        model().SerializeToString(), providers=["CPUExecutionProvider"]
    )


def expected(given: dict[str, Array]) -> dict[str, Array]:
    return dict(zip(NAMES, session().run(NAMES, given), strict=True))


def check(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("sizes", CHOICES)
def test_one_engine_serves_every_size(sizes: tuple[int, int, int, int]) -> None:
    given = drawn(*sizes)
    wanted = expected(given)
    for threads in (1, 3):
        check(engine().run(given, threads=threads), wanted)
    check(evaluate(import_onnx(model(), shapes=SIZES), given), wanted)


WRONG = {
    "the row behind the last one": ("words", 23, "gather_0, embedded is 23"),
    "a row before the first one": ("words", -24, "gather_0, embedded is -1"),
    "a place of the bounds alone": ("at", 7, "row is 7"),
    "an element of a row": ("columns", 11, "picked is 11"),
    "where nothing is written": ("places", 23, "written is 23"),
}


def clipped(given: dict[str, Array]) -> dict[str, Array]:
    """The nearest indices that exist."""
    ends = {"words": "rows", "at": "seq", "columns": "seq", "places": "rows"}
    sizes = {"rows": len(given["table"]), "seq": given["x"].shape[1]}
    found = {n: (given[n], sizes[ends[n]]) for n in ends}
    return given | {n: np.clip(array, -size, size - 1) for n, (array, size) in found.items()}


def wrong_inputs(name: str, value: int) -> dict[str, Array]:
    given = drawn(23, 3, 7, 4)
    given[name] = given[name].copy()
    given[name].flat[-1] = value
    return given


@pytest.mark.parametrize("case", WRONG)
def test_an_index_outside_of_this_calls_size_is_an_error_after_the_run(case: str) -> None:
    name, value, message = WRONG[case]
    given = wrong_inputs(name, value)
    outputs = {
        spec.name: np.zeros(array.shape, np.float32)
        for spec, array in zip(engine().outputs, expected(clipped(given)).values(), strict=True)
    }
    with pytest.raises(IndexRangeError, match=r"expected 0 to (rows|seq) - 1") as caught:
        engine().run(given, out=outputs)
    assert f"'index from the front' of {message}; " in str(caught.value)
    check(outputs, {**expected(clipped(given)), "end": outputs["end"]})
    check(engine().run(clipped(given)), expected(clipped(given)))  # nothing sticks to it


def test_every_kernel_is_proved_and_checked_and_the_engine_at_two_choices() -> None:
    report = engine().explain()
    assert all(kernel.proof.startswith("proved") for kernel in report.kernels)
    assert all(kernel.check == "ok" for kernel in report.kernels)
    assert report.whole.count("ok on 1, 2 and 3 threads, equal bits") == 2


def test_saved_and_interpreted_engines_give_the_same(tmp_path: Path) -> None:
    loaded = tw.load(engine().save(tmp_path / "indices.twe"))
    interpreted = tw.compile(model(), "python", shapes=SIZES, verify="off")
    given, wrong = drawn(5, 2, 3, 2), wrong_inputs("words", 23)
    wanted = engine().run(given)
    for name, array in loaded.run(given).items():
        assert array.tobytes() == wanted[name].tobytes()
    check(interpreted.run(given), wanted)
    for other in (loaded, interpreted):
        with pytest.raises(IndexRangeError, match="embedded is 23; expected 0 to rows - 1"):
            other.run(wrong)


def test_the_exported_c_has_the_same_bits_and_says_that_an_index_lies_outside(
    tmp_path: Path,
) -> None:
    library, loaded = exported(engine(), tmp_path)

    def run(given: dict[str, Array], made: dict[str, Array]) -> int:
        arrays = [given[s.name] for s in engine().inputs] + [made[s.name] for s in engine().outputs]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        told = {"rows": given["table"].shape[0], "many": given["places"].shape[0]}
        told |= dict(zip(("batch", "seq"), given["words"].shape, strict=True))
        sizes = [ctypes.c_int64(told[dim.name]) for dim in engine().parts.artifact.dims]
        return int(library.indices_run(loaded, *pointers, *sizes, None, 2))

    for sizes in CHOICES:
        given = drawn(*sizes)
        wanted = engine().run(given)
        found = {name: np.zeros_like(array) for name, array in wanted.items()}
        assert run(given, found) == 0
        assert all(found[name].tobytes() == wanted[name].tobytes() for name in NAMES)
    made = {name: np.zeros_like(a) for name, a in engine().run(drawn(23, 3, 7, 4)).items()}
    for name, value, _ in WRONG.values():
        assert run(wrong_inputs(name, value), made) == 1
        assert run(clipped(wrong_inputs(name, value)), made) == 0


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_an_engine_for_a_gpu_gives_the_same_in_the_emulation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (compile_ahead_cuda, availability_module):
        monkeypatch.setattr(module, "availability", lambda: Unavailable("none here", "get one."))
    made = tw.compile(model(), "cuda:sm_90a", shapes=SIZES, verify="off")
    assert set(made.explain().proofs) == {"proved"}
    run = tw.emulated(made, checked=True)
    for sizes in CHOICES:
        check(run.run(drawn(*sizes)), engine().run(drawn(*sizes)))
    with pytest.raises(IndexRangeError, match="embedded is 23; expected 0 to rows - 1"):
        run.run(wrong_inputs("words", 23))


def test_what_data_found_is_read_where_other_data_say() -> None:
    w = Writer(1)
    w.add("Gather", w.add("NonZero", "x"), "k", output="y", axis=1)
    given = [
        helper.make_tensor_value_info("x", FLOAT, ["n"]),
        helper.make_tensor_value_info("k", INT, ["m"]),
    ]
    made = [helper.make_tensor_value_info("y", INT, None)]
    graph = helper.make_graph(w.nodes, "found", given, made)
    proto = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    made_engine = tw.compile(proto, "c", shapes={"n": (1, 20, 50), "m": (0, 3, 8)}, verify="off")
    assert set(made_engine.explain().proofs) == {"proved"}
    x, none = np.array([0, 1, 0, 2, 3], np.float32), np.zeros(4, np.float32)

    def found(of: Array, *places: int) -> list[list[int]]:
        rows: list[list[int]] = made_engine.run({"x": of, "k": np.array(places, np.int64)})[
            "y"
        ].tolist()
        return rows

    assert found(x, 0, -1, 1) == [[1, 4, 3]]
    assert found(none) == [[]]
    with pytest.raises(IndexRangeError, match=r"of y is 3; expected 0 to \w+ - 1"):
        found(x, 0, 3)
    with pytest.raises(IndexRangeError, match=r"of y is -1; expected 0 to \w+ - 1"):
        found(none, 0)
