"""runtime/model/precision_report.py: notes on precision as a table, as text, and as a picture."""

from __future__ import annotations

import re

import pytest

from tilewright.runtime.model.precision_report import LayerPrecision, PrecisionReport
from tilewright.runtime.model.report import EngineReport

BYTES = (
    "precision: 2 of 4 products multiply bytes; calibration of 'm' by minmax: 9 values, 8 items",
    "precision: '/block.1/conv': bytes: error 3.8e-02 of the power of its result; 19.4 us, in "
    "floats 30.3 us",
    "precision: 'fc': bytes: error 6.5e-03 of the power of its result; 7.2 us, in floats 7.5 us",
    "precision: 'a: b': float32: given up for the budget: alone it changes the outputs by 2.5e-02 "
    "of their power",
    "precision: the layers were ranked in part by what bytes change in their results",
    "accuracy: top1 of all: 0.98 for 0.99, 700 samples",
    "precision: 'conv1': float32: its channels are in 16 groups",
)
HALVES = (
    "precision: node 'fc1' (Gemm): weights in float16: estimated 12.8 us, in float32 20.0 us",
    "precision: node 'it's' (MatMul): data and weights in bfloat16: as asked; estimated 1 us",
    "precision: node 'conv' (Conv): float32: it has groups",
)


def test_notes_of_bytes_become_layers_remarks_and_scores() -> None:
    found = PrecisionReport.of(["pass DeadCode: unchanged", *BYTES])
    assert found.layers == (
        LayerPrecision("/block.1/conv", "bytes", "19.4 us, in floats 30.3 us", 0.038),
        LayerPrecision("fc", "bytes", "7.2 us, in floats 7.5 us", 0.0065),
        LayerPrecision(
            "a: b",
            "float32",
            "given up for the budget: alone it changes the outputs by 2.5e-02 of their power",
        ),
        LayerPrecision("conv1", "float32", "its channels are in 16 groups"),
    )
    assert found.remarks == (
        "2 of 4 products multiply bytes; calibration of 'm' by minmax: 9 values, 8 items",
        "the layers were ranked in part by what bytes change in their results",
    )
    assert found.scores == ("top1 of all: 0.98 for 0.99, 700 samples",)
    assert str(found.layers[1]) == "fc: bytes: error 6.5e-03; 7.2 us, in floats 7.5 us"
    assert str(LayerPrecision("fc", "bytes", "")) == "fc: bytes"


def test_notes_of_16_bits_have_no_remarks_and_are_counted() -> None:
    found = PrecisionReport.of(HALVES)
    assert [(one.layer, one.precision) for one in found.layers] == [
        ("fc1", "weights in float16"),
        ("it's", "data and weights in bfloat16"),
        ("conv", "float32"),
    ]
    counts = "products 3: weights in float16 1, data and weights in bfloat16 1, float32 1"
    assert found.summary == (("precision", (counts,)),)


def test_a_layer_without_an_error_or_a_reason_has_neither() -> None:
    (one,) = PrecisionReport.of(["precision: 'conv0': bytes"]).layers
    assert one == LayerPrecision("conv0", "bytes", "")
    assert PrecisionReport.of(["precision: 'conv0': bytes"]).to_json() == {
        "layers": [{"layer": "conv0", "precision": "bytes", "error": None, "reason": ""}],
        "remarks": [],
        "accuracy": [],
    }


def test_the_text_of_a_report_has_them_before_the_other_notes() -> None:
    report = EngineReport((), ("pass A: unchanged", *BYTES, "fused: a, b"))
    assert str(report) == (
        "kernels 0: none\n"
        "proofs: none\n"
        "whole engine: check off\n"
        "precision: 2 of 4 products multiply bytes; calibration of 'm' by minmax: 9 values, 8 "
        "items\n"
        "precision: the layers were ranked in part by what bytes change in their results\n"
        "accuracy: top1 of all: 0.98 for 0.99, 700 samples\n"
        "precision: /block.1/conv  bytes    error 3.8e-02; 19.4 us, in floats 30.3 us\n"
        "precision: fc             bytes    error 6.5e-03; 7.2 us, in floats 7.5 us\n"
        "precision: a: b           float32  given up for the budget: alone it changes the outputs "
        "by 2.5e-02 of their power\n"
        "precision: conv1          float32  its channels are in 16 groups\n"
        "note: pass A: unchanged\n"
        "note: fused: a, b"
    )
    assert not EngineReport((), ("pass A: unchanged",)).precision


def test_a_page_has_a_table_of_the_layers_and_no_note_twice() -> None:
    html = EngineReport((), ("a & b", *BYTES))._repr_html_()
    assert "<td>/block.1/conv</td><td>bytes</td><td>3.8e-02</td><td>19.4 us, in floats" in html
    assert '<summary style="cursor:pointer">4 products</summary>' in html
    assert "accuracy: top1 of all: 0.98 for 0.99, 700 samples" in html
    assert html.endswith(">1 note</summary><ul><li>a &amp; b</li></ul></details>")
    assert html.count("ranked in part") == 1
    hostile = PrecisionReport((LayerPrecision("<b>", "bytes", "<i>"),), ("<p>",), ())
    assert "<td>&lt;b&gt;</td><td>bytes</td><td></td><td>&lt;i&gt;</td>" in hostile._repr_html_()
    assert "precision: &lt;p&gt;<" in hostile._repr_html_()


def test_a_table_of_many_layers_opens_at_a_click() -> None:
    layers = tuple(LayerPrecision(f"fc{n}", "bytes", "") for n in range(25))
    assert "<details><summary" in PrecisionReport(layers)._repr_html_()
    assert "<details open><summary" in PrecisionReport(layers[:24])._repr_html_()
    assert ">1 product</summary>" in PrecisionReport(layers[:1])._repr_html_()


def test_a_picture_has_a_bar_for_each_error_and_says_what_has_none() -> None:
    picture = PrecisionReport.of(BYTES).picture()
    assert picture.caption == "products 4: bytes 2, float32 2"
    assert picture.svg.count("<rect") == 2
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', picture.svg)]
    assert widths[0] > widths[1]  # the larger error
    assert picture.svg.count("</title>float32</text>") == 2
    for text in ("3.8e-02", "6.5e-03", "/block.1/conv", "error, of the power of the result"):
        assert text in picture.svg


@pytest.mark.parametrize("notes", [HALVES, ()])
def test_a_picture_without_errors_has_no_scale(notes: tuple[str, ...]) -> None:
    svg = PrecisionReport.of(notes).picture().svg
    assert "<rect" not in svg
    assert "power" not in svg
