"""Random models that branch and loop within each other, against ONNX's own reference.

Values are of one shape and bounded; bodies read the values of all graphs around them. Counts and
conditions are constants, inputs, or computed; what a loop collects is a Scan's, since ONNX's
reference joins the rows of a Loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto
from onnx.reference import ReferenceEvaluator

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.plan.reference_program import reference_model
from tilewright.graph.reference.reference import evaluate

from .flow_models import BOOL, INT64, Array, Shape, body, floats, graph, model, node, value

CLOSED = {"batch": 3, "seq": 2}
OPEN = {"batch": (1, 3, 6), "seq": (1, 2, 5)}
DEEPEST = 3


class Writer:
    """Writes one model of values of a shape."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self.shape = shape
        self.rng = np.random.default_rng(seed)
        self.names = (f"v{n}" for n in count())

    def nodes(self, known: list[str], depth: int, size: int) -> list[NodeProto]:
        """Some nodes, whose results are added to `known`."""
        found: list[NodeProto] = []
        for _ in range(size):
            kinds = [self.plain, self.plain]
            if depth < DEEPEST:
                kinds += [self.branch, self.loop, self.scan]
            kind = kinds[self.rng.integers(len(kinds))]
            found += kind(known, depth)
        return found

    def some(self, known: list[str]) -> str:
        """A value, one of the last more often."""
        last = known[-3:] if self.rng.integers(2) else known
        return str(last[self.rng.integers(len(last))])

    def plain(self, known: list[str], depth: int) -> list[NodeProto]:
        made, name = next(self.names), next(self.names)
        op = str(self.rng.choice(["Add", "Sub", "Mul", "Max", "MatMul", "Neg"]))
        inputs = [self.some(known)]
        if op == "MatMul":
            inputs.append("weights")
        elif op != "Neg":
            inputs.append(self.some(known))
        known.append(name)
        return [node(op, inputs, [made]), node("Tanh", [made], [name])]

    def region(self, known: list[str], depth: int) -> tuple[list[NodeProto], str]:
        inner = list(known)
        nodes = self.nodes(inner, depth + 1, int(self.rng.integers(1, 4)))
        result = next(self.names)
        return [*nodes, node("Identity", [self.some(inner)], [result])], result

    def branch(self, known: list[str], depth: int) -> list[NodeProto]:
        sides = []
        for _ in range(2):
            nodes, result = self.region(known, depth)
            sides.append(graph(result, nodes, [], [value(result)]))
        name = next(self.names)
        before, condition = self.condition(known)
        known.append(name)
        made = node(
            "If", [condition], [name], name=name, then_branch=sides[0], else_branch=sides[1]
        )
        return [*before, made]

    def condition(self, known: list[str]) -> tuple[list[NodeProto], str]:
        if self.rng.integers(3) == 0:
            return [], str(self.rng.choice(["yes", "no", "flag"]))
        largest, name = next(self.names), next(self.names)
        return [
            node("ReduceMax", [self.some(known)], [largest], keepdims=0),
            node("Less", [largest, "half"], [name]),
        ], name

    def loop(self, known: list[str], depth: int) -> list[NodeProto]:
        states = [next(self.names) for _ in range(self.rng.integers(1, 3))]
        nodes, results = [], []
        for _ in states:
            made, result = self.region([*known, *states], depth)
            nodes += made
            results.append(result)
        before, more = self.condition([*known, *results]) if self.rng.integers(2) else ([], "")
        inner = self.step(states, [*nodes, *before], results, more)
        names = [next(self.names) for _ in states]
        trips = str(self.rng.choice(["zero", "one", "three", "n"]))
        inputs = [trips, "yes", *(self.some(known) for _ in states)]
        known += names
        return [node("Loop", inputs, names, name=names[0], body=inner)]

    def step(
        self, states: list[str], nodes: list[NodeProto], results: list[str], more: str
    ) -> GraphProto:
        """A body, its own names for what all bodies have."""
        made = body("step", nodes, [value(s, shape=self.shape) for s in states], results, more)
        own = {name: next(self.names) for name in ("i", "before")}
        for item in made.input:
            item.name = own.get(item.name, item.name)
        if not more:
            end = next(self.names)
            made.node[0].input[0], made.node[0].output[0] = own["before"], end
            made.output[0].name = end
        elif more in ("yes", "no", "flag"):
            end = next(self.names)
            made.node.append(node("Identity", [more], [end]))
            made.output[0].name = end
        return made

    def scan(self, known: list[str], depth: int) -> list[NodeProto]:
        state, row, wide = (next(self.names) for _ in range(3))
        nodes, result = self.region([*known, state], depth)
        nodes.append(node("Add", [result, row], [wide]))
        end, given, rows, last = (next(self.names) for _ in range(4))
        inner = graph(
            end,
            [*nodes, node("Tanh", [wide], [end])],
            [value(state, shape=self.shape), value(row, shape=self.shape[1:])],
            [value(end), value(result)],
        )
        known += [last]
        return [
            node(
                "Scan",
                [self.some(known[:-1]), "rows"],
                [given, rows],
                name=given,
                body=inner,
                num_scan_inputs=1,
            ),
            node("ReduceMean", [rows], [next_name := next(self.names)], axes=[0], keepdims=0),
            node("Add", [next_name, given], [last]),
        ]


