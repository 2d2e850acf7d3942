"""Models of ONNX that branch and loop, and inputs for them; what they mean is for ONNX's own
reference to say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

Array = np.ndarray
Shape = tuple[int | str, ...]
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


@dataclass(frozen=True)
class FlowModel:
    """A model, and inputs of several runs. by_numpy: the outputs, where ONNX's reference does
    something else than ONNX says.
    """

    proto: ModelProto
    runs: tuple[Mapping[str, Array], ...]
    by_numpy: Callable[..., list[Array]] | None = None

    def expected(self, inputs: Mapping[str, Array]) -> list[Array]:
        """The outputs."""
        if self.by_numpy is not None:
            return self.by_numpy(**inputs)
        return list(ReferenceEvaluator(self.proto).run(None, dict(inputs)))


def value(
    name: str, kind: int = FLOAT, shape: Sequence[int | str | None] | None = None
) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    name: str,
    nodes: Sequence[NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    **constants: object,
) -> GraphProto:
    held = [numpy_helper.from_array(np.asarray(c), n) for n, c in constants.items()]
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), held)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    **constants: object,
) -> ModelProto:
    made = graph("flow", nodes, inputs, outputs, yes=True, **constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def floats(shape: Shape, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def body(
    name: str,
    nodes: Sequence[NodeProto],
    carried: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
    goes_on: str = "",
    **constants: object,
) -> GraphProto:
    """The body of a Loop; where nothing says whether it goes on, it does."""
    inputs = [value("i", INT64, ()), value("before", BOOL, ()), *carried]
    always = [] if goes_on else [node("Identity", ["before"], ["goes_on"])]
    results = [value(goes_on or "goes_on", BOOL, ()), *map(value, outputs)]
    return graph(name, [*always, *nodes], inputs, results, **constants)


def branch() -> FlowModel:
    """Two elementwise branches, one of which reads a value that is computed outside."""
    then = graph("yes", [node("Add", ["x", "h"], ["t"])], [], [value("t")])
    otherwise = graph(
        "no",
        [node("Mul", ["x", "two"], ["u"]), node("Tanh", ["u"], ["e"])],
        [],
        [value("e")],
        two=np.float32(2),
    )
    nodes = [
        node("Relu", ["x"], ["h"]),
        node("If", ["c"], ["y"], name="choice", then_branch=then, else_branch=otherwise),
        node("Add", ["y", "h"], ["z"]),
    ]
    proto = model(
        nodes, [value("c", BOOL, ()), value("x", shape=(3, 40))], [value("z"), value("y")]
    )
    x = floats((3, 40))
    return FlowModel(proto, tuple({"c": np.array(c), "x": x} for c in (True, False)))


def branch_that_passes_on() -> FlowModel:
    """Results that a branch takes from outside, or has as constants, or gives twice."""
    then = graph("yes", [node("Exp", ["x"], ["t"])], [], [value("t"), value("x"), value("t")])
    otherwise = graph(
        "no",
        [node("Identity", ["x"], ["e"])],
        [],
        [value("w"), value("e"), value("x")],
        w=floats((40,), 3),
    )
    nodes = [node("If", ["c"], ["a", "b", "d"], then_branch=then, else_branch=otherwise)]
    proto = model(
        nodes, [value("c", BOOL, ()), value("x", shape=(40,))], [value(name) for name in "abd"]
    )
    return FlowModel(proto, tuple({"c": np.array(c), "x": floats((40,))} for c in (True, False)))


def counted() -> FlowModel:
    """A trip count from an input; the state is read and written by one kernel."""
    inner = body(
        "step",
        [node("Mul", ["s", "w"], ["m"]), node("Add", ["m", "x"], ["next"])],
        [value("s", shape=(4, 16))],
        ["next"],
        w=np.float32(0.5),
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="loop", body=inner)],
        [value("n", INT64, ()), value("x", shape=(4, 16))],
        [value("y")],
    )
    x = floats((4, 16))
    return FlowModel(proto, tuple({"n": np.array(n), "x": x} for n in (0, 1, 2, 7, -3)))


def until() -> FlowModel:
    """A condition from data, false at the first in one run; a count ends another one."""
    inner = body(
        "step",
        [
            node("Add", ["s", "x"], ["next"]),
            node("ReduceMax", ["next"], ["top"], keepdims=0),
            node("Less", ["top", "limit"], ["more"]),
        ],
        [value("s", shape=(8,))],
        ["next"],
        "more",
        limit=np.float32(10),
    )
    nodes = [
        node("ReduceMax", ["x"], ["top"], keepdims=0),
        node("Greater", ["top", "zero"], ["begins"]),
        node("Loop", ["n", "begins", "x"], ["y"], name="loop", body=inner),
    ]
    proto = model(
        nodes,
        [value("n", INT64, (1,)), value("x", shape=(8,))],
        [value("y")],
        zero=np.float32(0),
    )
    x = np.abs(floats((8,)))
    runs = ((100, x), (3, x), (100, -x), (0, x))
    return FlowModel(proto, tuple({"n": np.array([n]), "x": x} for n, x in runs))


def collecting() -> FlowModel:
    """A constant count with scan outputs, one of which is the carried value, another a constant."""
    inner = body(
        "step",
        [
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Mul", ["s", "f"], ["m"]),
            node("Add", ["m", "x"], ["next"]),
            node("Sigmoid", ["m"], ["g"]),
        ],
        [value("s", shape=(2, 9))],
        ["next", "next", "g", "k"],
        k=floats((3,), 5),
    )
    proto = model(
        [node("Loop", ["five", "yes", "x"], ["y", "ys", "gs", "ks"], name="loop", body=inner)],
        [value("x", shape=(2, 9))],
        [value(name) for name in ("y", "ys", "gs", "ks")],
        five=np.array(5),
    )

    def by_numpy(x: Array) -> list[Array]:  # the reference joins rows along their first axis
        s, rows, gates = x, list[Array](), list[Array]()
        for i in range(5):
            m = s * np.float32(i)
            s = m + x
            rows.append(s)
            gates.append(1 / (1 + np.exp(-m)))
        return [s, np.stack(rows), np.stack(gates), np.stack([floats((3,), 5)] * 5)]

    return FlowModel(proto, ({"x": floats((2, 9)) * np.float32(0.1)},), by_numpy)


def exchanging() -> FlowModel:
    """Carried values that change places, and one that is another one's old value."""
    inner = body(
        "step",
        [node("Add", ["a", "b"], ["sum"])],
        [value(name, shape=(5,)) for name in ("a", "b", "c")],
        ["b", "sum", "a"],
    )
    proto = model(
        [node("Loop", ["n", "yes", "x", "w", "x"], ["p", "q", "r"], name="loop", body=inner)],
        [value("n", INT64, ()), value("x", shape=(5,)), value("w", shape=(5,))],
        [value(name) for name in "pqr"],
    )
    x, w = floats((5,)), floats((5,), 1)
    return FlowModel(proto, tuple({"n": np.array(n), "x": x, "w": w} for n in (0, 1, 2, 5)))


