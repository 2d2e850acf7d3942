"""tir/te/suppressions.py: te.suppress is one block, and refuses what does not fit."""

from __future__ import annotations

import pytest

from tilewright import te
from tilewright.tir.errors import IRError, IRTypeError
from tilewright.tir.suppression import SIDES

SHARE = te.placeholder((), "float32", name="share")
COUNT = te.placeholder((2,), "int32", name="count")


def boxes(size: object = 5) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Tensor, te.Tensor]:
    left, top, right, bottom, area = (
        te.placeholder((2, size), "float32", name=name)  # type: ignore[arg-type]
        for name in SIDES
    )
    return left, top, right, bottom, area


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        (COUNT[0], "count[0]"),
        (te.placeholder((te.dim("n", 1, 9),), "int32", name="open"), "'open'"),
        (te.state((2,), "int32", name="S"), "'S'"),
    ],
)
def test_whole_tensors_of_known_sizes_are_wanted(what: object, shown: str) -> None:
    with pytest.raises(IRTypeError) as error:
        te.suppress(boxes(), what, SHARE, most=3, name=("kept", "number"))  # type: ignore[arg-type]
    text = str(error.value)
    assert text.startswith(f"IRTypeError: te.suppress: 'kept, number' reads {shown}")
    assert text.endswith("; expected tensors whose sizes are numbers. [te-suppress-tensor]")


def test_shapes_fit() -> None:
    with pytest.raises(IRError) as error:
        te.suppress(boxes(), SHARE, SHARE, most=3, name=("kept", "number"))
    assert str(error.value) == (
        "IRError: te.suppress: 'share' is float32[]; expected an int32 for each row of float32 "
        "boxes. [te-suppress-shape]"
    )


def test_it_is_one_block_between_others() -> None:
    sides = boxes()
    kept, number = te.suppress(sides, COUNT, SHARE, most=3, name=("kept", "number"))
    more = te.compute((2,), lambda i: number[i] + 1, name="more")
    func = te.func(*sides, COUNT, SHARE, kept, more, name="f")
    assert [block.name for block in func.blocks] == ["kept", "more"]
    assert (kept.shape, number.shape, str(kept.type)) == ((2, 3), (2,), "int32")
