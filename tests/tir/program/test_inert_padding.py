"""tir/program/inert_padding.py: along which sizes models may be padded, and what forbids it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.graph.flow_models import model, node, value
from tests.graph.open_images import residual, unet
from tests.graph.open_models import encoder, perceptron
from tilewright.driver.resolve_target import resolve_target
from tilewright.graph.fuzz.random_model import random_model
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.plan.plan import plan_model
from tilewright.runtime.arrays import Array
from tilewright.runtime.model.model import Model
from tilewright.tir.program.inert_padding import PaddingObstacle, padding_obstacle
from tilewright.tir.program.program import Program

FULL = 4
KEPT = 2
Sizes = dict[str, int | tuple[int, int, int]]


def planned(proto: onnx.ModelProto, sizes: Sizes) -> Model:
    """The program before schedules."""
    graph = import_onnx(proto, shapes=sizes)
    lowered = plan_model(graph, resolve_target("c:avx2"), check=False).lowered
    return Model(lowered.program, lowered.constants)


def obstacles(proto: onnx.ModelProto, opened: Sizes, full: dict[str, int]) -> dict[str, str]:
    """What stands in the way along each size; "" where nothing does."""
    program, closed = planned(proto, opened).program, planned(proto, dict(full)).program
    values = {dim: full[dim.name] for dim in program.dims}
    found = {dim.name: padding_obstacle(program, dim, closed, values) for dim in program.dims}
    return {name: "" if one is None else str(one) for name, one in found.items()}


OPEN_IMAGES: Sizes = {"batch": (1, 2, FULL), "height": 32, "width": 32}
FULL_IMAGES = {"batch": FULL, "height": 32, "width": 32}


@pytest.mark.parametrize("make", [residual, unet], ids=["residual", "unet"])
def test_a_batch_of_images_may_be_padded(make: Callable[[], onnx.ModelProto]) -> None:
    assert obstacles(make(), OPEN_IMAGES, FULL_IMAGES) == {"batch": ""}


def test_a_batch_of_rows_may_be_padded() -> None:
    assert obstacles(perceptron(), {"batch": (1, 2, FULL)}, {"batch": FULL}) == {"batch": ""}


def test_a_batch_of_texts_may_be_padded_and_a_text_not() -> None:
    opened: Sizes = {"batch": (1, 2, FULL), "seq": (1, 8, 16)}
    assert obstacles(encoder(), opened, {"batch": FULL, "seq": 16}) == {
        "batch": "",
        "seq": "'transpose_29' does not read its own row of 'seq' alone, or might not: its part "
        "'attention_scores' reads q[vb, vs, vh, vd]",
    }


X = value("x", shape=("n", 4))
Y = value("y", shape=None)


def of_nodes(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return model(list(nodes), [X], [Y])


def stopped(*nodes: onnx.NodeProto) -> str:
    opened: Sizes = {"n": (1, 2, FULL)}
    found = obstacles(of_nodes(*nodes), opened, {"n": FULL})
    return found["n"]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([node("Softmax", ["x"], ["y"], axis=1)], ""),
        ([node("Transpose", ["x"], ["y"])], ""),
        ([node("Softmax", ["x"], ["y"], axis=0)], "joins the rows of 'n', in its part"),
        ([node("ReduceMean", ["x"], ["y"], axes=[0])], "joins the rows of 'n', in its part"),
        ([node("ReduceMax", ["x"], ["y"], axes=[0])], "joins the rows of 'n', in its part"),
        ([node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["y"], to=1)], "computes with the size"),
    ],
    ids=["softmax", "transpose", "softmax-0", "mean", "max", "shape"],
)
def test_what_mixes_rows_is_named(nodes: list[onnx.NodeProto], expected: str) -> None:
    found = stopped(*nodes)
    assert (expected in found) if expected else not found


def test_an_obstacle_in_the_program_that_runs_counts_as_well() -> None:
    opened, mixing = of_nodes(node("Relu", ["x"], ["y"])), [node("Softmax", ["x"], ["y"], axis=0)]
    program = planned(opened, {"n": (1, 2, FULL)}).program
    closed = planned(of_nodes(*mixing), {"n": FULL}).program
    (dim,) = program.dims
    assert padding_obstacle(program, dim) is None
    found = padding_obstacle(program, dim, closed, {dim: FULL})
    assert found is not None
    assert "does not read its own row of 'n' alone, or might not" in found.reason


def test_an_output_whose_rows_lie_otherwise_is_an_obstacle() -> None:
    """The closed program gives its rows along another axis than the open one says."""
    program = planned(of_nodes(node("Relu", ["x"], ["y"])), {"n": (1, 2, FULL)}).program
    closed = planned(of_nodes(node("Transpose", ["x"], ["y"])), {"n": FULL}).program
    (dim,) = program.dims
    assert padding_obstacle(program, dim, closed, {dim: FULL}) == PaddingObstacle(
        "the output 'y'", "does not have one element for each of 'n' rows in turn"
    )


def branch_of(condition: onnx.NodeProto, given: str) -> str:
    """What stands in the way where a branch asks `condition` and its regions read `given`."""
    then, other = (
        helper.make_graph([node(kind, [given], [kind])], kind, [], [value(kind, shape=None)])
        for kind in ("Relu", "Neg")
    )
    asked = node("If", [condition.output[0]], ["b"], then_branch=then, else_branch=other)
    flag = value("flag", TensorProto.BOOL, ())
    nodes = [condition, asked, node("Add", ["x", "b"], ["y"])]
    held = [numpy_helper.from_array(np.ones(4, np.float32), "table")]
    graph = helper.make_graph(nodes, "flow", [X, flag], [Y], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return obstacles(proto, {"n": (1, 2, FULL)}, {"n": FULL})["n"]


def test_a_branch_may_read_what_has_no_rows_and_nothing_else() -> None:
    flagged = node("Not", ["flag"], ["c"])
    assert branch_of(flagged, "table") == ""
    assert branch_of(flagged, "x").endswith(
        "reads 'n' rows in a branch, a loop, or a size that data decide"
    )


def test_a_size_that_data_decide_may_read_no_rows() -> None:
    nodes = [node("NonZero", ["x"], ["found"]), node("Cast", ["found"], ["y"], to=1)]
    assert stopped(*nodes) == "'found.truewords' computes with the size 'n'"


def looked_up(*nodes: onnx.NodeProto) -> str:
    """What stands in the way where `places`, an index for each row, is read from a table."""
    held = [numpy_helper.from_array(np.ones((5, 4), np.float32), "table")]
    whole = {"first": 0, "one": 1, "axis": [0]}
    held += [numpy_helper.from_array(np.array(v, np.int64), name) for name, v in whole.items()]
    behind = [node("Gather", ["table", "places"], ["found"]), node("Add", ["x", "found"], ["y"])]
    given = [X, value("ids", TensorProto.INT64, ("n",))]
    graph = helper.make_graph([*nodes, *behind], "flow", given, [Y], held)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return obstacles(proto, {"n": (1, 2, FULL)}, {"n": FULL})["n"]


def test_a_check_of_indices_must_not_know_which_row_it_is_of() -> None:
    """Rows of equal numbers fail alike, unless the number of the row is added to them."""
    assert looked_up(node("Add", ["ids", "one"], ["places"])) == ""
    count = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "first"], ["n"], axis=0),
        node("Range", ["first", "n", "one"], ["numbers"]),
    ]
    found = looked_up(*count, node("Add", ["ids", "numbers"], ["places"]))
    assert found.endswith("checks indices that depend on which row they are of")


# -- random models: what is called inert is --------------------------------------------------------


@cache
def drawn(seed: int) -> tuple[Model, Model, dict[str, int]]:
    proto = random_model(seed, ("sizes", "both")[seed % 2]).proto
    full = {"batch": FULL + seed % 3, "seq": FULL + seed % 2}
    opened: Sizes = {name: (1, KEPT, size) for name, size in full.items()}
    return planned(proto, opened), planned(proto, dict(full)), full


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(36))
def test_what_is_called_inert_keeps_the_bits_and_the_meaning_of_rows(seed: int) -> None:
    drawing = random_model(seed, ("sizes", "both")[seed % 2])
    opened, closed, full = drawn(seed)
    given = drawing.inputs(full, seed)
    values = {dim: full[dim.name] for dim in opened.program.dims}
    plain = closed.in_own_types(given)
    for axis, dim in enumerate(opened.program.dims):
        if padding_obstacle(opened.program, dim, closed.program, values) is not None:
            continue
        kept = {name: first(array, axis) for name, array in given.items()}
        alone = opened.in_own_types(kept)
        for poison in (np.nan, np.inf, 3e30):
            found = closed.in_own_types({n: poisoned(a, axis, poison) for n, a in given.items()})
            for name, array in alone.items():
                ours, theirs = (cut(one[name], array.shape) for one in (found, plain))
                assert ours.tobytes() == theirs.tobytes()
                np.testing.assert_allclose(ours, array, rtol=1e-4, atol=1e-5)


def first(array: Array, axis: int) -> Array:
    return np.take(array, range(KEPT), axis) if array.ndim else array


def poisoned(array: Array, axis: int, value: float) -> Array:
    made = array.copy()
    if made.ndim:
        np.moveaxis(made, axis, 0)[KEPT:] = value
    return made


def cut(array: Array, shape: tuple[int, ...]) -> Array:
    return array[tuple(slice(extent) for extent in shape)]


def test_a_rule_that_lets_rows_meet_is_found_by_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: with every load taken for one of its own row, some model is wrong."""
    from tilewright.tir.analysis import row_flow

    monkeypatch.setattr(row_flow._Points, "_row", lambda self, place: 0)
    monkeypatch.setattr(row_flow._Points, "_is_named", lambda self, node: False)

    def see_all() -> None:
        for seed in range(36):
            test_what_is_called_inert_keeps_the_bits_and_the_meaning_of_rows(seed)

    with pytest.raises(AssertionError):
        see_all()


def test_a_program_without_the_size_has_an_obstacle() -> None:
    program = planned(of_nodes(node("Relu", ["x"], ["y"])), {"n": (1, 2, FULL)}).program
    (dim,) = program.dims
    without: Program = replace(program, inputs=(), body=(), outputs=())
    assert str(padding_obstacle(without, dim)) == "the model has no input with 'n' rows"
