"""codegen/text/tied_source.py: the source beside its nest, in a notebook alone."""

from __future__ import annotations

import html
import pickle
import re

import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.text.tied_source import TiedSource, beside_nest
from tilewright.runtime.kernel import Kernel
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.html import highlight
from tilewright.tir.text.source_text import SourceText

ANY = Target.parse("c:scalar")


def scaled() -> PrimFunc:
    X = te.placeholder((8,), "float32", name="X")
    return te.func(X, te.compute((8,), lambda i: X[i] * 2.0, name="Y"), name="scaled")


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    return tw.build(scaled(), "c:scalar")


def read(shown: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", shown))


def columns(shown: str) -> list[str]:
    return re.findall("<pre .*?</pre>", shown, re.DOTALL)


def classes(column: str) -> dict[str, str]:
    """The classes of each line that has some."""
    found = re.findall(r'<span style="[^"]*" class="([^"]*)"[^>]*>(.*?)\n</span>', column)
    return {read(line).strip(): names for names, line in found}


@pytest.mark.needs_cc
def test_as_text_it_is_the_source(kernel: Kernel) -> None:
    source = kernel.source
    assert isinstance(source, TiedSource)
    assert source == kernel.artifact.source
    assert repr(source) == str(source) == str(kernel.artifact.source)


@pytest.mark.needs_cc
def test_both_columns_hold_their_whole_text(kernel: Kernel) -> None:
    assert kernel.schedule is not None
    nest, source = columns(kernel.source._repr_html_())
    assert read(nest) == f"{kernel.schedule.func}\n"
    assert read(source) == f"{kernel.source}\n"


@pytest.mark.needs_cc
def test_lines_that_belong_together_share_a_class_which_the_sheet_names(kernel: Kernel) -> None:
    shown = kernel.source._repr_html_()
    nest, source = map(classes, columns(shown))
    assert nest == {
        "for i in range(8):": "n1",
        'with block("Y", vi=spatial(8, i)):': "n2",
        "Y[vi] = X[vi] * 2.0": "n2",
    }
    assert source == {
        "for (int64_t i = 0; i < 8; i++) { /* serial i: Y */": "n1",
        "Y[i] = X[i] * 2.0f;": "n2",
        "}": "n1",
    }
    (name,) = re.findall(r'<div class="(tied-\w+)"', shown)
    for place, state in (("n1", "hover"), ("n1", "focus"), ("n2", "hover"), ("n2", "focus")):
        assert f".{name}:has(.{place}:{state}) .{place}" in shown


@pytest.mark.needs_cc
def test_it_brings_nothing_that_runs_or_is_loaded(kernel: Kernel) -> None:
    shown = kernel.source._repr_html_()
    assert not re.search(r"<script|\bon\w+=|url\(|https?:|@import|<link", shown)


@pytest.mark.needs_cc
def test_pickled_it_is_the_source_alone(kernel: Kernel) -> None:
    loaded = pickle.loads(pickle.dumps(kernel.source))
    assert type(loaded) is SourceText
    assert loaded == kernel.source


def test_a_source_without_marks_is_shown_alone() -> None:
    source = beside_nest("for (;;) {}", scaled())
    assert type(source) is SourceText
    assert source._repr_html_() == highlight("for (;;) {}", source._language)
