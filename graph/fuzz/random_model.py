"""Random models in ONNX: operators on values of one shape, whose first two sizes are open, and
branches and loops within each other. Most operators that are read are among them: see drawings/.

Values are bounded, so that none grows over many nodes. Shapes are computed as exporters compute
them: Shape, Gather, Concat, then Reshape, Slice, Expand. Bodies read the values of all graphs
around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from ..types import Array
from .drawings.drawing import NodeWriter
from .drawings.indexed import reduced
from .drawings.table import DRAWINGS

Ranges = dict[str, tuple[int, int, int]]

WIDTH = 4
KINDS = ("sizes", "regions", "both")
_DEEPEST = 3
_TRIPS = 3  # of a loop, at most
_OPSETS = (17, 18, 21, 23)
_IR = {17: 8, 18: 8, 21: 10, 23: 11}  # the version of the format that an opset came with
_FLOAT, _INT64, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass(frozen=True, slots=True)
class RandomModel:
    """A model. kind: of KINDS, whether its sizes are open, and whether it branches and loops.
    ranges: of its open sizes.
    """

    seed: int
    kind: str
    proto: ModelProto
    ranges: Ranges

    def sizes(self, rng: Random) -> dict[str, int]:
        """Random sizes within the ranges."""
        return {name: rng.randint(low, high) for name, (low, _, high) in self.ranges.items()}

    def inputs(self, sizes: dict[str, int], seed: int) -> dict[str, Array]:
        """Random inputs of some sizes."""
        rng = np.random.default_rng(seed)
        shape = tuple(sizes.get(name, 3) for name in ("batch", "seq"))
        made: dict[str, Array] = {
            name: rng.standard_normal((*shape, WIDTH)).astype(np.float32) for name in ("x", "w")
        }
        if self.kind != "sizes":
            made["trips"] = np.array(rng.integers(0, _TRIPS + 1))
            made["flag"] = np.array(bool(rng.integers(2)))
        return {item.name: made[item.name] for item in self.proto.graph.input}


def random_model(seed: int, kind: str | None = None) -> RandomModel:
    """The model of a seed. kind: of KINDS; None: drawn."""
    rng = Random(seed)
    drawn = rng.choice(KINDS)
    writer = _Writer(rng, kind or drawn)
    return writer.model(seed)


class _Writer:
    """Writes one model."""

    def __init__(self, rng: Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.opset = rng.choice(_OPSETS)
        self.is_open = kind != "regions"
        self.shape: tuple[int | str, ...] = ("batch", "seq", WIDTH) if self.is_open else (3, 3, 4)
        self.names = (f"v{n}" for n in count())
        self.held: dict[str, Array] = {}

    def model(self, seed: int) -> RandomModel:
        rng, known = self.rng, ["x", "w"]
        nodes = self.nodes(known, 0, rng.choice((1, 2, 3, 4, 6)))
        results = list(dict.fromkeys([known[-1], rng.choice(known[2:])]))
        given = [self.value("x"), self.value("w")]
        if self.kind != "sizes":
            given += [self.scalar("trips", _INT64), self.scalar("flag", _BOOL)]
        weights = [numpy_helper.from_array(array, name) for name, array in self.held.items()]
        outputs = [self.value(name) for name in results]
        graph = helper.make_graph(nodes, "random", given, outputs, weights)
        imports = [helper.make_opsetid("", self.opset)]
        proto = helper.make_model(graph, opset_imports=imports, ir_version=_IR[self.opset])
        onnx.checker.check_model(proto)
        ranges = self.ranges() if self.is_open else {}
        return RandomModel(seed, self.kind, proto, ranges)

    def ranges(self) -> Ranges:
        """Random ranges of both sizes."""
        found: Ranges = {}
        for name in ("batch", "seq"):
            low = self.rng.choice((1, 1, 1, 2))
            high = low + self.rng.randint(1, 20)
            found[name] = (low, self.rng.randint(low, high), high)
        return found

    # -- names and values ------------------------------------------------------------------------

    def value(self, name: str, shape: Sequence[int | str] | None = None) -> onnx.ValueInfoProto:
        chosen = self.shape if shape is None else shape
        return helper.make_tensor_value_info(name, _FLOAT, list(chosen))

    def scalar(self, name: str, kind: int) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, [])

    def hold(self, array: object, kind: str = "int64") -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(array, kind)
        return name

    def weight(self, *shape: int) -> str:
        rng = np.random.default_rng(self.rng.randrange(1 << 30))
        return self.hold(rng.standard_normal(shape) * 0.5, "float32")

    def some(self, known: Sequence[str]) -> str:
        """A value, one of the last more often."""
        return self.rng.choice(known[-3:] if self.rng.random() < 0.5 else known)

    # -- nodes -----------------------------------------------------------------------------------

    def nodes(self, known: list[str], depth: int, size: int) -> list[NodeProto]:
        """Some operators, whose results are added to `known`."""
        kinds: list[Callable[[list[str], int], list[NodeProto]]] = [
            self.plain,
            self.wide,
            *[self.operator] * 4,
        ]
        if self.kind != "sizes" and depth < _DEEPEST:
            kinds += [self.branch, self.loop, self.scan]
        return [made for _ in range(size) for made in self.rng.choice(kinds)(known, depth)]

    def plain(self, known: list[str], depth: int) -> list[NodeProto]:
        """An elementwise operator, or a product with weights."""
        op = self.rng.choice(("Add", "Sub", "Mul", "Max", "Neg", "MatMul", "Where"))
        nodes = NodeWriter(self.names)
        a, b = self.some(known), self.some(known)
        match op:
            case "Neg":
                made = nodes.add("Neg", a)
            case "MatMul":
                made = nodes.add("MatMul", a, self.weight(WIDTH, WIDTH))
            case "Where":
                made = nodes.add("Where", nodes.add("Less", a, b), b, nodes.add("Mul", a, b))
            case _:
                made = nodes.add(op, a, b)
        known.append(nodes.add("Tanh", made))
        return nodes.made

    def operator(self, known: list[str], depth: int) -> list[NodeProto]:
        """Any of the drawings that the opset has."""
        nodes = NodeWriter(self.names)
        fitting = [
            one
            for one in DRAWINGS
            if one.since <= self.opset and not (one.is_closed and self.is_open)
        ]
        made = self.rng.choice(fitting).write(_Point(self, nodes, known))
        known.append(nodes.add("Tanh", made))
        return nodes.made

    def wide(self, known: list[str], depth: int) -> list[NodeProto]:
        """What needs the sizes, or joins points along an axis."""
        ways = (self.attend, self.normalise, self.reduce, self.flatten, self.join, self.turn)
        nodes = NodeWriter(self.names)
        made = self.rng.choice((*ways, self.spread))(nodes, known)
        known.append(nodes.add("Tanh", made))
        return nodes.made

    def attend(self, nodes: NodeWriter, known: list[str]) -> str:
        a, b, c = (self.some(known) for _ in range(3))
        scores = nodes.add("MatMul", a, nodes.add("Transpose", b, perm=[0, 2, 1]))
        return nodes.add("MatMul", nodes.add("Softmax", scores, axis=-1), c)

    def normalise(self, nodes: NodeWriter, known: list[str]) -> str:
        if self.rng.random() < 0.4:
            return nodes.add("Softmax", self.some(known), axis=self.rng.choice((0, 1, 2)))
        scale, bias = self.weight(WIDTH), self.weight(WIDTH)
        return nodes.add("LayerNormalization", self.some(known), scale, bias, axis=-1)

    def reduce(self, nodes: NodeWriter, known: list[str]) -> str:
        op = self.rng.choice(("ReduceMean", "ReduceMax", "ReduceMin"))
        axes = self.rng.choice(([0], [1], [2], [0, 1], [1, 2]))
        a = self.some(known)
        return nodes.add("Sub", a, reduced(_Point(self, nodes, known), op, a, axes))

    def flatten(self, nodes: NodeWriter, known: list[str]) -> str:
        """A product of rows of both axes as one."""
        a = self.some(known)
        rows = nodes.add("Reshape", a, self.hold([-1, WIDTH]))
        made = nodes.add("MatMul", rows, self.weight(WIDTH, WIDTH))
        return nodes.add("Reshape", made, nodes.add("Shape", a))

    def join(self, nodes: NodeWriter, known: list[str]) -> str:
        """The last or the first points of two arrays, one behind the other."""
        axis, a = self.rng.choice((0, 1)), self.some(known)
        both = nodes.add("Concat", a, self.some(known), axis=axis)
        size = nodes.add("Gather", nodes.add("Shape", a), self.hold([axis]), axis=0)
        ends = nodes.add("Mul", size, self.hold([2]))
        parts = [(size, ends), (self.hold([0]), size)]
        if axis == 1:
            one = self.hold([1])  # all ranges begin at one or more
            parts.append((one, nodes.add("Add", size, one)))
        start, end = self.rng.choice(parts)
        return nodes.add("Slice", both, start, end, self.hold([axis]))

    def turn(self, nodes: NodeWriter, known: list[str]) -> str:
        """Something between two transpositions."""
        turned = nodes.add("Transpose", self.some(known), perm=[1, 0, 2])
        made = nodes.add("Add", turned, self.weight(WIDTH))
        return nodes.add("Transpose", nodes.add("Sigmoid", made), perm=[1, 0, 2])

    def spread(self, nodes: NodeWriter, known: list[str]) -> str:
        """A row for all points, of a part of the shape or of all."""
        a = self.some(known)
        made = nodes.add("Expand", self.weight(1, WIDTH), nodes.add("Shape", a))
        return nodes.add("Add", made, a)

    # -- regions ---------------------------------------------------------------------------------

    def region(self, known: Sequence[str], depth: int) -> tuple[list[NodeProto], str]:
        """Nodes of a body and its result, which is none of `known`."""
        inner = list(known)
        nodes = self.nodes(inner, depth + 1, self.rng.randint(1, 3))
        result = next(self.names)
        return [*nodes, helper.make_node("Identity", [self.some(inner)], [result])], result

    def condition(self, known: Sequence[str]) -> tuple[list[NodeProto], str]:
        """A condition: an input, a constant, or computed by the nodes."""
        if self.rng.random() < 0.3:
            return [], self.rng.choice(("flag", self.hold(self.rng.random() < 0.5, "bool")))
        nodes = NodeWriter(self.names)
        largest = nodes.add("ReduceMax", self.some(known), keepdims=0)
        condition = nodes.add("Less", largest, self.hold(0.5, "float32"))
        return nodes.made, condition

    def branch(self, known: list[str], depth: int) -> list[NodeProto]:
        sides: list[GraphProto] = []
        for _ in range(2):
            nodes, result = self.region(known, depth)
            sides.append(helper.make_graph(nodes, result, [], [self.value(result)]))
        before, condition = self.condition(known)
        name = next(self.names)
        known.append(name)
        made = helper.make_node(
            "If", [condition], [name], name=name, then_branch=sides[0], else_branch=sides[1]
        )
        return [*before, made]

    def loop(self, known: list[str], depth: int) -> list[NodeProto]:
        """One or two carried values; a count that is constant, or data; an end that may be data."""
        states = [next(self.names) for _ in range(self.rng.randint(1, 2))]
        nodes: list[NodeProto] = []
        results = []
        for _ in states:
            made, result = self.region([*known, *states], depth)
            nodes += made
            results.append(result)
        step, before, after = (next(self.names) for _ in range(3))
        asked, more = (
            self.condition([*known, *results]) if self.rng.random() < 0.5 else ([], before)
        )
        nodes += [*asked, helper.make_node("Identity", [more], [after])]
        given = [self.scalar(step, _INT64), self.scalar(before, _BOOL), *map(self.value, states)]
        ends = [self.scalar(after, _BOOL), *map(self.value, results)]
        body = helper.make_graph(nodes, after, given, ends)
        trips = "trips" if self.rng.random() < 0.5 else self.hold(self.rng.randint(0, _TRIPS))
        inputs = [trips, self.hold(True, "bool"), *(self.some(known) for _ in states)]
        names = [next(self.names) for _ in states]
        known += names
        return [helper.make_node("Loop", inputs, names, name=names[0], body=body)]

    def scan(self, known: list[str], depth: int) -> list[NodeProto]:
        """A state that meets the rows of an array one by one; what becomes of it is collected."""
        state, row, last, collected = (next(self.names) for _ in range(4))
        nodes, result = self.region([*known, state], depth)
        inside = NodeWriter(self.names)
        end = inside.add("Tanh", inside.add("Add", result, row))
        body = helper.make_graph(
            [*nodes, *inside.made],
            end,
            [self.value(state), self.value(row, self.shape[1:])],
            [self.value(end), self.value(result)],
        )
        inputs = [self.some(known), self.some(known)]
        scan = helper.make_node(
            "Scan", inputs, [last, collected], name=last, body=body, num_scan_inputs=1
        )
        behind = NodeWriter(self.names)
        mean = reduced(_Point(self, behind, known), "ReduceMean", collected, [0], keepdims=0)
        known.append(behind.add("Tanh", behind.add("Add", mean, last)))
        return [scan, *behind.made]


@dataclass(frozen=True, slots=True)
class _Point:
    """Where a node of a model is drawn: what is known there."""

    writer: _Writer
    nodes: NodeWriter
    known: Sequence[str]

    @property
    def rng(self) -> Random:
        return self.writer.rng

    @property
    def opset(self) -> int:
        return self.writer.opset

    @property
    def width(self) -> int:
        return WIDTH

    def value(self) -> str:
        return self.writer.some(self.known)

    def exact(self) -> str:
        return self.rng.choice(("x", "w"))

    def hold(self, array: object, kind: str = "int64") -> str:
        return self.writer.hold(array, kind)

    def weight(self, *shape: int) -> str:
        return self.writer.weight(*shape)
