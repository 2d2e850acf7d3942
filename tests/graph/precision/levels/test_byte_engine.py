"""Engines of models of floats whose products multiply bytes: values, budgets, what is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright.graph.given_model import imported_graph
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.graph.options import Verify
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.precision.accuracy import Evaluation
from tilewright.graph.precision.channels import channel_factors
from tilewright.graph.precision.channels.channel_factors import ChannelDivision, by_inputs, rescaled
from tilewright.graph.precision.layers import find_layers
from tilewright.graph.precision.levels import byte_engine, byte_model
from tilewright.graph.precision.levels.level_form import with_levels
from tilewright.graph.precision.levels.planner import LayerChoice, PrecisionSearch
from tilewright.graph.precision.prepared import prepared_graph
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array
from tilewright.runtime.machine.host import host_target
from tilewright.tir.errors import TilewrightError

from ..digits_fixture import Images, images, network, uneven_twin
from .test_level_form import Net, normal

TARGET = host_target()
multiplies_bytes = pytest.mark.skipif(
    not (TARGET.isa == "avx2" or "vnni" in TARGET.features),
    reason="this CPU multiplies floats faster than bytes",
)
pytestmark = [pytest.mark.needs_cc]
SHAPES = {"x": (100, 1, 8, 8)}
RNG = np.random.default_rng(1)
ITEMS = [RNG.standard_normal((32, 24), np.float32) for _ in range(4)]


@cache
def uneven() -> Graph:
    """Three products, of which the second reads channels of very different ranges."""
    net = Net(32, 24)
    first = net.add(Relu(), net.linear(net.x, 24, "first"), output="relu1")
    second = net.add(Relu(), net.linear(first, 24, "second"), output="relu2")
    graph = net.finish((net.linear(second, 6, "y"),))
    factors = np.geomspace(1e-3, 1, 24).astype(np.float32)
    return rescaled(graph, {"relu1": factors})


@pytest.fixture(scope="module")
def known() -> tw.Calibration:
    return tw.calibrate(uneven(), ITEMS)


def told(engine: tw.Engine, what: str = "precision") -> list[str]:
    """The remarks and layers, or what is known of the accuracy, as text."""
    report = engine.explain().precision
    if what == "accuracy":
        return [*map(str, report.scores), *report.accuracy]
    return [*report.remarks, *map(str, report.layers)]


@cache
def digits(twin: bool) -> onnx.ModelProto:
    return uneven_twin(network()) if twin else network()


@cache
def of_digits(twin: bool, equalise: bool) -> tw.Calibration:
    """A calibration of the digits, or of their uneven twin."""
    seen, _ = images()
    data = [seen.x[at : at + 100] for at in range(0, 1000, 100)]
    return tw.calibrate(digits(twin), data, shapes=SHAPES, equalise=equalise)


def of_levels(model: onnx.ModelProto | Graph, known: tw.Calibration) -> Graph:
    """The model that an engine of bytes computes."""
    shapes = None if isinstance(model, Graph) else SHAPES
    prepared = prepared_graph(imported_graph(model, shapes, None))
    known = known.fitted(prepared)
    graph = rescaled(prepared, known.factors)
    layers = [
        replace(layer, is_by_tensor=known.weights == "tensor") for layer in find_layers(graph)[0]
    ]
    return with_levels(graph, layers, known.ranges, known.channel_means)


def scores(graph: Graph, unseen: Images) -> Array:
    parts = [evaluate(graph, {"x": unseen.x[at : at + 100]})["y"] for at in range(0, 700, 100)]
    return np.concatenate(parts)


def error(found: Array, exact: Array) -> float:
    wide = exact.astype(np.float64)
    return float(np.sum((found - wide) ** 2) / np.sum(wide**2))


@multiplies_bytes
def test_the_digits_as_bytes(tmp_path: Path) -> None:
    (_, unseen), calibration = images(), of_digits(False, False)
    model = digits(False)
    engine = tw.compile(
        model, shapes=SHAPES, precision="int8", calibration=calibration, cache=False
    )
    assert engine.verify()
    graph = of_levels(model, calibration)
    x = {"x": unseen.x[:100]}
    found, expected = engine.run(x)["y"], evaluate(graph, x)["y"]
    # a level that is rounded the other way moves what is behind it by a level
    assert np.abs(found - expected).max() <= 2e-2 * np.abs(expected).max()
    lines = told(engine)
    assert lines[0] == f"6 of 10 products multiply bytes; {calibration.title}"
    kinds = [type(node.op) for node in optimise(graph)[0].nodes]
    assert kinds.count(IntegerConv) + kinds.count(IntegerMatMul) == 6
    assert "conv2: bytes" in lines
    assert "conv3: float32: its channels are in 24 groups" in lines
    again = tw.load(engine.save(tmp_path / "digits.twe"))
    assert np.array_equal(again.run(x)["y"], found)
    assert again.explain().precision == engine.explain().precision

    first = Images(unseen.x[:700], unseen.labels[:700])
    exact = scores(imported_graph(model, SHAPES, None), unseen)
    even = scores(graph, unseen)
    assert first.accuracy(even) >= first.accuracy(exact) - 0.005
    plain = scores(of_levels(digits(True), of_digits(True, False)), unseen)
    mended = scores(of_levels(digits(True), of_digits(True, True)), unseen)
    assert first.accuracy(mended) >= first.accuracy(exact) - 0.005
    assert error(mended, exact) < 5e-4
    assert error(plain, exact) > 100 * error(mended, exact)


@multiplies_bytes
def test_a_budget_is_kept_and_each_layer_says_what_became_of_it(known: tw.Calibration) -> None:
    engine = tw.compile(
        uneven(),
        precision="int8",
        calibration=known,
        accuracy=tw.Accuracy("error", 0.002, ITEMS),
        verify="kernels",
    )
    errors = [error(engine(x), evaluate(uneven(), {"x": x})["y"]) for x in ITEMS]
    assert np.mean(errors) <= 0.002
    assert told(engine, "accuracy")[0].startswith("error of all: ")
    report = engine.explain().precision
    first, second, third = report.layers
    assert [one.layer for one in report.layers] == ["first", "second", "y"]
    assert (second.precision, second.times) == ("float32", None)
    assert second.reason.startswith("given up for the budget: alone it changes the outputs by ")
    assert all(one.error is not None and one.error > 0 for one in report.layers)
    for one in (first, third):
        assert one.times is not None
        assert not one.times.is_estimate
        is_slow = one.times.narrow > 1.05 * one.times.floats
        assert (one.precision, one.reason) == (
            ("float32", "slower with bytes") if is_slow else ("bytes", "")
        )
    (score,) = report.scores
    assert (score.metric, score.name, score.count, score.most_drop) == ("error", "all", 4, 0.002)
    assert score.drop == pytest.approx(np.mean(errors), rel=1e-3)


@multiplies_bytes
def test_a_product_that_bytes_make_slower_stays_one_of_floats(
    known: tw.Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    floats, narrow = dict.fromkeys(("first", "second", "y"), 1.0), {"first": 0.5, "second": 2.0}
    rounds = [floats, {**narrow, "y": 1.0}] * 3
    monkeypatch.setattr(byte_engine, "_seconds", lambda *_: rounds.pop(0))
    engine = tw.compile(
        uneven(),
        precision="int8",
        calibration=known,
        accuracy=tw.Accuracy("error", 0.9, ITEMS),
        verify="off",
    )
    found = engine.explain().precision.layers
    assert [(one.layer, one.precision) for one in found] == [
        ("first", "bytes"),
        ("second", "float32"),
        ("y", "bytes"),
    ]
    assert found[1].reason == "slower with bytes"
    assert found[1].times is not None
    assert (found[1].times.narrow, found[1].times.floats) == (2.0, 1.0)


@multiplies_bytes
def test_what_rounding_weights_adds_to_results_is_taken_from_biases() -> None:
    net = Net(1, 4, 8, 8)
    graph = net.finish((net.conv(net.add(Relu(), net.conv(net.x, 16, "a"), output="b"), 8, "y"),))
    items = [normal(1, 4, 8, 8, seed=n) for n in range(4)]
    known = tw.calibrate(graph, items)
    engine = tw.compile(graph, precision="int8", calibration=known, verify="off", cache=False)
    layers, exact = find_layers(graph)[0], evaluate(graph, {"x": items[0]})["y"]
    mended = with_levels(graph, layers, known.ranges, known.channel_means)
    plain = with_levels(graph, layers, known.ranges)
    one, other = (evaluate(made, {"x": items[0]})["y"] for made in (mended, plain))
    # a level that is rounded the other way changes little; what is corrected, the mean
    assert np.abs(engine(items[0]) - one).mean() < 0.1 * np.abs(one - other).mean()
    assert error(one, exact) < error(other, exact)


@multiplies_bytes
def test_smoothing_brings_a_product_back_within_the_budget() -> None:
    smooth = tw.calibrate(uneven(), ITEMS, smooth=0.5)
    plain = tw.calibrate(uneven(), ITEMS)
    errors = []
    for calibration in (plain, smooth):
        graph = rescaled(prepared_graph(uneven()), calibration.factors)
        levels = with_levels(graph, find_layers(graph)[0], calibration.ranges)
        found = [
            error(evaluate(levels, {"x": x})["y"], evaluate(uneven(), {"x": x})["y"]) for x in ITEMS
        ]
        errors.append(np.mean(found))
    assert errors[1] < errors[0] / 20


@multiplies_bytes
def test_where_nothing_keeps_the_budget_the_engine_computes_in_floats_and_says_so(
    known: tw.Calibration, caplog: pytest.LogCaptureFixture
) -> None:
    engine = tw.compile(
        uneven(),
        precision="int8",
        calibration=known,
        accuracy=tw.Accuracy("error", 1e-9, ITEMS),
        verify="off",
    )
    expected = (
        "no product may multiply bytes within a drop of 1e-09: the engine computes in float32"
    )
    assert told(engine, "accuracy")[-1] == expected
    assert expected in caplog.text
    assert told(engine)[0].startswith("0 of 3 products multiply bytes")
    exact = evaluate(uneven(), {"x": ITEMS[0]})["y"]
    assert np.abs(engine(ITEMS[0]) - exact).max() <= 1e-5 * np.abs(exact).max()


@multiplies_bytes
def test_products_that_multiply_no_bytes_may_have_operands_of_16_bits(
    known: tw.Calibration,
) -> None:
    engine = tw.compile(
        uneven(),
        precision={"y": "int8", "first": "float16"},
        calibration=known,
        verify="kernels",
        cache=False,
    )
    lines = told(engine)
    assert "y: bytes" in lines
    assert not any(line.startswith("first: float32") for line in lines)
    assert any("weights in float16" in line for line in lines)
    exact = evaluate(uneven(), {"x": ITEMS[0]})["y"]
    assert error(engine(ITEMS[0]), exact) < 1e-3


@multiplies_bytes
def test_auto_gives_up_operands_of_16_bits_before_bytes(
    known: tw.Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compiled(drop: float) -> list[str]:
        accuracy = tw.Accuracy("error", drop, ITEMS)
        engine = tw.compile(
            uneven(), precision="auto", calibration=known, accuracy=accuracy, verify="off"
        )
        return told(engine)

    given_up = " of other products was given up for the budget"
    assert not any(given_up in line for line in compiled(0.9))
    # an engine that is worse than the simulation of it
    within, search = Evaluation.is_within, PrecisionSearch.choice
    worse = list[bool]()

    def choice(self: PrecisionSearch) -> LayerChoice:
        found = search(self)
        worse.append(True)
        return found

    monkeypatch.setattr(PrecisionSearch, "choice", choice)
    monkeypatch.setattr(
        Evaluation, "is_within", lambda *given: within(*given) and not (worse and worse.pop())
    )
    lines = compiled(0.9)
    assert any(given_up in line for line in lines)
    assert not any("given up for the budget: alone" in line for line in lines)


@multiplies_bytes
def test_layers_are_chosen_by_name(known: tw.Calibration) -> None:
    def compiled(names: Mapping[str, str]) -> tw.Engine:
        return tw.compile(uneven(), precision=names, calibration=known, verify="off")

    lines = told(compiled({"y": "int8"}))
    assert lines[0].startswith("1 of 3 products multiply bytes")
    assert "first: float32: not asked for" in lines
    with pytest.raises(TilewrightError) as caught:
        compiled({"third": "int8"})
    assert str(caught.value) == (
        "BytesError: compile: precision names 'third' for int8: the model has no such product; "
        "known are 'first', 'second', 'y'. [bytes-name]"
    )


def refused(graph: Graph, **options: object) -> str:
    with pytest.raises(TilewrightError) as caught:
        tw.compile(graph, **options)  # type: ignore[call-overload]
    return str(caught.value)


def test_options_that_contradict_each_other_are_refused(known: tw.Calibration) -> None:
    graph = uneven()
    assert refused(graph, precision="int8") == (
        "OptionError: compile: option precision='int8' needs the ranges of the values that become "
        "bytes; expected calibration=... [compile-calibration]\n"
        "  Hint: tw.calibrate(model, data) finds them on data like those of later runs."
    )
    assert refused(graph, precision="auto", calibration=known) == (
        "OptionError: compile: option precision='auto' takes what is fastest within a budget; "
        "expected accuracy=... [compile-auto]\n"
        "  Hint: tw.Accuracy(metric, max_drop=0.01, data=held) is one."
    )
    assert refused(graph, calibration=known) == (
        "OptionError: compile: option calibration is of no use with precision='float32'; expected "
        "'int8' or 'auto'. [compile-no-bytes]"
    )
    assert refused(graph, precision="int8", calibration={}) == (
        "OptionError: compile: option calibration is of type dict; expected Calibration. "
        "[compile-calibration-type]\n"
        "  Hint: tw.calibrate(model, data) makes a Calibration."
    )
    assert refused(graph, precision="int8", calibration=known, accuracy=0.01) == (
        "OptionError: compile: option accuracy is of type float; expected Accuracy. "
        "[compile-calibration-type]\n"
        "  Hint: tw.Accuracy(metric, max_drop=0.01, data=held) is one."
    )


def test_targets_that_cannot_do_it_are_refused(known: tw.Calibration) -> None:
    assert refused(uneven(), precision="int8", calibration=known, target="c:neon") == (
        "BytesError: compile: precision='int8' for the target 'c:neon', whose products of bytes "
        "are slower than those of floats; expected avx512+vnni or avx2 or neon+dotprod or "
        "neon+i8mm. [bytes-target]\n"
        "  Hint: leave out precision: the engine computes in float32."
    )


def test_an_accuracy_needs_a_target_that_runs_here(
    known: tw.Calibration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tilewright.driver.backends.c.why_not_run", lambda target: "this CPU has no such thing"
    )
    accuracy = tw.Accuracy("error", 0.01, ITEMS)
    found = refused(
        uneven(), precision="int8", calibration=known, accuracy=accuracy, target="c:avx2"
    )
    assert found == (
        "AccuracyError: compile: an accuracy is measured here, and this CPU has no such thing; "
        "expected a target that this machine runs. [accuracy-target]\n"
        "  Hint: without accuracy=... all products that can multiply bytes do."
    )


@multiplies_bytes
def test_dividing_channels_is_compared_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    evened = tw.calibrate(uneven(), ITEMS, equalise=True)
    planted = replace(evened, factors={"relu1": evened.factors["relu1"]})
    monkeypatch.setattr(
        channel_factors,
        "by_inputs",
        lambda graph, node, factors: by_inputs(graph, node, factors * 2),
    )
    found = refused(uneven(), precision="int8", calibration=planted, cache=False)
    assert found.startswith(
        "InternalError: compile: dividing channels changed the model: 'y' differs by "
    )
    assert found.partition("\n")[0].endswith("[bytes-divided]")


@multiplies_bytes
@pytest.mark.parametrize("how", [{"equalise": True}, {"smooth": 0.5}], ids=str)
def test_divided_channels_pass_every_check_that_a_model_has(how: dict[str, Any]) -> None:
    """Though the values that are divided are others, under the names that the ranges are of."""
    known = tw.calibrate(uneven(), ITEMS, **how)
    assert known.factors
    engine = tw.compile(uneven(), precision="int8", calibration=known, cache=False)
    assert engine.explain().whole.startswith("ok")
    assert engine.verify()
    exact = evaluate(uneven(), {"x": ITEMS[0]})["y"]
    assert error(engine(ITEMS[0]), exact) < 1e-3
    (before,) = [node for node in uneven().nodes if node.outputs == ("relu1",)]
    after = ChannelDivision(known.factors)(prepared_graph(uneven()))
    assert before.outputs[0] not in after.types
    assert after.outputs == ("y",)


@multiplies_bytes
@pytest.mark.parametrize(("verify", "checked"), [("all", True), ("kernels", False)])
def test_what_prepares_a_model_is_compared_like_other_passes(
    known: tw.Calibration, verify: Verify, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[bool]()

    def prepared(imported: Graph, *, check: bool) -> Graph:
        seen.append(check)
        return prepared_graph(imported, check=check)

    monkeypatch.setattr(byte_model, "prepared_graph", prepared)
    tw.compile(uneven(), precision="int8", calibration=known, verify=verify, cache=False)
    assert seen == [checked]


@multiplies_bytes
def test_one_scale_for_the_whole_weight_is_what_an_uneven_network_does_not_suit() -> None:
    """As the digits of research/precision: by tensor the twin collapses, equalised it does not."""
    _, unseen = images()
    exact = scores(imported_graph(network(), SHAPES, None), unseen)
    truth = Images(unseen.x[:700], unseen.labels[:700])

    def right(twin: bool, equalise: bool) -> float:
        known = replace(of_digits(twin, equalise), weights="tensor")
        return truth.accuracy(scores(of_levels(digits(twin), known), unseen))

    assert right(False, False) >= truth.accuracy(exact) - 0.01
    assert right(True, False) < 0.5
    assert right(True, True) >= truth.accuracy(exact) - 0.01


@multiplies_bytes
def test_an_engine_has_scales_of_weights_from_the_calibration(known: tw.Calibration) -> None:
    by_tensor = tw.calibrate(uneven(), ITEMS, weights="tensor")
    assert replace(by_tensor, weights="channel").key == known.key != by_tensor.key
    for calibration in (known, by_tensor):
        engine = tw.compile(uneven(), precision="int8", calibration=calibration, verify="off")
        expected = evaluate(of_levels(uneven(), calibration), {"x": ITEMS[0]})["y"]
        assert np.abs(engine(ITEMS[0]) - expected).max() <= 2e-2 * np.abs(expected).max()
        assert (", weights by tensor, " in told(engine)[0]) is (calibration is by_tensor)


def test_a_calibration_with_factors_is_another_one() -> None:
    graph = uneven()
    evened = tw.calibrate(graph, ITEMS, equalise=True)
    assert evened.key != replace(evened, factors={}).key
    assert evened.key != replace(evened, channel_means={}).key
    assert evened.key == tw.calibrate(graph, ITEMS, equalise=True).key
    # ranges are those of what the factors divided
    inner = replace(rescaled(prepared_graph(graph), evened.factors), outputs=("relu1",))
    found = np.concatenate([evaluate(inner, {"x": x})["relu1"] for x in ITEMS])
    assert evened.ranges["relu1"][1] == pytest.approx(float(found.max()), rel=1e-5)
    assert set(evened.factors) == {"relu1", "relu2"}


def test_factors_are_refused_where_they_cannot_be_found() -> None:
    with pytest.raises(TilewrightError) as caught:
        tw.calibrate(uneven(), iter(ITEMS), smooth=0.5)
    assert str(caught.value) == (
        "OptionError: calibrate: option smooth=0.5 reads the data twice, and they are a "
        "list_iterator, which is read once. [calibrate-smooth-data]\n"
        "  Hint: a list, a folder, or a function that makes an iterator can be read again."
    )
    with pytest.raises(TilewrightError, match=r"option smooth=2 has no meaning; expected None, or"):
        tw.calibrate(uneven(), ITEMS, smooth=2)
    with pytest.raises(TilewrightError, match=r"option equalise=1 has no meaning; expected True"):
        tw.calibrate(uneven(), ITEMS, equalise=1)  # type: ignore[arg-type]
    with pytest.raises(TilewrightError, match=r"weights='row' has no meaning; expected 'channel' "):
        tw.calibrate(uneven(), ITEMS, weights="row")  # type: ignore[arg-type]
