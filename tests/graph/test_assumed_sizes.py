"""Sizes of which nobody says anything: which bounds are assumed, and who tells of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.graph.flow_models import model, node, value
from tests.graph.open_models import encoder, perceptron
from tilewright.graph.assumed_sizes import BATCH, LENGTH
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.arrays import ArgumentError, Array
from tilewright.runtime.engine.engine import Engine

Declared = tuple[int | str | None, ...]
Bounds = dict[str, tuple[int, int, int]]


@cache
def engine() -> Engine:
    return tw.compile(perceptron(), "c")


def rows(batch: int) -> Array:
    return np.random.default_rng(batch).standard_normal((batch, 24), dtype=np.float32)


def assumed(*shapes: Declared, **said: object) -> Bounds:
    """The bounds assumed for inputs x0, x1, ... of these shapes."""
    inputs = [value(f"x{number}", shape=shape) for number, shape in enumerate(shapes)]
    proto = model([node("Relu", ["x0"], ["y"])], inputs, [value("y")])
    graph = import_onnx(proto, shapes=said)  # type: ignore[arg-type]
    return {dim.name: (dim.low, dim.usual, dim.high) for dim in graph.dims if dim.assumed}


@pytest.mark.parametrize(
    ("shapes", "bounds"),
    [
        ([("batch", 3)], {"batch": BATCH}),
        ([("batch", "seq")], {"batch": BATCH, "seq": LENGTH}),
        ([("words",)], {"words": LENGTH}),
        ([("n", "n")], {"n": LENGTH}),
        ([("n", 3), (4, "n")], {"n": LENGTH}),
        ([("n", 3), ("n", 4, "past")], {"n": BATCH, "past": LENGTH}),
        ([("n", 3), ("n",)], {"n": LENGTH}),
        ([(None, 3)], {"x0[0]": BATCH}),
        ([(2, 3)], {}),
    ],
)
def test_the_first_axis_of_an_input_is_a_batch_and_every_other_one_a_length(
    shapes: list[Declared], bounds: Bounds
) -> None:
    assert assumed(*shapes) == bounds


def test_what_is_said_is_not_assumed() -> None:
    assert assumed(("batch", "seq"), seq=(1, 8, 20)) == {"batch": BATCH}
    assert assumed(("batch", "seq"), batch=2) == {"seq": LENGTH}
    assert assumed(("batch", "seq"), x0=((1, 2, 3), 4)) == {}


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("batch", [1, 5, 16])
def test_a_model_of_which_nothing_is_said_runs_at_the_sizes_that_were_assumed(batch: int) -> None:
    x = rows(batch)
    wanted = evaluate(import_onnx(perceptron(), shapes={"batch": batch}), {"x": x})["y"]
    np.testing.assert_allclose(engine()(x), wanted, atol=1e-6)


@pytest.mark.needs_cc
def test_explanations_say_what_was_assumed_and_how_to_say_otherwise() -> None:
    notes = engine().explain().notes
    assert notes[:2] == (
        "a run decides the sizes 'batch' 1 to 16, usually 4",
        "the bounds of 'batch' were assumed; "
        'shapes={"batch": (least, usual, largest)} says others',
    )
    said = tw.compile(perceptron(), "c", shapes={"batch": (1, 4, 16)}).explain().notes
    assert said[0] == notes[0]
    assert not any("assumed" in note for note in said)


@pytest.mark.needs_cc
def test_a_run_beyond_what_was_assumed_says_so_also_in_a_loaded_engine(tmp_path: Path) -> None:
    loaded = tw.load(engine().save(tmp_path / "assumed.twe"))
    for one in (engine(), loaded):
        with pytest.raises(ArgumentError) as caught:
            one(rows(17))
        assert str(caught.value) == (
            "ArgumentValueError: open: axis 0 of 'x' has 17 elements; expected 'batch', which is "
            "1 to 16. [engine-size]\n"
            "  Note: nobody said these bounds, so they were assumed when open was compiled.\n"
            '  Hint: tw.compile(model, shapes={"batch": (1, 4, 17)}) takes it.'
        )
        assert one(rows(16)).shape == (16, 12)


@pytest.mark.needs_cc
def test_a_run_beyond_what_was_said_does_not_speak_of_assumptions() -> None:
    said = tw.compile(perceptron(), "c", shapes={"batch": (2, 4, 16)})
    with pytest.raises(ArgumentError) as caught:
        said(rows(1))
    assert str(caught.value) == (
        "ArgumentValueError: open: axis 0 of 'x' has 1 elements; expected 'batch', which is 2 to "
        "16. [engine-size]\n"
        '  Hint: tw.compile(model, shapes={"batch": (1, 4, 16)}) takes it.'
    )


@pytest.mark.usefixtures("nvrtc")
def test_an_engine_for_a_gpu_says_what_was_assumed_too() -> None:
    engine = tw.compile(perceptron(), "cuda:sm_80", verify="off")
    assert str(engine.outputs[0]) == "y: float32[batch, 12]"
    assert "'batch' 1 to 16, usually 4" in str(engine.explain())


def test_an_operator_that_takes_no_open_size_says_what_was_assumed() -> None:
    """The table of positions has fewer rows than the sequence may be long."""
    with pytest.raises(ModelError) as caught:
        import_onnx(encoder())
    text = str(caught.value)
    assert (
        "  Note: nobody said these sizes, so they were assumed: 'batch' 1 to 16, usually 4, 'seq' "
        "1 to 512, usually 128.\n"
    ) in text
    assert 'Hint: shapes={"batch": 4, "seq": 128} compiles for these numbers alone;' in text
    with pytest.raises(ModelError) as caught:
        import_onnx(encoder(), shapes={"batch": (1, 2, 3), "seq": (1, 8, 100)})
    assert "assumed" not in str(caught.value)