def nested() -> FlowModel:
    """A branch in a loop in a loop, whose counts come from an input and from the iteration."""
    first = graph("first", [node("Add", ["t", "x"], ["o"])], [], [value("o")])
    others = graph("others", [node("Sub", ["t", "x"], ["e"])], [], [value("e")])
    inner = body(
        "inner",
        [
            node("Less", ["j", "one"], ["is_first"]),
            node(
                "If", ["is_first"], ["later"], name="choice", then_branch=first, else_branch=others
            ),
        ],
        [value("t", shape=(6,))],
        ["later"],
    )
    for item, name in zip(inner.input, ("j", "before_j"), strict=False):
        item.name = name
    inner.node[0].input[0] = "before_j"
    inner.node[0].output[0] = "goes_on_j"
    inner.output[0].name = "goes_on_j"
    outer = body(
        "outer",
        [
            node("Add", ["i", "one"], ["trips"]),
            node("Loop", ["trips", "yes", "s"], ["t_end"], name="inner", body=inner),
            node("Mul", ["t_end", "half"], ["next"]),
        ],
        [value("s", shape=(6,))],
        ["next"],
        one=np.array(1),
        half=np.float32(0.5),
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="outer", body=outer)],
        [value("n", INT64, ()), value("x", shape=(6,))],
        [value("y")],
    )
    return FlowModel(proto, tuple({"n": np.array(n), "x": floats((6,))} for n in (0, 1, 4)))


