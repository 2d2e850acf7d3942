"""What exporters compute of open shapes is known while a model is read; what needs a number says
so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.at_sizes import graph_at, type_at
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.pooling import MaxPool
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType
from tilewright.tir.dim import Dim
from tilewright.tir.sizes import size_of

Golden = Callable[[str, str], None]

SHAPES = {"batch": (1, 2, 8), "seq": (1, 16, 64)}
X: list[str | int] = ["batch", "seq", 6]


class Nodes:
    """ONNX nodes on x: float32[batch, seq, 6] and ids: int64[batch, seq]."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, operator: str, *inputs: str | list[int], **attributes: object) -> str:
        names = [self._name(given) for given in inputs]
        output = f"{operator.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], **attributes))
        return output

    def _name(self, given: str | list[int]) -> str:
        if isinstance(given, str):
            return given
        name = f"w{len(self.weights)}"
        self.weights[name] = np.array(given, np.int64)
        return name

    def size(self, axis: int, source: str = "x") -> str:
        """One size of a shape, as a vector of one."""
        return self.add("Gather", self.add("Shape", source), [axis], axis=0)

    def imported(self, output: str, shapes: object = SHAPES) -> Graph:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT64, X[:2])
        y = helper.make_tensor_value_info(output, TensorProto.UNDEFINED, None)
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "open", [x, ids], [y], weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        return import_onnx(model, shapes=shapes)  # type: ignore[arg-type]


def reshaped(n: Nodes) -> str:
    split = n.add("Concat", n.size(0), n.size(1), [2, 3], axis=0)
    return n.add("Reshape", "x", split)


def flat(n: Nodes) -> str:
    rows = n.add("Mul", n.size(0), n.size(1))
    return n.add("Reshape", "x", n.add("Concat", rows, [-1], axis=0))


def halves(n: Nodes) -> str:
    middle = n.add("Div", n.size(1), [2])
    return n.add("Slice", "x", [0], middle, [1])


def shifted(n: Nodes) -> str:
    behind = n.add("Slice", "x", [1], [1 << 40], [1])
    first = n.add("Slice", "x", [0], [1], [1])
    return n.add("Concat", behind, first, axis=1)


def expanded(n: Nodes) -> str:
    """As torch writes expand: where the wanted size is -1, that of the input."""
    wanted = n.add("Concat", n.size(0), [-1, 1], axis=0)
    ones = n.add("ConstantOfShape", [3], value=numpy_helper.from_array(np.array([1], np.int64)))
    own = n.add("Equal", wanted, n.add("Mul", ones, [-1]))
    return n.add("Expand", n.add("Slice", "x", [0], [1], [2]), n.add("Where", own, ones, wanted))


def places(n: Nodes) -> str:
    start, step = n.add("Sub", n.size(1), n.size(1)), n.add("Squeeze", [1])
    ends = (n.add("Squeeze", value) for value in (start, n.size(1)))
    return n.add("Range", *ends, step)


def filled(n: Nodes) -> str:
    """As torch writes the first state of a recurrent layer."""
    shape = n.add("Concat", [2], n.size(0), [3], axis=0)
    return n.add("ConstantOfShape", shape)


def walked(n: Nodes) -> str:
    """All words of a flat mask, at place + batch * seq, as a masking library indexes it."""
    nothing, one = n.add("Squeeze", [0]), n.add("Squeeze", [1])
    rows, columns = (
        n.add("Range", nothing, n.add("Squeeze", n.size(axis, "ids")), one) for axis in (0, 1)
    )
    start = n.add("Mul", n.add("Unsqueeze", rows, [1]), n.size(1, "ids"))
    flat_ids = n.add("Reshape", "ids", [-1])
    return n.add("Gather", flat_ids, n.add("Add", start, columns), axis=0)


def walked_rows(n: Nodes) -> str:
    """Rows of six, of which a constant numbers the columns."""
    nothing, one = n.add("Squeeze", [0]), n.add("Squeeze", [1])
    count = n.add("Squeeze", n.add("Mul", n.size(0), n.size(1)))
    start = n.add("Mul", n.add("Unsqueeze", n.add("Range", nothing, count, one), [1]), [6])
    places = n.add("Add", start, list(range(6)))
    return n.add("Gather", n.add("Reshape", "x", [-1]), places, axis=0)


