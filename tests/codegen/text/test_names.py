"""Names of users and models become C identifiers."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.codegen.text.names import CNames, mangle
from tilewright.tir.expr import Var


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A", "A"),
        ("conv1/weights:0", "conv1_weights_0"),
        ("int", "v_int"),
        ("restrict", "v_restrict"),
        ("3x3", "v_3x3"),
        ("", "v"),
        ("größe", "gr_e"),
        ("__m512", "m512"),
        ("_mm512_add_ps", "mm512_add_ps"),
        ("INT64_MIN", "v_INT64_MIN"),
        ("tw_floordiv", "v_tw_floordiv"),
        ("thread", "v_thread"),
        ("x */ evil(); /*", "x_evil"),
        ("a" * 99, "a" * 40),
    ],
)
def test_a_name_is_readable_legal_and_short(name: str, expected: str) -> None:
    assert mangle(name) == expected


@given(st.text())
def test_every_text_becomes_an_identifier(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,41}", mangle(name))
    assert "__" not in mangle(name)


def test_names_in_scope_differ_and_are_free_again_after_it() -> None:
    names = CNames()
    outer = names.declare(Var("i"))
    before = names.used
    assert names.declare(Var("i")) == "i_1"
    names.forget_uses(before)
    assert (outer, names.declare(Var("i"))) == ("i", "i_1")


def test_a_name_of_the_back_end_is_never_given() -> None:
    names = CNames()
    names.reserve("tw_lanes")
    assert names.declare(Var("tw_lanes")) == "v_tw_lanes"
