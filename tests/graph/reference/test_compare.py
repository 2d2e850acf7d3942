"""The numeric check of a rewrite finds wrong ones and passes right ones."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode, rebuilt
from tilewright.graph.ops.activation import Gelu, Relu
from tilewright.graph.ops.arithmetic import Add, Div, Mul, Sub
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.functions import Cast, Erf, Exp, Round
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Concat, Identity, Transpose
from tilewright.graph.ops.softmax import Softmax
from tilewright.graph.reference.compare import compare
from tilewright.graph.types import Splat, TensorType, owned

X = TensorType("float32", (3, 3))


def graph_of(*steps: tuple[Operator, str, str]) -> Graph:
    """A node per step (operator, inputs, output); "x" is the input, "c" 0.5, "y" the output."""
    b = GraphBuilder("g")
    b.input("x", X)
    b.constant("c", Splat(0.5, "float32", ()))
    b.constant("hundred", Splat(100.0, "float32", ()))
    b.constant("big", Splat(300.0, "float32", ()))
    b.constant("never", Splat(float("nan"), "float32", ()))
    for op, inputs, output in steps:
        b.add(op, *inputs.split(), output=output)
    return b.finish(("y",))


def with_constant(constant: np.ndarray) -> Graph:
    """y = x + constant"""
    b = GraphBuilder("g")
    b.input("x", X)
    b.constant("k", constant)
    b.add(Add(), "x", "k", output="y")
    return b.finish(("y",))


PLAIN = graph_of((Relu(), "x", "a"), (Mul(), "a c", "b"), (Softmax((1,)), "b", "y"))


def test_equal_graphs_compare_nothing() -> None:
    result = compare(PLAIN, PLAIN)
    assert result.equal
    assert result.values == 0


def test_a_right_rewrite_is_equal_at_its_own_boundary() -> None:
    after = graph_of(
        (Relu(), "x", "a"), (Mul(), "c a", "b0"), (Identity(), "b0", "b"), (Softmax((1,)), "b", "y")
    )
    result = compare(PLAIN, after)
    assert result.equal
    assert (result.values, result.error) == (1, 0.0)  # b alone: a and y are in both graphs


@pytest.mark.parametrize(
    "wrong",
    [
        ((Relu(), "x", "a"), (Add(), "a c", "b"), (Softmax((1,)), "b", "y")),
        ((Relu(), "x", "a"), (Mul(), "a c", "b"), (Softmax((0,)), "b", "y")),
        (
            (Relu(), "x", "a0"), (Transpose((1, 0)), "a0", "a"),
            (Mul(), "a c", "b"), (Softmax((1,)), "b", "y"),
        ),
        ((Mul(), "x c", "b"), (Softmax((1,)), "b", "y")),
    ],
)  # fmt: skip
def test_a_wrong_rewrite_is_found(wrong: tuple[tuple[Operator, str, str], ...]) -> None:
    result = compare(PLAIN, graph_of(*wrong))
    assert not result.equal
    assert result.error > 0.01
    assert result.worst in ("a", "b", "y")


def test_a_changed_constant_is_found_and_a_renamed_one_is_not_evaluated() -> None:
    changed = rebuilt(PLAIN, PLAIN.nodes, {"c": Splat(0.25, "float32", ())})
    assert not compare(PLAIN, changed).equal
    nodes = tuple(
        GraphNode(n.op, tuple("d" if v == "c" else v for v in n.inputs), n.outputs)
        for n in PLAIN.nodes
    )
    renamed = rebuilt(PLAIN, nodes, {"d": Splat(0.5, "float32", ())})
    assert compare(PLAIN, renamed).values == 0


def test_merging_equal_nodes_is_right_although_its_boundary_alone_would_not_say_so() -> None:
    """b2 goes, its reader reads b1: that the two are equal, the nodes before them show."""
    before = graph_of(
        (Relu(), "x", "a1"), (Relu(), "x", "a2"), (Mul(), "a1 c", "b1"), (Mul(), "a2 c", "b2"),
        (Concat(0), "b1 b2", "d"), (Relu(), "d", "y"),
    )  # fmt: skip
    after = graph_of(
        (Relu(), "x", "a1"), (Mul(), "a1 c", "b1"), (Concat(0), "b1 b1", "d"), (Relu(), "d", "y")
    )
    assert compare(before, after).equal
    wrong = graph_of(
        (Relu(), "x", "a1"), (Mul(), "a1 c", "b1"), (Concat(0), "b1 a1", "d"), (Relu(), "d", "y")
    )
    assert not compare(before, wrong).equal


def test_a_rewrite_may_rest_on_what_stands_before_it() -> None:
    """relu(relu(x)) = relu(x), though relu(r) is not r for every r."""
    before = graph_of((Relu(), "x", "r"), (Relu(), "r", "s"), (Mul(), "s c", "y"))
    after = graph_of((Relu(), "x", "r"), (Mul(), "r c", "y"))
    assert compare(before, after).equal
    wrong = graph_of((Mul(), "x c", "y"))
    assert not compare(before, wrong).equal


def test_what_takes_little_is_computed_before_a_product_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """relu(mask) is the mask, as the node before it shows; the product beside it is computed only
    where the sides still differ.
    """

    def masked(*steps: tuple[Operator, str, str]) -> Graph:
        b = GraphBuilder("g")
        for name, shape in (("x", (1024, 32)), ("w", (32, 64)), ("k", (64, 64))):
            b.input(name, TensorType("float32", shape))
        for op, inputs, output in ((MatMul(), "x w", "p"), (Relu(), "k", "mask"), *steps):
            b.add(op, *inputs.split(), output=output)
        return b.finish(("y",))

    before = masked((Relu(), "mask", "m"), (MatMul(), "p m", "y"))
    computed: list[tuple[int, ...]] = []
    own = MatMul.reference

    def counted(self: MatMul, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        computed.append(arrays[0].shape)
        return own(self, *arrays)

    monkeypatch.setattr(MatMul, "reference", counted)
    assert compare(before, masked((MatMul(), "p mask", "y"))).equal
    assert set(computed) == {(1024, 64)}
    assert not compare(before, masked((MatMul(), "p k", "y"))).equal
    assert set(computed) == {(1024, 64), (1024, 32)}


def test_only_what_differed_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products are rewritten: one rests on a node further up, the other on nothing."""

    def doubled(*steps: tuple[Operator, str, str]) -> Graph:
        b = GraphBuilder("g")
        for name, shape in (("x", (1024, 32)), ("k", (32, 32)), ("l", (32, 16))):
            b.input(name, TensorType("float32", shape))
        for op, inputs, output in ((Relu(), "k", "mask"), *steps):
            b.add(op, *inputs.split(), output=output)
        return b.finish(("y", "z"))

    before = doubled(
        (Relu(), "mask", "m"), (MatMul(), "x m", "y"), (Add(), "l l", "s"), (MatMul(), "y s", "z")
    )
    after = doubled(
        (MatMul(), "x mask", "y"), (Add(), "l l", "s0"), (Identity(), "s0", "s"),
        (MatMul(), "y s0", "z"),
    )  # fmt: skip
    computed: list[int] = []
    own = MatMul.reference

    def counted(self: MatMul, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        computed.append(arrays[1].shape[1])
        return own(self, *arrays)

    monkeypatch.setattr(MatMul, "reference", counted)
    result = compare(before, after)
    assert result.equal
    assert result.values == 3
    assert computed.count(32) > computed.count(16)


def test_what_one_side_alone_computes_of_a_wider_region_is_left_alone() -> None:
    """d rests on a Relu further up; on the old side it reads v, which both name, on the new side
    it does not.
    """
    before = graph_of(
        (Relu(), "x", "r"), (Mul(), "r c", "v"), (Relu(), "v", "d"), (Add(), "v d", "y")
    )
    after = graph_of(
        (Relu(), "x", "r"), (Mul(), "c r", "v"), (Mul(), "r c", "d0"), (Identity(), "d0", "d"),
        (Add(), "v d", "y"),
    )  # fmt: skip
    assert compare(before, after).equal
    wrong = graph_of(
        (Relu(), "x", "r"), (Mul(), "c r", "v"), (Identity(), "r", "d"), (Add(), "v d", "y")
    )
    assert not compare(before, wrong).equal


def test_a_fault_is_found_where_it_is_although_others_follow() -> None:
    """What a wrong value brings in does not hide behind it, nor is it charged to those behind."""
    before = graph_of((Mul(), "x big", "a"), (Exp(), "a", "y"))
    after = graph_of(
        (Mul(), "x big", "a0"), (Mul(), "a0 c", "a"), (Identity(), "a", "b"), (Exp(), "b", "y")
    )
    result = compare(before, after)
    assert (result.equal, result.worst) == (False, "a")


def test_sides_that_differed_and_agree_on_zeros_alone_have_shown_nothing() -> None:
    """r + r and r * r agree where no element of x - 100 is positive; x is no random number but
    100 times as large.
    """

    def lifted(op: Operator) -> Graph:
        return graph_of(
            (Mul(), "x big", "h"), (Sub(), "h hundred", "a"), (Relu(), "a", "r"), (op, "r r", "y")
        )

    assert not compare(lifted(Add()), lifted(Mul())).equal


def test_a_value_that_changes_its_type_differs() -> None:
    other = graph_of((Concat(0), "x x", "a"), (Mul(), "a c", "b"), (Softmax((1,)), "b", "y"))
    result = compare(PLAIN, other)
    assert result.error == np.inf
    assert result.worst == "a"


def test_infinities_and_nans_count_as_values() -> None:
    big = graph_of((Add(), "x x", "y"))
    inf = rebuilt(big, (GraphNode(Mul(), ("x", "c"), ("y",)),), {"c": Splat(np.inf, "float32", ())})
    assert compare(inf, rebuilt(inf, (GraphNode(Mul(), ("c", "x"), ("y",)),), inf.constants)).equal
    assert not compare(big, inf).equal


def test_a_nan_where_a_number_is_expected_differs() -> None:
    before = graph_of((Relu(), "x", "a"), (Mul(), "a c", "b"), (Identity(), "b", "y"))
    after = graph_of((Relu(), "x", "a"), (Mul(), "a never", "b"), (Identity(), "b", "y"))
    result = compare(before, after)
    assert (result.equal, result.error, result.worst) == (False, float("inf"), "b")


def test_large_values_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.graph.reference.compare._PIECE", 2)
    for wrong in range(9):
        constant = np.ones((1, 3, 3), np.float32)
        constant.reshape(-1)[wrong] = 2
        changed = with_constant(constant)
        result = compare(with_constant(np.ones((1, 3, 3), np.float32)), changed)
        assert not result.equal
        assert result.worst == "y"
        assert result.error > 0.01


def folded(kind: str, factor: float) -> tuple[Graph, Graph]:
    """x * k * m, and x * (k m) with the product rounded to `kind`, then times `factor`."""
    rng = np.random.default_rng(0)
    k, m = (rng.uniform(1, 2, (3, 3)).astype(kind) for _ in range(2))
    type_ = TensorType(kind, (3, 3))
    graphs = []
    for product in (None, (k.astype(np.float64) * m * factor).astype(kind)):
        b = GraphBuilder("g")
        b.input("x", type_)
        if product is None:
            b.add(Mul(), b.add(Mul(), "x", b.constant("k", k), output="a"), b.constant("m", m),
                  output="y")  # fmt: skip
        else:
            b.add(Mul(), "x", b.constant("km", product), output="y")
        graphs.append(b.finish(("y",)))
    return graphs[0], graphs[1]


@pytest.mark.parametrize(("kind", "last_place"), [("float32", 2.0**-23), ("float16", 2.0**-10)])
def test_a_constant_that_was_rounded_once_may_be_off_by_that_and_no_more(
    kind: str, last_place: float
) -> None:
    right = compare(*folded(kind, 1.0))
    assert right.equal
    assert right.error > 1e-11
    assert compare(*folded(kind, 1 + 2 * last_place)).equal
    wrong = compare(*folded(kind, 1 + 16 * last_place))
    assert not wrong.equal
    assert last_place < wrong.allowed < 10 * last_place


def test_one_value_in_float16_does_not_loosen_the_check_of_the_others() -> None:
    """A rewrite of float32 values, in a graph whose other half is float16."""
    graphs = []
    for scale in (0.5, 0.5 * (1 + 1e-4)):
        b = GraphBuilder("g")
        b.input("x", X)
        half = b.input("h", TensorType("float16", (3, 3)))
        b.add(Mul(), "x", b.constant("c", Splat(scale, "float32", ())), output="y")
        b.add(Relu(), half, output="z")
        graphs.append(b.finish(("y", "z")))
    result = compare(*graphs)
    assert not result.equal
    assert result.allowed < 1e-6


def test_a_rewrite_that_makes_no_constant_has_nothing_that_rounds() -> None:
    """x * c + x * c beside x + x: as far as the fault goes, no constant is to blame."""
    before = graph_of((Mul(), "x c", "a"), (Add(), "a a", "y"))
    after = graph_of((Mul(), "x c", "a"), (Add(), "a x", "y"))
    assert compare(before, after).allowed == 1e-11


def spelled(root: float) -> Graph:
    """x * (1 + erf(x / root)) / 2, its numbers in float32."""
    b = GraphBuilder("g")
    b.input("x", X)
    numbers = {n: b.constant(n, np.array(v, np.float32)) for n, v in (("r", root), ("one", 1.0))}
    half = b.constant("half", np.array(0.5, np.float32))
    grown = b.add(Add(), b.add(Erf(), b.add(Div(), "x", numbers["r"])), numbers["one"])
    b.add(Mul(), b.add(Mul(), "x", grown), half, output="y")
    return b.finish(("y",))


def test_a_constant_that_is_dropped_may_stand_for_what_it_was_rounded_from() -> None:
    b = GraphBuilder("g")
    b.input("x", X)
    b.add(Gelu(), "x", output="y")
    recognised = b.finish(("y",))
    right = compare(spelled(2**0.5), recognised)
    assert right.equal
    assert 1e-11 < right.error < right.allowed < 1e-6
    assert not compare(spelled(2**0.5 * (1 + 1e-5)), recognised).equal


def test_a_short_number_that_is_dropped_was_rounded_from_nothing() -> None:
    """x * 1 * 1.5 beside x * x: neither number explains anything."""
    b = GraphBuilder("g")
    b.input("x", X)
    one, more = (b.constant(f"c{v}", np.array(v, np.float32)) for v in (1.0, 1.5))
    b.add(Mul(), b.add(Mul(), "x", one), more, output="y")
    assert compare(b.finish(("y",)), graph_of((Mul(), "x x", "y"))).allowed == 1e-11


def test_each_of_many_layers_of_levels_is_compared_by_itself() -> None:
    """Scales join weights in all layers, and each reads whole numbers of floats in place of
    integers: levels next to a tie would differ in all layers behind.
    """
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((64, 64), np.float32) for _ in range(6)]

    def network(*, joined: bool) -> Graph:
        builder = GraphBuilder("net")
        value = builder.input("x", TensorType("float32", (256, 64)))
        for layer, numbers in enumerate(weights):
            scale = np.float32(0.1234567 if layer else 12345.67)  # some million levels in each
            if joined:
                w = builder.constant(f"w{layer}", owned(numbers * scale))
                sums = builder.add(MatMul(), value, w, output=f"sums{layer}")
            else:
                w = builder.constant(f"w{layer}", owned(numbers))
                s = builder.constant(f"s{layer}", Splat(float(scale), "float32", ()))
                product = builder.add(MatMul(), value, w)
                sums = builder.add(Mul(), product, s, output=f"sums{layer}")
            whole = builder.add(Round(), sums, output=f"round{layer}")
            levels = builder.add(Cast("int64"), whole, output=f"levels{layer}")
            wide = builder.add(Cast("float32"), levels, output=f"value{layer}")
            value = whole if joined and layer < 5 else wide
        return builder.finish((value, "levels5"))

    result = compare(network(joined=False), network(joined=True))
    assert result.equal
    assert result.error < 1e-6