def narrow(n: Nodes) -> str:
    """As Keras counts rows."""
    shape = n.add("Cast", n.add("Shape", "x"), to=TensorProto.INT32)
    rows = n.add("ReduceProd", n.add("Slice", shape, [0], [2], [0]), keepdims=1)
    wide = n.add("Cast", rows, to=TensorProto.INT64)
    return n.add("Reshape", "x", n.add("Concat", wide, [6], axis=0))


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (reshaped, "float32[batch, seq, 2, 3]"),
        (flat, "float32[batch*seq, 6]"),
        (halves, "float32[batch, seq//2, 6]"),
        (shifted, "float32[batch, seq, 6]"),
        (expanded, "float32[batch, seq, 1]"),
        (filled, "float32[2, batch, 3]"),
        (places, "int64[seq]"),
        (walked, "int64[batch, seq]"),
        (walked_rows, "float32[batch*seq, 6]"),
        (narrow, "float32[batch*seq, 6]"),
    ],
)
def test_shapes_that_a_model_computes_are_known(build: Callable[[Nodes], str], wanted: str) -> None:
    nodes = Nodes()
    output = build(nodes)
    graph = nodes.imported(output)
    assert str(graph.types[output]) == wanted
    assert "Gather" not in str(graph)
    assert build is walked or "SizeValues" not in str(graph)  # what nobody reads goes later
    closed = nodes.imported(output, {"batch": 2, "seq": 5})
    sizes = [{"batch": 2, "seq": 5}.get(name, 0) for name in ("batch", "seq")]
    values = dict(zip(graph.dims, sizes, strict=True))
    assert type_at(graph.types[output], values) == closed.types[output]


def test_a_number_that_its_type_does_not_hold_is_no_size() -> None:
    nodes = Nodes()
    number = nodes.add("Cast", nodes.add("Mul", nodes.size(1), [1 << 28]), to=TensorProto.INT32)
    output = nodes.add("Cast", number, to=TensorProto.INT64)
    closed = graph_at(graph := nodes.imported(output), dict(zip(graph.dims, (1, 20), strict=True)))
    feeds = {"x": np.zeros((1, 20, 6), np.float32), "ids": np.zeros((1, 20), np.int64)}
    (found,) = evaluate(closed, feeds, dtype=None)[output].tolist()
    assert found == (20 << 28) % (1 << 32)


def test_what_is_repeated_as_often_as_a_call_says_stands_one_behind_the_other() -> None:
    nodes = Nodes()
    counts = nodes.add("Concat", [1], nodes.size(0), [2], axis=0)
    output = nodes.add("Tile", "x", counts)
    graph = nodes.imported(output)
    assert str(graph.types[output]) == "float32[batch, batch*seq, 12]"
    closed = graph_at(graph, dict(zip(graph.dims, (3, 5), strict=True)))
    feeds = {"x": np.arange(90, dtype=np.float32).reshape(3, 5, 6), "ids": np.zeros((3, 5))}
    np.testing.assert_array_equal(evaluate(closed, feeds)[output], np.tile(feeds["x"], (1, 3, 2)))


def backwards(n: Nodes) -> str:
    return n.add("Slice", "x", [-1], [-1000], [1], [-1])


def windows(n: Nodes) -> str:
    """How much is padded depends on whether the size is even."""
    image = n.add("Unsqueeze", "x", [1])
    return n.add("LpPool", image, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")


def halved(n: Nodes) -> str:
    return n.add("Split", "x", axis=1, num_outputs=2)


def uneven(n: Nodes) -> str:
    return n.add("Reshape", "x", [4, -1])


def refusal(build: Callable[[Nodes], str], shapes: object = SHAPES) -> str:
    nodes = Nodes()
    output = build(nodes)
    with pytest.raises(ModelError) as caught:
        nodes.imported(output, shapes)
    return str(caught.value)


def pooled() -> str:
    builder = GraphBuilder("pool")
    side = size_of(Dim("side", low=1, high=9))
    image = builder.input("image", TensorType("float32", (1, 3, side, 8)))
    with pytest.raises(ModelError) as caught:
        builder.add(MaxPool((3, 3)), image, output="y")
    return str(caught.value)


def channels() -> str:
    """A sum over neighbours among channels, of which a run decides how many there are."""
    nodes = Nodes()
    output = nodes.add("LRN", nodes.add("Unsqueeze", "x", [3]), size=3)
    with pytest.raises(ModelError) as caught:
        tw.compile(nodes.imported(output), "c:scalar", verify="off")
    return str(caught.value)


def test_what_needs_a_number_says_so(golden: Golden) -> None:
    texts = [
        refusal(backwards),
        refusal(windows),
        refusal(uneven),
        refusal(flat, {"batch": (3, 2, 1), "seq": 4}),
        refusal(flat, {"batch": (1, 2), "seq": 4}),
        pooled(),
        channels(),
    ]
    golden("errors/open_sizes.txt", "\n\n".join(texts))