def random_model(seed: int, shapes: Mapping[str, int | str]) -> tuple[ModelProto, list[str]]:
    """A model, and its outputs. shapes: what stands in it for the batch and the length of rows."""
    shape = (shapes["batch"], 4)
    writer = Writer(seed, shape)
    known = ["x", "w"]
    nodes = writer.nodes(known, 0, 4)
    outputs = known[-2:]
    given = [value(name, shape=shape) for name in ("x", "w")]
    given += [value("rows", shape=(shapes["seq"], 4))]
    given += [value("n", INT64, ()), value("flag", BOOL, ())]
    proto = model(
        nodes,
        given,
        [value(name) for name in outputs],
        weights=floats((4, 4), 7),
        half=np.float32(0.5),
        no=False,
        zero=np.array(0),
        one=np.array(1),
        three=np.array(3),
    )
    return proto, outputs


def inputs(seed: int, n: int, flag: bool, sizes: Mapping[str, int] = CLOSED) -> dict[str, Array]:
    shape = (sizes["batch"], 4)
    return {
        "x": floats(shape, seed),
        "w": floats(shape, seed + 1),
        "rows": floats((sizes["seq"], 4), seed + 2),
        "n": np.array(n),
        "flag": np.array(flag),
    }


def check(seed: int, target: str | None) -> None:
    proto, outputs = random_model(seed, CLOSED)
    read = import_onnx(proto)
    better, reports = optimise(read)
    assert not [report for report in reports if report.verdict == "undone"]
    plain = reference_model(read)
    engine = compile(proto, target, cache=False, verify="off")
    for n, flag in ((0, True), (2, False), (3, True)):
        given = inputs(seed, n, flag)
        ways = {
            "graph": evaluate(read, given, dtype=None),
            "after the passes": evaluate(better, given, dtype=None),
            "a kernel for each node": plain.in_own_types(given),
            "engine": engine.run(given, threads=2),
        }
        for way, found in ways.items():
            compare(proto, outputs, given, found, way)


def check_open(seed: int, target: str | None) -> None:
    """One engine at several sizes: what ONNX says, and one set of bits on any number of threads."""
    proto, outputs = random_model(seed, {name: name for name in OPEN})
    read = import_onnx(proto, shapes=OPEN)
    better, reports = optimise(read)
    assert not [report for report in reports if report.verdict == "undone"]
    engine = compile(proto, target, cache=False, verify="off", shapes=OPEN)
    for batch, seq, n, flag in ((3, 2, 0, True), (1, 5, 2, False), (6, 1, 3, True)):
        given = inputs(seed, n, flag, {"batch": batch, "seq": seq})
        compare(proto, outputs, given, evaluate(better, given, dtype=None), "after the passes")
        found = engine.run(given, threads=2)
        compare(proto, outputs, given, found, "engine")
        for name, array in engine.run(given, threads=1).items():
            assert array.tobytes() == found[name].tobytes()


def compare(
    proto: ModelProto,
    outputs: Sequence[str],
    given: dict[str, Array],
    found: Mapping[str, Array],
    way: str,
) -> None:
    expected = ReferenceEvaluator(proto).run(None, given)
    for name, array in zip(outputs, expected, strict=True):
        assert found[name].shape == array.shape
        np.testing.assert_allclose(
            found[name], array, rtol=1e-3, atol=1e-4, err_msg=f"{way}: {name}"
        )


@pytest.mark.needs_cc
@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_gives_what_onnx_says(seed: int) -> None:
    check(seed, "c:scalar")


@pytest.mark.needs_cc
@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_gives_it_at_every_size(seed: int) -> None:
    check_open(seed, "c:scalar")


@pytest.mark.slow
@pytest.mark.needs_cc
@pytest.mark.parametrize("seed", range(100, 160))
def test_random_models_give_what_onnx_says(seed: int) -> None:
    check(seed, None)


@pytest.mark.slow
@pytest.mark.needs_cc
@pytest.mark.parametrize("seed", range(200, 260))
def test_random_models_give_it_at_every_size(seed: int) -> None:
    check_open(seed, None)