def test_levels_next_to_a_tie_are_not_carried_from_layer_to_layer() -> None:
    """A scale joins weights, which moves many levels by one; far behind, a Relu of
    what is never negative goes, which a single step shows.
    """
    numbers = np.random.default_rng(0).standard_normal((256, 16), np.float32)

    def network(*, joined: bool) -> Graph:
        builder = GraphBuilder("net")
        x = builder.input("x", TensorType("float32", (8, 256)))
        scale = np.float32(1234567.8)
        if joined:
            w = builder.constant("joined", owned(numbers * scale))
            sums = builder.add(MatMul(), x, w, output="sums")
        else:
            w = builder.constant("w", owned(numbers))
            s = builder.constant("s", Splat(float(scale), "float32", ()))
            sums = builder.add(Mul(), builder.add(MatMul(), x, w), s, output="sums")
        levels = builder.add(Cast("int32"), builder.add(Round(), sums, output="r"), output="levels")
        tiny = builder.constant("tiny", Splat(1e-9, "float32", ()))
        wide = builder.add(Cast("float32"), levels, output="wide")
        power = builder.add(Exp(), builder.add(Mul(), wide, tiny, output="small"), output="power")
        builder.add(Identity() if joined else Relu(), power, output="y")
        return builder.finish(("y", "levels"))

    assert compare(network(joined=False), network(joined=True)).equal