def old_value_behind() -> FlowModel:
    """What a loop in a loop begins with is computed before the last read of the old value in whose
    place its result lies.
    """
    inner = body(
        "inner", [node("Add", ["t", "b"], ["t_next"])], [value("t", shape=(6,))], ["t_next"]
    )
    for item, name in zip(inner.input, ("j", "before_j"), strict=False):
        item.name = name
    inner.node[0].input[0] = "before_j"
    inner.node[0].output[0] = inner.output[0].name = "goes_on_j"
    outer = body(
        "outer",
        [
            node("Tanh", ["s"], ["a"]),
            node("Sigmoid", ["s"], ["b"]),
            node("Loop", ["two", "yes", "a"], ["next"], name="inner", body=inner),
        ],
        [value("s", shape=(6,))],
        ["next"],
        two=np.array(2),
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="outer", body=outer)],
        [value("n", INT64, ()), value("x", shape=(6,))],
        [value("y")],
    )
    return FlowModel(proto, tuple({"n": np.array(n), "x": floats((6,))} for n in (0, 1, 4)))


def scanning() -> FlowModel:
    """Two states, an array from its end, another one along its last axis; what it gives is stored
    from the end, and along an axis of its own.
    """
    inner = graph(
        "step",
        [
            node("Add", ["s", "row"], ["s_next"]),
            node("Mul", ["p", "column"], ["p_next"]),
            node("MatMul", ["s_next", "w"], ["out"]),
            node("Identity", ["p"], ["p_before"]),
        ],
        [
            value("s", shape=(3, 4)),
            value("p", shape=(2,)),
            value("row", shape=(3, 4)),
            value("column", shape=(2,)),
        ],
        [value("s_next"), value("p_next"), value("out"), value("p_before")],
    )
    scan = node(
        "Scan",
        ["s0", "p0", "xs", "cs"],
        ["s", "p", "outs", "ps"],
        name="scan",
        body=inner,
        num_scan_inputs=2,
        scan_input_axes=[0, 1],
        scan_input_directions=[1, 0],
        scan_output_axes=[1, 0],
        scan_output_directions=[0, 1],
    )
    shapes = {"s0": (3, 4), "p0": (2,), "xs": (6, 3, 4), "cs": (2, 6)}
    proto = model(
        [scan],
        [value(name, shape=shape) for name, shape in shapes.items()],
        [value(name) for name in ("s", "p", "outs", "ps")],
        w=floats((4, 5), 9),
    )

    def by_numpy(s0: Array, p0: Array, xs: Array, cs: Array) -> list[Array]:
        # the reference knows no directions
        s, p, outs, before = s0, p0, list[Array](), list[Array]()
        for i in range(6):
            s = s + xs[5 - i]
            outs.append(s @ floats((4, 5), 9))
            before.insert(0, p)
            p = p * cs[:, i]
        return [s, p, np.stack(outs, 1), np.stack(before)]

    given = {name: floats(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    return FlowModel(proto, (given,), by_numpy)


def scan_in_scan() -> FlowModel:
    """Rows of rows."""
    inner = graph(
        "inner",
        [node("Add", ["t", "cell"], ["t_next"]), node("Tanh", ["t_next"], ["mark"])],
        [value("t", shape=(3,)), value("cell", shape=(3,))],
        [value("t_next"), value("mark")],
    )
    outer = graph(
        "outer",
        [
            node(
                "Scan",
                ["s", "row"],
                ["s_next", "marks"],
                name="inner",
                body=inner,
                num_scan_inputs=1,
            ),
            node("Neg", ["marks"], ["less"]),
        ],
        [value("s", shape=(3,)), value("row", shape=(4, 3))],
        [value("s_next"), value("marks"), value("less")],
    )
    proto = model(
        [
            node(
                "Scan",
                ["s0", "xs"],
                ["s_end", "all", "none"],
                name="outer",
                body=outer,
                num_scan_inputs=1,
            )
        ],
        [value("s0", shape=(3,)), value("xs", shape=(5, 4, 3))],
        [value(name) for name in ("s_end", "all", "none")],
    )
    return FlowModel(proto, ({"s0": floats((3,)), "xs": floats((5, 4, 3), 1)},))


def gathering() -> FlowModel:
    """Indices from data in a loop: what is out of range in one iteration is told."""
    inner = body(
        "step",
        [
            node("Gather", ["places", "i"], ["at"]),
            node("Gather", ["table", "at"], ["row"]),
            node("Add", ["s", "row"], ["next"]),
        ],
        [value("s", shape=(4,))],
        ["next"],
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="loop", body=inner)],
        [
            value("n", INT64, ()),
            value("x", shape=(4,)),
            value("places", INT64, (6,)),
            value("table", shape=(3, 4)),
        ],
        [value("y")],
    )
    given = {"x": floats((4,)), "places": np.array([2, 0, 1, 1, 0, 2]), "table": floats((3, 4), 1)}
    return FlowModel(proto, tuple({"n": np.array(n), **given} for n in (0, 6)))


