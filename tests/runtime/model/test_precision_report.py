"""runtime/model/precision_report.py: precision as a table, as text, and as a picture."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.runtime.model.precision_report import (
    LayerPrecision,
    LayerTimes,
    PrecisionReport,
    SliceScore,
)
from tilewright.runtime.model.report import EngineReport

BYTES = PrecisionReport(
    (
        LayerPrecision(
            "/block.1/conv", "bytes", "", 0.038, LayerTimes(narrow=19.4e-6, floats=30.3e-6)
        ),
        LayerPrecision("fc", "bytes", "", 0.0065, LayerTimes(narrow=7.2e-6, floats=7.5e-6)),
        LayerPrecision("a: b", "float32", "given up for the budget"),
        LayerPrecision("conv1", "float32", "its channels are in 16 groups"),
    ),
    ("2 of 4 products multiply bytes; calibration of 'm'", "the layers were ranked in part"),
    (
        SliceScore("top1", "all", 700, 0.99, 0.98, 0.01),
        SliceScore("top1", "low confidence", 70, 0.9, 0.875, None),
    ),
)
HALVES = PrecisionReport(
    (
        LayerPrecision(
            "fc1",
            "weights in float16",
            "",
            None,
            LayerTimes(narrow=12.8e-6, floats=2e-5, is_estimate=True),
        ),
        LayerPrecision("it's", "data and weights in bfloat16", "as asked"),
        LayerPrecision("conv", "float32", "it has groups"),
    ),
    accuracy=("beside the model in float64, 'y' is off by 0.0001",),
)


def test_a_layer_is_told_with_its_error_the_reason_and_the_times() -> None:
    assert list(map(str, BYTES.layers[1:3])) == [
        "fc: bytes: error 6.5e-03; 7.2 us, in float32 7.5 us",
        "a: b: float32: given up for the budget",
    ]
    assert str(HALVES.layers[0]) == (
        "fc1: weights in float16: estimated 12.8 us, in float32 20.0 us"
    )
    assert str(LayerPrecision("fc", "bytes")) == "fc: bytes"
    both = LayerPrecision("fc", "float32", "slower", 0.1, LayerTimes(narrow=2e-6, floats=1e-6))
    assert str(both) == "fc: float32: error 1.0e-01; slower; 2.0 us, in float32 1.0 us"


def test_a_score_is_told_with_what_is_asked_of_it() -> None:
    whole, unsure = BYTES.scores
    assert str(whole) == "top1 of all: 0.98, in float32 0.99; 700 samples, at most 0.01 lower"
    assert str(unsure) == (
        "top1 of low confidence: 0.875, in float32 0.9; 70 samples, not held to the budget"
    )
    assert unsure.is_within
    assert unsure.drop == pytest.approx(0.025)
    assert not SliceScore("top1", "edges", 7, 0.99, 0.9, 0.01).is_within
    assert SliceScore("top1", "edges", 7, 0.5, 0.25, 0.25).is_within


def test_layers_of_16_bits_have_no_remarks_and_are_counted() -> None:
    counts = "products 3: weights in float16 1, data and weights in bfloat16 1, float32 1"
    assert HALVES.summary == (("precision", (counts,)), ("accuracy", HALVES.accuracy))
    assert HALVES.rounded == HALVES.layers[:2]
    assert BYTES.rounded == ()


def test_of_a_layer_that_multiplies_no_bytes_16_bits_say_what_it_computes_with() -> None:
    kept = LayerPrecision(
        "fc", "float32", "slower with bytes", 0.1, LayerTimes(narrow=2e-6, floats=1e-6)
    )
    one = PrecisionReport((BYTES.layers[0], kept), ("one",), BYTES.scores)
    half = LayerPrecision(
        "fc",
        "weights in float16",
        "as asked",
        None,
        LayerTimes(narrow=5e-7, floats=1e-6, is_estimate=True),
    )
    found = one.with_others(PrecisionReport((half, HALVES.layers[2]), ("two",), (), ("three",)))
    assert found.layers == (
        BYTES.layers[0],
        replace(half, reason="as asked; no bytes: slower with bytes", error=0.1),
        HALVES.layers[2],
    )
    assert (found.remarks, found.scores, found.accuracy) == (
        ("one", "two"),
        BYTES.scores,
        ("three",),
    )
    assert one.with_others(PrecisionReport()) == one


def test_the_text_of_a_report_has_them_before_the_notes() -> None:
    report = EngineReport((), ("pass A: unchanged", "fused: a, b"), precision=BYTES)
    assert str(report) == (
        "kernels 0: none\n"
        "proofs: none\n"
        "whole engine: check off\n"
        "precision: 2 of 4 products multiply bytes; calibration of 'm'\n"
        "precision: the layers were ranked in part\n"
        "accuracy: top1 of all: 0.98, in float32 0.99; 700 samples, at most 0.01 lower\n"
        "accuracy: top1 of low confidence: 0.875, in float32 0.9; 70 samples, not held to the "
        "budget\n"
        "precision: /block.1/conv  bytes    error 3.8e-02; 19.4 us, in float32 30.3 us\n"
        "precision: fc             bytes    error 6.5e-03; 7.2 us, in float32 7.5 us\n"
        "precision: a: b           float32  given up for the budget\n"
        "precision: conv1          float32  its channels are in 16 groups\n"
        "note: pass A: unchanged\n"
        "note: fused: a, b"
    )
    assert not EngineReport((), ("precision: 'conv0': bytes",)).precision


def test_a_page_has_a_table_of_the_layers_and_no_note_twice() -> None:
    html = EngineReport((), ("a & b",), precision=BYTES)._repr_html_()
    row = "<td>/block.1/conv</td><td>bytes</td><td>3.8e-02</td><td>19.4</td><td>30.3</td><td></td>"
    assert row in html
    assert '<summary style="cursor:pointer">4 products</summary>' in html
    assert "accuracy: top1 of all: 0.98, in float32 0.99; 700 samples" in html
    assert html.endswith(">1 note</summary><ul><li>a &amp; b</li></ul></details>")
    assert html.count("ranked in part") == 1
    assert "<td>~12.8</td><td>~20.0</td>" in HALVES._repr_html_()
    hostile = PrecisionReport((LayerPrecision("<b>", "bytes", "<i>"),), ("<p>",), ())
    cells = "<td>&lt;b&gt;</td><td>bytes</td><td></td><td></td><td></td><td>&lt;i&gt;</td>"
    assert cells in hostile._repr_html_()
    assert "precision: &lt;p&gt;<" in hostile._repr_html_()


def test_a_table_of_many_layers_opens_at_a_click() -> None:
    layers = tuple(LayerPrecision(f"fc{n}", "bytes", "") for n in range(25))
    assert "<details><summary" in PrecisionReport(layers)._repr_html_()
    assert "<details open><summary" in PrecisionReport(layers[:24])._repr_html_()
    assert ">1 product</summary>" in PrecisionReport(layers[:1])._repr_html_()


def test_a_picture_has_a_bar_for_each_error_and_says_what_has_none() -> None:
    picture = BYTES.picture()
    assert picture.caption == "products 4: bytes 2, float32 2"
    assert picture.svg.count("<rect") == 2
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', picture.svg)]
    assert widths[0] > widths[1]  # the larger error
    assert picture.svg.count("</title>float32</text>") == 2
    for text in ("3.8e-02", "6.5e-03", "/block.1/conv", "error, of the power of the result"):
        assert text in picture.svg


@pytest.mark.parametrize("report", [HALVES, PrecisionReport()])
def test_a_picture_without_errors_has_no_scale(report: PrecisionReport) -> None:
    svg = report.picture().svg
    assert "<rect" not in svg
    assert "power" not in svg
