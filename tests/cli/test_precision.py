"""cli/precision.py and cli/calibrate.py: from a model and a folder to an engine of bytes, and what
contradicts itself on the way.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.autotune.log.file import read_log
from tilewright.cli.calibrate import METHODS, WEIGHTS
from tilewright.cli.precision import METRICS, GivenPrecision, add_precision, precision_of
from tilewright.graph.precision.accuracy import METRICS as KNOWN_METRICS
from tilewright.graph.precision.calibration.ranges import METHODS as KNOWN_METHODS
from tilewright.graph.precision.layers import WEIGHTS as KNOWN_WEIGHTS
from tilewright.tir.errors import TilewrightError
from tilewright.tir.text.canonical import workload_key

from .conftest import Command

ROWS, INNER, CLASSES = 16, 64, 8
TARGET = ("--target", "c:avx2")  # whose products of bytes need no instruction that is rare


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x float32[16, 64] -> fc1, relu, fc2 -> y float32[16, 8]."""
    rng = np.random.default_rng(0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, INNER])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, CLASSES])
    shapes = {"w1": (INNER, INNER), "w2": (INNER, CLASSES)}
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape, dtype=np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], "fc1"),
        helper.make_node("Relu", ["a"], ["b"], "relu"),
        helper.make_node("MatMul", ["b", "w2"], ["y"], "fc2"),
    ]
    graph = helper.make_graph(nodes, "classifier", [x], [y], weights)
    path = tmp_path_factory.mktemp("models") / "classifier.onnx"
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory, classifier: Path) -> Path:
    """A folder of three runs, and a folder "held" of two with what is expected."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(1)
    (folder / "held").mkdir()
    weights = {w.name: numpy_helper.to_array(w) for w in onnx.load(classifier).graph.initializer}
    for number in range(3):
        x = rng.standard_normal((ROWS, INNER), dtype=np.float32)
        np.savez(folder / f"{number}.npz", x=x)
        scores = np.maximum(x @ weights["w1"], 0) @ weights["w2"]
        np.savez(folder / "held" / f"{number}.npz", x=x, expected=scores.argmax(1))
    return folder


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory, classifier: Path, data: Path) -> Path:
    path = tmp_path_factory.mktemp("calibrations") / "classifier.npz"
    return tw.calibrate(classifier, data).save(path)


def given(*arguments: str | Path) -> GivenPrecision:
    parser = argparse.ArgumentParser()
    add_precision(parser)
    return precision_of(parser.parse_args([str(argument) for argument in arguments]))


def refused(*arguments: str | Path) -> str:
    with pytest.raises(TilewrightError) as caught:
        given(*arguments)
    return str(caught.value)


def test_the_words_are_those_of_the_library() -> None:
    assert METRICS == KNOWN_METRICS
    assert set(METHODS) == set(KNOWN_METHODS)
    assert WEIGHTS == KNOWN_WEIGHTS


def test_a_type_is_of_all_products_or_of_those_that_are_named(calibration: Path) -> None:
    assert given() == GivenPrecision()
    assert precision_of(argparse.Namespace()) == GivenPrecision()  # of a verb without the options
    assert given("--precision", "bfloat16").precision == "bfloat16"
    pair = given("--precision", "a=b=int8", "--precision", "fc=float32")
    assert pair.precision == {"a=b": "int8", "fc": "float32"}
    assert (pair.kinds, str(pair)) == (("int8",), "a=b=int8, fc=float32")
    assert (GivenPrecision().kinds, given("--precision", "float32").kinds) == ((), ())
    found = given("--precision", "int8", "--calibration", calibration).calibration
    assert found is not None
    assert found.key == tw.Calibration.load(calibration).key


@pytest.mark.parametrize(
    "texts", [("int8", "float16"), ("int8", "fc=float16"), ("=int8",), ("fc=int8", "=float16")]
)
def test_types_that_contradict_each_other_are_refused(texts: tuple[str, ...]) -> None:
    arguments = [part for text in texts for part in ("--precision", text)]
    assert refused(*arguments) == (
        f"UsageError: --precision: {', '.join(map(repr, texts))} contradict each other; expected "
        "one type for all products, or one LAYER=TYPE for each of some layers. [cli-precision]\n"
        "  Hint: --precision int8, or --precision fc1=int8 --precision fc2=bfloat16."
    )


def test_a_budget_needs_a_metric_and_data(tmp_path: Path) -> None:
    for option in ("--max-drop", "--held-out"):
        assert refused(option, "0") == (
            f"UsageError: {option}: no --accuracy is given, which says what is measured; expected "
            "one of top1, agreement, error. [cli-accuracy]"
        )
    hint = "with files that np.savez('0.npz', x=images, expected=labels) writes."
    assert refused("--accuracy", "top1") == (
        "UsageError: --accuracy: 'top1' is measured on data, and none are given; expected "
        f"--held-out. [cli-accuracy-data]\n  Hint: --held-out FOLDER, {hint}"
    )
    for folder in (tmp_path, tmp_path / "nosuch"):
        assert refused("--accuracy", "error", "--held-out", folder) == (
            f"UsageError: --held-out: '{folder}' is no folder with .npz files; expected one for "
            f"each run. [cli-held-out]\n  Hint: a folder {hint}"
        )


def test_held_out_files_are_read_in_order_with_what_is_expected(tmp_path: Path) -> None:
    for number in (1, 0):
        np.savez(tmp_path / f"{number}.npz", x=np.full(2, number), expected=[number])
    (tmp_path / "notes.txt").touch()
    found = given("--accuracy", "top1", "--max-drop", "0.02", "--held-out", tmp_path).accuracy
    assert found is not None
    assert (found.metric, found.max_drop) == ("top1", 0.02)
    items = [(dict(inputs), expected) for inputs, expected in found.data]
    assert [(list(inputs), list(inputs["x"]), list(expected)) for inputs, expected in items] == [
        (["x"], [0, 0], [0]),
        (["x"], [1, 1], [1]),
    ]
    np.savez(tmp_path / "2.npz", x=np.zeros(2), z=np.zeros(1))
    assert refused("--accuracy", "top1", "--held-out", tmp_path) == (
        f"UsageError: --held-out: '{tmp_path / '2.npz'}' has no array 'expected', which top1 "
        "compares with; it has 'x', 'z'. [cli-held-out-expected]\n"
        "  Hint: --accuracy agreement compares with float32, and needs none."
    )
    other = given("--accuracy", "agreement", "--held-out", tmp_path).accuracy
    assert other is not None
    assert (other.max_drop, [expected for _, expected in other.data][2]) == (0.01, None)
    (tmp_path / "2.npz").write_bytes(b"PK\x03\x04")
    said = refused("--accuracy", "agreement", "--held-out", tmp_path)
    assert f"--held-out: '{tmp_path / '2.npz'}' is no file of arrays" in said


@pytest.mark.needs_cc
def test_calibrate_writes_what_the_function_gives(
    tilewright: Command, classifier: Path, data: Path
) -> None:
    done = tilewright("calibrate", classifier, data, "-o", "c.npz", "--method", "mse")
    found = tw.Calibration.load("c.npz")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{found.title}\nwritten    c.npz\n"
    assert found.key == tw.calibrate(classifier, data, method="mse").key
    assert (found.method, found.items) == ("mse", 3)
    options = ("--equalise", "--smooth", "0.5", "--most", "2", "--json")
    done = tilewright("calibrate", classifier, data, "-o", "c.npz", *options)
    listed = json.loads(done.out)
    found = tw.Calibration.load("c.npz")
    assert (listed["items"], listed["method"], listed["file"]) == (2, "minmax", "c.npz")
    assert found.key == tw.calibrate(classifier, data, equalise=True, smooth=0.5, most=2).key
    assert listed["ranges"] == {name: list(ends) for name, ends in found.ranges.items()}
    assert listed["divided"] == sorted(found.factors)
    assert listed["divided"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nosuch", "-o", "c.npz"), "the folder 'nosuch' cannot be read"),
        ((".", "-o", "c.npz"), "the folder '.' has no .npy or .npz file"),
        ((".", "-o", "c.npz", "--smooth", "2"), "option smooth=2.0 has no meaning"),
        ((".", "-o", "c.npz", "--most", "0"), "option most=0 has no meaning"),
        ((".", "-o", "c.npz", "--method", "max"), "invalid choice: 'max'"),
        ((".",), "the following arguments are required: -o/--output"),
    ],
)
def test_calibrate_refuses_what_it_cannot_read(
    arguments: tuple[str, ...], said: str, tilewright: Command, classifier: Path
) -> None:
    done = tilewright("calibrate", classifier, *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert not Path("c.npz").exists()


def test_an_engine_is_not_calibrated(tilewright: Command) -> None:
    done = tilewright("calibrate", "old.twe", ".", "-o", "c.npz")
    assert (done.code, done.out, done.err) == (
        2,
        "",
        "UsageError: calibrate: 'old.twe' is an engine, whose precision was decided when it was "
        "compiled; expected a model. [cli-calibrate-engine]\n",
    )


@pytest.mark.needs_cc
def test_a_model_is_compiled_to_bytes_and_explained(
    tilewright: Command, classifier: Path, data: Path, calibration: Path
) -> None:
    asked = ("--precision", "int8", "--calibration", calibration, *TARGET)
    done = tilewright("compile", classifier, *asked, "-o", "c.twe")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^precision +2 of 2 products multiply bytes; calibration of", done.out, re.M)
    said = tilewright("explain", "c.twe").out
    assert "\nprecision: fc1  bytes\nprecision: fc2  bytes\nnote: " in said
    listed = json.loads(tilewright("explain", "c.twe", "--json").out)["precision"]["layers"]
    assert [(one["layer"], one["precision"]) for one in listed] == [
        ("fc1", "bytes"),
        ("fc2", "bytes"),
    ]
    one = ("--precision", "fc2=int8", "--calibration", calibration, *TARGET)
    done = tilewright("explain", classifier, *one)
    assert "\nprecision: fc1  float32  not asked for\nprecision: fc2  bytes\n" in done.out
    done = tilewright("explain", "c.twe", *one[:2])
    assert (done.code, "--precision is given with the engine 'c.twe'" in done.err) == (2, True)


@pytest.mark.needs_cc
@pytest.mark.isa
def test_an_accuracy_is_measured_on_what_was_held_out(
    tilewright: Command, classifier: Path, data: Path, calibration: Path
) -> None:
    asked = ("--precision", "int8", "--calibration", calibration)
    budget = ("--accuracy", "top1", "--max-drop", "0.5", "--held-out", data / "held")
    done = tilewright("compile", classifier, *asked, *budget, "-o", "c.twe", "--json")
    found = json.loads(done.out)["precision"]
    assert (done.code, len(found["layers"])) == (0, 2)
    whole, unsure = found["scores"]
    narrow = whole.pop("narrow")
    assert list(whole.values()) == ["top1", "all", 48, 1.0, 0.5]
    assert 0.5 <= narrow <= 1
    assert (unsure["name"], unsure["most_drop"]) == ("low confidence", None)
    assert found["layers"][0]["times"]["floats"] > 0


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--precision", "int8"), 2, "[compile-calibration]"),
        (("--precision", "int7"), 2, "[compile-option]"),
        (("--calibration", "nosuch.npz"), 2, "'nosuch.npz' is no calibration"),
        (("--precision", "fc3=float16"), 2, "[precision-name]"),
        (("--accuracy", "top5"), 2, "invalid choice: 'top5'"),
    ],
)
def test_a_precision_that_cannot_be_is_refused_with_a_code(
    arguments: tuple[str, ...], code: int, said: str, tilewright: Command, classifier: Path
) -> None:
    done = tilewright("compile", classifier, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


@pytest.mark.needs_cc
def test_ranges_of_another_model_and_names_of_none_are_mistakes_of_the_caller(
    tilewright: Command, classifier: Path, tiny: Path, calibration: Path
) -> None:
    asked = ("--precision", "int8", "--calibration", calibration, *TARGET)
    done = tilewright("compile", tiny, *asked)
    assert (done.code, "[calibration-model]" in done.err) == (2, True)
    done = tilewright("compile", classifier, "--precision", "fc3=int8", *asked[2:])
    assert (done.code, "[bytes-name]" in done.err) == (2, True)
    scalar = ("--target", "c:scalar")  # where bytes are never faster
    done = tilewright("compile", classifier, *asked[:4], *scalar)
    assert (done.code, "[bytes-target]" in done.err) == (3, True)


@pytest.mark.needs_cc
def test_bytes_are_timed_beside_float32_and_how_far_they_are_off_is_said(
    tilewright: Command, classifier: Path, data: Path, calibration: Path
) -> None:
    asked = ("--precision", "int8", "--calibration", calibration, *TARGET)
    asked = (*asked, "--load-inputs", data / "0.npz", "--threads", "1")
    effort = ("--iterations", "1", "--duration", "0")
    done = tilewright("bench", classifier, *asked, *effort)
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^precision +int8\n +2 of 2 products multiply bytes; ", done.out, re.M)
    assert "allowed: any difference: bytes round by their ranges; --rtol R says" in done.out
    off = r"^ +float32, 1 thread: y differs by [\d.]+, 0\.0\d+ of its largest magnitude$"
    assert re.search(off, done.out, re.M)
    assert re.search(r"^ +float32 +[\d.]+ [mu]s", done.out, re.M)
    # a bound that is asked for is held, and nothing is timed beyond it
    done = tilewright("bench", classifier, *asked, *effort, "--rtol", "1e-6")
    assert (done.code, "float32, 1 thread: different" in done.out) == (1, True)
    assert "latency" not in done.out
    done = tilewright("bench", classifier, *asked, "--iterations", "0", "--json")
    found = json.loads(done.out)
    assert (found["equal"], [block["held"] for block in found["blocks"]]) == (True, [False])
    assert list(found["blocks"][0]["settings"]) == ["float32"]
    assert [one["layer"] for one in found["precision"]["layers"]] == ["fc1", "fc2"]


@pytest.mark.needs_cc
def test_16_bits_are_held_to_what_they_may_be_off(tilewright: Command, classifier: Path) -> None:
    asked = ("--precision", "fc1=bfloat16", "--iterations", "0", "--threads", "1")
    done = tilewright("bench", classifier, *asked)
    assert (done.code, done.err) == (0, "")
    assert "allowed: 2e-01 (float32) of an output's largest magnitude" in done.out
    assert "float32, 1 thread: equal; y: error " in done.out
    assert re.search(r"^precision +fc1=bfloat16\n +.*in bfloat16 1$", done.out, re.M)


def test_float32_alone_is_nothing_to_time_against(tilewright: Command, classifier: Path) -> None:
    done = tilewright("bench", classifier, "--precision", "float32")
    assert (done.code, "[cli-bench-alone]" in done.err) == (2, True)


@pytest.mark.needs_cc
def test_a_precision_is_verified_within_what_is_allowed(
    tilewright: Command, classifier: Path, calibration: Path
) -> None:
    bytes_ = ("--precision", "int8", "--calibration", calibration, *TARGET)
    against = ("--against", "reference", "--seeds", "1")
    assert tilewright("verify", classifier, *bytes_, *against, "--tolerance", "0.1").code == 0
    done = tilewright("verify", classifier, *bytes_, *against, "--rtol", "1e-5")
    assert (done.code, "different" in done.out) == (1, True)
    done = tilewright("verify", classifier, *bytes_, *against)
    assert (done.code, "[verify-bytes-bound]" in done.err) == (2, True)
    halves = ("--precision", "fc1=float16", *against)
    assert tilewright("verify", classifier, *halves).code == 0
    done = tilewright("verify", classifier, *halves, "--intermediates")
    assert (done.code, "[verify-precision-inside]" in done.err) == (2, True)


@pytest.mark.needs_cc
@pytest.mark.isa
def test_compile_finds_what_was_tuned_for_its_precision(
    tilewright: Command, classifier: Path, calibration: Path, tmp_path: Path
) -> None:
    log = tmp_path / "int8.jsonl"
    asked = ("--precision", "int8", "--calibration", calibration)
    done = tilewright("tune", classifier, *asked, "--log", log, "--trials", "4")
    assert done.code == 0, done.err
    told = " ".join(done.out.split())
    same = f"{classifier} --precision int8 --calibration {calibration} --log {log}"
    assert told.endswith(f"use tilewright compile {same}")
    listed = tilewright("log", "check", classifier, *asked, "--log", log, "--json")
    kernels = json.loads(listed.out)["kernels"]
    assert kernels
    engine = tw.compile(
        classifier,
        precision="int8",
        calibration=tw.Calibration.load(calibration),
        schedules=tw.TuningLog(log),
        verify="off",
    )
    functions = {kernel.name for kernel in engine.explain().kernels}
    assert {one["kernel"] for one in kernels} == functions
    keys = {workload.key for workload in read_log(log).workloads}
    assert engine.parts.plain is not None
    found = {workload_key(func) for func in engine.parts.plain.model().program.functions}
    assert found <= keys
    # of the model in float32 the log has none of its products
    plain = json.loads(tilewright("log", "check", classifier, "--log", log, "--json").out)
    assert not any(one["tuned"] for one in plain["kernels"])


def test_what_an_accuracy_takes_is_not_known_without_a_compile(
    tilewright: Command, classifier: Path, calibration: Path, tmp_path: Path
) -> None:
    asked = ("--precision", "int8", "--calibration", calibration, "--log", tmp_path / "log.jsonl")
    (tmp_path / "log.jsonl").touch()
    for verb in (("tune",), ("log", "check")):
        done = tilewright(*verb, classifier, *asked, "--accuracy", "top1")
        assert done.code == 2
        assert (
            "--accuracy is given, and what an accuracy takes is measured in each compile; expected "
            "the types of products. [cli-types-accuracy]" in " ".join(done.err.split())
        )
        assert "--held-out" not in tilewright(*verb, "--help").out