def invariant() -> FlowModel:
    """A product in the body that does not depend on the iteration, of weights and of an input."""
    inner = body(
        "step",
        [
            node("MatMul", ["x", "w"], ["p"]),
            node("Tanh", ["p"], ["q"]),
            node("MatMul", ["s", "w"], ["r"]),
            node("Add", ["q", "r"], ["next"]),
        ],
        [value("s", shape=(5, 8)), value("kept", shape=(5, 8))],
        ["next", "kept"],
    )
    proto = model(
        [node("Loop", ["n", "yes", "x", "x"], ["y", "k"], name="loop", body=inner)],
        [value("n", INT64, ()), value("x", shape=(5, 8))],
        [value("y"), value("k")],
        w=floats((8, 8), 4) * np.float32(0.3),
    )
    return FlowModel(proto, tuple({"n": np.array(n), "x": floats((5, 8))} for n in (0, 3)))


def two_products() -> FlowModel:
    """A state that the first of two kernels reads, and the second one computes anew."""
    inner = body(
        "step",
        [node("MatMul", ["s", "w"], ["h"]), node("MatMul", ["h", "w"], ["next"])],
        [value("s", shape=(3, 8))],
        ["next"],
        w=floats((8, 8), 4) * np.float32(0.3),
    )
    proto = model(
        [node("Loop", ["n", "yes", "x"], ["y"], name="loop", body=inner)],
        [value("n", INT64, ()), value("x", shape=(3, 8))],
        [value("y")],
    )
    return FlowModel(proto, tuple({"n": np.array(n), "x": floats((3, 8))} for n in (0, 3)))


def scan_of_a_collected_row() -> FlowModel:
    """What a row of the outer loop's array has is scanned in its turn, where it lies."""
    inner = graph(
        "inner",
        [node("Add", ["t", "cell"], ["t_next"]), node("Mul", ["t", "cell"], ["mark"])],
        [value("t", shape=(4,)), value("cell", shape=(4,))],
        [value("t_next"), value("mark")],
    )
    outer = graph(
        "outer",
        [
            node("Add", ["s", "row"], ["sum"]),
            node("Tanh", ["sum"], ["kept"]),
            node("Scan", ["zeros", "kept"], ["t", "marks"], body=inner, num_scan_inputs=1),
            node("Add", ["marks", "t"], ["s_next"]),
        ],
        [value("s", shape=(3, 4)), value("row", shape=(3, 4))],
        [value("s_next"), value("kept")],
        zeros=np.zeros(4, np.float32),
    )
    proto = model(
        [node("Scan", ["s0", "xs"], ["s_end", "all"], name="outer", body=outer, num_scan_inputs=1)],
        [value("s0", shape=(3, 4)), value("xs", shape=(5, 3, 4))],
        [value("s_end"), value("all")],
    )
    return FlowModel(proto, ({"s0": floats((3, 4)), "xs": floats((5, 3, 4), 1)},))


MODELS: Mapping[str, Callable[[], FlowModel]] = {
    make.__name__: make
    for make in (
        branch,
        branch_that_passes_on,
        counted,
        until,
        collecting,
        exchanging,
        nested,
        old_value_behind,
        scanning,
        scan_in_scan,
        scan_of_a_collected_row,
        gathering,
        invariant,
        two_products,
    )
}
