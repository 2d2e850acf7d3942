"""What is refused of operators whose results are as large as data say, and what reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.graph.data_size_models import collecting, model_of, ranged
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.verify import verify
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.data_size import DataSize
from tilewright.graph.ops.finding import Coordinates, CountTrue, RunStarts, TrueWords
from tilewright.graph.ops.kept_boxes import KeptBoxes
from tilewright.graph.ops.overlap import BoxCandidates, ChosenBoxes, ChosenCounts, OverlapStep
from tilewright.graph.ops.ranges import RangeLength
from tilewright.graph.ops.size_values import SizeValues
from tilewright.graph.passes.dead_code import DeadCode
from tilewright.graph.types import TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.errors import InternalError
from tilewright.tir.sizes import size_of

X = ("x", TensorProto.FLOAT, [4, 3])


def refused(model: onnx.ModelProto, shapes: Mapping[str, object] | None = None) -> str:
    with pytest.raises(ModelError) as caught:
        import_onnx(model, shapes=shapes)  # type: ignore[arg-type]
    return str(caught.value)


REFUSALS: Sequence[tuple[Operator, list[str], str]] = [
    (TrueWords(4), ["bool"], "TrueWords: expected rows, and a number, got bool[]. [find-rank]"),
    (
        TrueWords(3),
        ["bool 4"],
        "TrueWords: expected at most 3 elements, got bool[4]. [find-most]",
    ),
    (
        CountTrue(),
        ["int64 4"],
        "CountTrue: expected rows of int32, got int64[4]. [find-words]",
    ),
    (
        Coordinates((2, 3)),
        ["float32 4"],
        "Coordinates: expected a vector of int64 and axes, got float32[4] of [2, 3]. "
        "[coordinates-type]",
    ),
    (RunStarts(), ["bool 2 2"], "RunStarts: expected a vector, got bool[2, 2]. [runs-rank]"),
    (
        DataSize(3),
        ["float32 4"],
        "DataSize: expected one int64, got float32[4]. [data-size-type]",
    ),
    (
        RangeLength(),
        ["int64 4"] * 3,
        "RangeLength: expected numbers without axes, got int64[4]. [range-scalars]",
    ),
    (
        BoxCandidates(),
        ["float32 1 3 3", "float32 1 2 3", "int32 1 2 3"],
        "BoxCandidates: float32[1, 3, 3], float32[1, 2, 3], int32[1, 2, 3] are no boxes, "
        "scores and numbers of some. [boxes-shape]",
    ),
    (
        OverlapStep(),
        ["float32 1"] * 12,
        f"OverlapStep: {', '.join(['float32[1]'] * 12)} are no candidates. [overlap-types]",
    ),
    (
        OverlapStep(),
        [
            "float32 1 1 2",
            "int32 1 1 2",
            "float32 1 1",
            "int64",
            "int32 1 1 2",
            *["float32 1 1 2"] * 5,
            "float32 1 3 4",
            "float64",
        ],
        "OverlapStep: expected a share of float32, got float64[]. [overlap-share]",
    ),
    (
        ChosenCounts(),
        ["int32 4"],
        "ChosenCounts: expected numbers, int32 of three axes, got int32[4]. [chosen-numbers]",
    ),
    (
        ChosenBoxes(1),
        ["int32 1 1 2", "int64 2"],
        "ChosenBoxes: int32[1, 1, 2], int64[2] are no chosen boxes. [chosen-types]",
    ),
    (
        KeptBoxes(3),
        ["float32 1 5 4", "float32 1 2 5", "int32 1 2 5", "float32"],
        "KeptBoxes: float32[1, 5, 4], float32[1, 2, 5], int32[1, 2, 5], float32[] are no sorted "
        "boxes and a share. [kept-types]",
    ),
]


@pytest.mark.parametrize(("op", "types", "message"), REFUSALS)
def test_operators_refuse_what_they_do_not_take(
    op: Operator, types: Sequence[str], message: str
) -> None:
    listed = [text.split() for text in types]
    with pytest.raises(ModelError) as caught:
        op.infer(tuple(TensorType(kind, tuple(map(int, shape))) for kind, *shape in listed))
    assert str(caught.value) == f"ModelError: {message}"


def compress(kind: int, count: int) -> onnx.ModelProto:
    node = helper.make_node("Compress", ["x", "chosen"], ["y"], axis=0)
    return model_of([node], [X, ("chosen", kind, [count])], [("y", TensorProto.FLOAT, None)])


def test_a_condition_is_a_vector_of_truth_values_as_long_as_the_axis_at_most() -> None:
    assert refused(compress(TensorProto.FLOAT, 4)) == (
        "ModelError: model: node 'y' (Compress) has the condition float32[4]; expected a vector of "
        "bool. [onnx-compress]"
    )
    assert refused(compress(TensorProto.BOOL, 5)) == (
        "ModelError: model: node 'y' (Compress) has 5 conditions for 4 elements; expected at most "
        "one for each. [onnx-compress-length]"
    )


def test_a_k_that_data_give_is_one_number() -> None:
    node = helper.make_node("TopK", ["x", "k"], ["y", "places"])
    made = model_of([node], [X, ("k", TensorProto.INT64, [2])], [("y", TensorProto.FLOAT, None)])
    assert refused(made) == (
        "ModelError: model: input 1 of node 'y' (TopK) is int64[2]; expected one int64. "
        "[onnx-scalar]"
    )


def test_boxes_and_scores_fit() -> None:
    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"])
    made = model_of(
        [node],
        [("boxes", TensorProto.FLOAT, [1, 4, 5]), ("scores", TensorProto.FLOAT, [1, 2, 4])],
        [("y", TensorProto.INT64, None)],
        {"most": np.array([3])},
    )
    assert refused(made) == (
        "ModelError: model: node 'y' (NonMaxSuppression) has boxes float32[1, 4, 5] and scores "
        "float32[1, 2, 4]; expected float32 boxes of [batch, n, 4] and scores of [batch, classes, "
        "n]. [onnx-boxes]"
    )


def test_what_nothing_bounds_needs_bounds_from_the_caller() -> None:
    way_out = "the least, the usual and the largest size"
    assert (
        "node 'numbers': Range of ai.onnx opset 17: data decide how large 'numbers' is, and "
        f"nothing bounds it; expected shapes={{'numbers': (0, 8, 100)}}: {way_out}"
    ) in refused(ranged("int64").model)
    assert (
        "node 'last': Loop of ai.onnx opset 17: data decide how large 'rows' is, and nothing "
        f"bounds it; expected shapes={{'rows': (0, 8, 100)}}: {way_out}"
    ) in refused(collecting(counted=True).model)


@pytest.mark.parametrize("size", [(1, 2, 3), 7, (0, 5)])
def test_bounds_are_three_numbers_from_0_on(size: object) -> None:
    assert refused(ranged("int64").model, {"n": size}) == (
        f"ModelError: shapes: 'n', which data decide, is {size!r}; expected the least size, which "
        "is 0, the usual and the largest one, at most 2147483646. [shapes-data]"
    )


def test_a_bound_is_said_by_the_symbol_or_by_the_value() -> None:
    model = ranged("int64").model
    graphs = [import_onnx(model, shapes={name: (0, 8, 20)}) for name in ("n", "numbers")]
    assert str(graphs[0]) == str(graphs[1])


def loop() -> onnx.ModelProto:
    """A loop in which NonZero stands."""
    body = helper.make_graph(
        [
            helper.make_node("NonZero", ["v"], ["found"]),
            helper.make_node("ReduceSum", ["found"], ["sum"], keepdims=0),
            helper.make_node("Cast", ["sum"], ["number"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["v", "number"], ["w"]),
            helper.make_node("Identity", ["goes_on"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [4, 3]),
        ],
        [
            helper.make_tensor_value_info("still", TensorProto.BOOL, []),
            helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 3]),
        ],
    )
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body, name="around")
    inputs = [X, ("n", TensorProto.INT64, [])]
    return model_of([node], inputs, [("y", TensorProto.FLOAT, None)])


def test_a_loop_does_not_make_such_a_size() -> None:
    assert refused(loop()) == (
        "ModelError: graph: node 'around' (Loop) is a branch or a loop, in which data decide the "
        "size 'found_count'; expected one that is known in front of it. [region-data-size]\n"
        "  Hint: what data decide may be computed in front of it, or behind it."
    )


def test_who_has_a_size_needs_who_tells_it() -> None:
    builder, size = GraphBuilder("shape"), size_of(Dim("n", low=0, high=4))
    count = builder.add(CountTrue(), builder.input("x", TensorType("int32", (4,))), output="count")
    builder.add(DataSize(size), count, output="told")
    builder.add(SizeValues((size, 4), (2,)), output="y")
    graph = builder.finish(("y",))
    assert DeadCode()(graph) is graph
    verify(graph)
    lost = GraphBuilder("shape")
    lost.add(SizeValues((size, 4), (2,)), output="y")
    with pytest.raises(InternalError, match="node 'y' \\(SizeValues\\) has the size 'n', which"):
        verify(lost.finish(("y",)))
