"""driver/check/padding.py: variants beside poisoned rows, and one that mixes rows is found."""

from __future__ import annotations

import onnx
import pytest

import tilewright as tw
from tests.graph.flow_models import INT64, model, node, value
from tilewright.driver.check.padding import check_padding
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.padded_program import PaddedRows, padded_array
from tilewright.tir.errors import InternalError
from tilewright.tir.sizes import size_of

pytestmark = pytest.mark.needs_cc

OPEN = {"n": (1, 2, 4)}


def closed(*nodes: onnx.NodeProto, kind: int | None = None) -> tuple[Engine, PaddedRows]:
    """The engine of a variant of 4 rows, and where they lie."""
    given = value("x", shape=("n", 3)) if kind is None else value("x", kind, ("n", 3))
    opened = tw.compile(
        model(list(nodes), [given], [value("y", shape=None)]),
        "c",
        shapes=OPEN,
        verify="off",
        specialise=[{"n": 4}],
    )
    (variant,) = opened.parts.variants
    (dim,) = opened.interface.dims
    ends = []
    for side in ("inputs", "outputs"):
        pairs = zip(
            getattr(opened.parts.artifact, side),
            getattr(variant.parts.artifact, side),
            strict=True,
        )
        ends.append([padded_array(one.shape, other, dim, 4) for one, other in pairs])
    arrays = [tuple(one for one in found if one is not None) for found in ends]
    return Engine(variant.parts), PaddedRows(4, *arrays)


def test_rows_apart_pass() -> None:
    check_padding(*closed(node("Softmax", ["x"], ["y"], axis=1)))
    check_padding(*closed(node("Cast", ["x"], ["y"], to=1), kind=INT64))


def test_rows_that_meet_are_found() -> None:
    with pytest.raises(InternalError) as caught:
        check_padding(*closed(node("Softmax", ["x"], ["y"], axis=0)))
    assert str(caught.value) == (
        "InternalError: compile: of 'y' of 'flow' the first 2 of 4 rows are others where those "
        "behind them hold nan; expected the same bits. [padding-check]\n"
        "  Hint: this is a defect of tilewright; please report it with the program that led here."
    )


def test_an_axis_that_is_no_multiple_of_the_rows_has_no_place() -> None:
    engine, _ = closed(node("Relu", ["x"], ["y"]))
    (dim,) = tw.compile(
        model([node("Relu", ["x"], ["y"])], [value("x", shape=("n", 3))], [value("y", shape=None)]),
        "c",
        shapes=OPEN,
        verify="off",
    ).interface.dims
    (closed_x,) = engine.parts.artifact.inputs
    size = size_of(dim)
    assert padded_array((size, 3), closed_x, dim, 3) is None
    assert padded_array((size, size), closed_x, dim, 4) is None
    assert padded_array((size,), closed_x, dim, 4) is None
