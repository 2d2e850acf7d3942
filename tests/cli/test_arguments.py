"""cli/arguments.py: what --shapes and numbers say."""

from __future__ import annotations

import argparse

import pytest

from tilewright.cli.arguments import counts, described_by, seconds, shapes_of, sizes_of, whole
from tilewright.cli.errors import UsageError


@pytest.mark.parametrize(
    ("texts", "shapes"),
    [
        ([], {}),
        (["image:1x3x224x224"], {"image": (1, 3, 224, 224)}),
        (["batch:8"], {"batch": 8}),
        (["batch:1-8-64,seq:[1-2-3]"], {"batch": (1, 8, 64), "seq": ((1, 2, 3),)}),
        (["image:1-8-64x3x224x224"], {"image": ((1, 8, 64), 3, 224, 224)}),
        (["mask:[8]"], {"mask": (8,)}),
        (["image:[1, 3, 8, 8]"], {"image": (1, 3, 8, 8)}),
        (["a:1x2,batch:4,b:[7]"], {"a": (1, 2), "batch": 4, "b": (7,)}),
        (["a:1x2", "b:3"], {"a": (1, 2), "b": 3}),
        (["input:0:1x4"], {"input:0": (1, 4)}),
        (["serving/x.y-z:2x2"], {"serving/x.y-z": (2, 2)}),
    ],
)
def test_shapes_name_inputs_and_symbols(texts: list[str], shapes: dict[str, object]) -> None:
    assert shapes_of(texts) == shapes


@pytest.mark.parametrize("text", ["image", "image:", ":1x2", "image:1xx2", "image:1x2 b:3", "a:-1"])
def test_shapes_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        shapes_of([text])
    assert str(caught.value) == (
        f"UsageError: --shapes: cannot read '{text}'; expected NAME:SIZES. [cli-shapes]\n"
        "  Hint: --shapes image:1x3x224x224 for an input; --shapes batch:1 for a symbol."
    )


def test_sizes_of_random_inputs_are_numbers() -> None:
    assert sizes_of(["batch:3,seq:17"]) == {"batch": 3, "seq": 17}
    with pytest.raises(UsageError) as caught:
        sizes_of(["batch:3x4"])
    assert str(caught.value) == (
        "UsageError: --sizes: 'batch' has several sizes; expected one. [cli-sizes]\n"
        "  Hint: --sizes batch:3,seq:17."
    )
    with pytest.raises(UsageError, match="--sizes: cannot read 'batch'"):
        sizes_of(["batch"])


def test_only_the_part_that_cannot_be_read_is_shown() -> None:
    with pytest.raises(UsageError, match="cannot read 'b=2'"):
        shapes_of(["a:1,b=2"])


def test_numbers_are_read() -> None:
    assert counts("1,2, 16") == (1, 2, 16)
    assert whole("0") == 0
    assert seconds("0.5") == 0.5


@pytest.mark.parametrize("text", ["", "x", "1,", "0", "-1", "1.5"])
def test_what_is_no_list_of_counts_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        counts(text)


@pytest.mark.parametrize("text", ["", "x", "-1", "inf", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a number of seconds"):
        seconds(text)


def test_a_description_is_the_first_paragraph_behind_the_verb() -> None:
    assert described_by("`tilewright fly`: rise and\nsoar.\n\nMore.") == "Rise and soar."
