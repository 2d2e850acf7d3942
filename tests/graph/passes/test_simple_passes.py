"""Constant folding, dead code, common subexpressions and identity removal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Div, Max, Min, Mul, Pow, Sub, Sum
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.logic import And, Or, Where
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Concat, Identity, Reshape, Transpose
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.ops.repetition import Expand, Tile
from tilewright.graph.ops.slicing import Slice
from tilewright.graph.passes.common_subexpressions import CommonSubexpressions
from tilewright.graph.passes.constant_folding import ConstantFolding
from tilewright.graph.passes.dead_code import DeadCode
from tilewright.graph.passes.identity_removal import IdentityRemoval
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.types import Constant, Splat, TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
X = TensorType("float32", (2, 3, 4))


def start() -> tuple[GraphBuilder, str]:
    b = GraphBuilder("g")
    return b, b.input("x", X)


def test_folding_computes_what_depends_on_constants_alone(apply: Apply, lines: Lines) -> None:
    b, x = start()
    table = b.constant("table", np.arange(4, dtype="float32"))
    half = b.constant("half", Splat(0.5, "float32", (4,)))
    folded = b.add(Relu(), b.add(Add(), table, half))
    after = apply(ConstantFolding(), b.finish((b.add(Mul(), x, folded, output="y"),)))
    assert lines(after) == ["y = Mul(x, relu)"]
    np.testing.assert_array_equal(after.constants["relu"], np.float32([0.5, 1.5, 2.5, 3.5]))
    assert not after.constants["relu"].flags.writeable


def test_an_expand_to_its_own_shape_and_a_tile_of_one_are_nothing(
    apply: Apply, lines: Lines
) -> None:
    b, x = start()
    same = b.add(Tile((1, 1, 1)), b.add(Expand((3, 1)), x))
    wider = b.add(Expand((2, 2, 3, 4)), same)
    after = apply(IdentityRemoval(), b.finish((b.add(Relu(), wider, output="y"),)))
    assert lines(after) == ["expand_1 = Expand[shape=(2, 2, 3, 4)](x)", "y = Relu(expand_1)"]


def test_splats_stay_splats_however_large() -> None:
    b = GraphBuilder("g")
    one = b.constant("one", Splat(1.5, "float32", (1 << 20, 1 << 10)))
    two = b.constant("two", Splat(2.0, "float32", (1 << 10,)))
    total = b.add(Sum(), one, two, two)
    moved = b.add(Transpose((1, 0)), b.add(Identity(), total))
    part = b.add(Slice((0, 0), (1 << 9, 1 << 20), (2, 1)), moved)
    again = b.add(Tile((2, 1)), b.add(Expand((1, 1)), part))
    flat = b.add(Reshape((1 << 30,)), again)
    joined = b.add(Concat(0), flat, b.add(Relu(), flat), output="y")
    after = ConstantFolding(max_bytes=0)(b.finish((joined,)))
    assert after.nodes == ()
    assert after.constants["y"] == Splat(5.5, "float32", (1 << 31,))


def test_folding_stops_at_its_budget(apply: Apply, lines: Lines) -> None:
    b, x = start()
    a = b.constant("a", np.ones((2, 3, 4), "float32"))
    first = b.add(Add(), a, a, output="first")
    second = b.add(Mul(), first, a, output="second")
    graph = b.finish((b.add(Sum(), x, second, output="y"),))
    assert lines(apply(ConstantFolding(max_bytes=2 * 96), graph)) == ["y = Sum(x, second)"]
    after = ConstantFolding(max_bytes=96 + 95)(graph)
    assert lines(after) == ["second = Mul(first, a)", "y = Sum(x, second)"]
    assert ConstantFolding(max_bytes=95)(graph) is graph


def test_what_nobody_reads_any_more_gives_its_bytes_back(apply: Apply, lines: Lines) -> None:
    b, x = start()
    value = a = b.constant("a", np.ones((2, 3, 4), "float32"))
    for _ in range(5):
        value = b.add(Mul(), value, a)
    graph = b.finish((b.add(Sum(), x, value, output="y"),))
    after = apply(ConstantFolding(max_bytes=2 * 96), graph)
    assert lines(after) == ["y = Sum(x, mul_4)"]
    assert set(after.constants) == {"a", "mul_4"}

    b, x = start()
    a = b.constant("a", np.ones((2, 3, 4), "float32"))
    first = b.add(Mul(), a, a, output="first")
    second = b.add(Mul(), first, a, output="second")
    third = b.add(Mul(), second, a, output="third")
    graph = b.finish((b.add(Sum(), x, first, output="y"), third))  # both are read to the end
    after = ConstantFolding(max_bytes=2 * 96)(graph)
    assert lines(after) == ["third = Mul(second, a)", "y = Sum(x, first)"]
    assert set(after.constants) == {"a", "first", "second"}


def test_folding_leaves_different_splats_and_matrices_to_arrays(apply: Apply) -> None:
    b, x = start()
    one, two = (b.constant(f"s{v}", Splat(v, "float32", (4, 4))) for v in (1.0, 2.0))
    product = b.add(MatMul(), one, two)
    joined = b.add(Concat(0), one, two)
    y = b.add(MatMul(), b.add(MatMul(), x, product), b.add(Transpose((1, 0)), joined), output="y")
    after = apply(ConstantFolding(), b.finish((y,)))
    assert [node.op for node in after.nodes] == [MatMul(), MatMul()]
    np.testing.assert_array_equal(after.constants["matmul"], np.full((4, 4), 8.0))


def test_dead_nodes_and_constants_go_and_inputs_stay(apply: Apply, lines: Lines) -> None:
    b, x = start()
    b.input("unused", X)
    c = b.constant("c", Splat(1.0, "float32", ()))
    b.constant("d", Splat(1.0, "float32", ()))
    b.add(Relu(), b.add(Add(), x, c))
    after = apply(DeadCode(), b.finish((b.add(Relu(), x, output="y"),)))
    assert lines(after) == ["y = Relu(x)"]
    assert after.inputs == ("x", "unused")
    assert dict(after.constants) == {}


def test_equal_nodes_are_computed_once(apply: Apply, lines: Lines) -> None:
    b, x = start()
    c1 = b.constant("c1", np.array([1.0], "float32"))
    c2 = b.constant("c2", np.array([1.0], "float32"))
    left = b.add(Relu(), b.add(Add(), x, c1, output="a1"), output="r1")
    right = b.add(Relu(), b.add(Add(), x, c2, output="a2"), output="r2")
    after = apply(CommonSubexpressions(), b.finish((b.add(Mul(), left, right, output="y"),)))
    assert lines(after) == ["a1 = Add(x, c1)", "r1 = Relu(a1)", "y = Mul(r1, r1)"]
    assert list(after.constants) == ["c1"]


def test_an_output_keeps_its_node_though_another_is_equal(apply: Apply, lines: Lines) -> None:
    b, x = start()
    graph = b.finish((b.add(Relu(), x, output="y"), b.add(Relu(), x, output="z")))
    assert lines(apply(CommonSubexpressions(), graph)) == ["y = Relu(x)", "z = Relu(x)"]


def test_constants_that_only_look_equal_are_kept_apart() -> None:
    b, x = start()
    zeros = [b.constant(f"z{n}", np.array([z], "float32")) for n, z in enumerate((0.0, -0.0))]
    splats = [b.constant(f"s{n}", Splat(z, "float32", (1,))) for n, z in enumerate((0.0, -0.0))]
    large = [b.constant(f"l{n}", np.zeros((2, 3, 4), "float32")) for n in range(2)]
    graph = b.finish((b.add(Sum(), x, *zeros, *splats, *large, output="y"),))
    assert CommonSubexpressions(constant_bytes=95)(graph) is graph
    assert "l1" not in CommonSubexpressions(constant_bytes=96)(graph).constants


def test_nodes_that_change_nothing_go(apply: Apply, lines: Lines) -> None:
    b, x = start()
    value = b.add(Relu(), b.add(Identity(), x), output="r")
    value = b.add(Reshape((2, 3, 4)), value)
    value = b.add(Transpose((0, 1, 2)), value)
    value = b.add(Sum(), b.add(Concat(2), value))
    after = apply(IdentityRemoval(), b.finish((b.add(Add(), value, x, output="y"),)))
    assert lines(after) == ["r = Relu(x)", "y = Add(r, x)"]


ONE, ZERO = Splat(1.0, "float32", ()), Splat(0.0, "float32", (4,))


@pytest.mark.parametrize(
    ("op", "constant", "position"),
    [
        (Mul(), ONE, 1),
        (Mul(), np.ones((3, 1), np.float32), 0),
        (Add(), ZERO, 1),
        (Add(), np.zeros(4, np.float32), 0),
        (Sub(), ZERO, 1),
        (Div(), ONE, 1),
        (Pow(), ONE, 1),
    ],
    ids=str,
)
def test_arithmetic_with_a_neutral_constant_goes(
    apply: Apply, lines: Lines, op: Operator, constant: Constant, position: int
) -> None:
    b, x = start()
    c = b.constant("c", constant)
    operands = (c, b.add(Relu(), x)) if position == 0 else (b.add(Relu(), x), c)
    graph = b.finish((b.add(Relu(), b.add(op, *operands), output="y"),))
    assert lines(apply(IdentityRemoval(), graph)) == ["relu = Relu(x)", "y = Relu(relu)"]


def test_arithmetic_that_changes_something_stays() -> None:
    b, x = start()
    one = b.constant("one", ONE)
    larger = b.constant("larger", Splat(1.0, "float32", (5, 2, 3, 4)))
    nearly = b.constant("nearly", np.array([1, 1, 1, 0.5], np.float32))
    b.add(Mul(), x, larger, output="a")
    b.add(Mul(), x, nearly, output="b")
    b.add(Div(), one, x, output="c")
    b.add(Sub(), b.constant("zero", ZERO), x, output="d")
    graph = b.finish(tuple("abcd"))
    assert IdentityRemoval()(graph) is graph


def test_choices_that_are_always_the_same_go(apply: Apply, lines: Lines) -> None:
    b, x = start()
    z = b.input("z", X)
    mask = b.input("mask", TensorType("bool", X.shape))
    yes = b.constant("yes", Splat(True, "bool", (4,)))
    no = b.constant("no", np.zeros(X.shape, bool))
    both = b.add(Or(), b.add(And(), mask, yes), no)
    first = b.add(Where(), yes, x, z)
    second = b.add(Where(), no, b.constant("c", ONE), z)
    b.add(Where(), both, first, second, output="y")
    assert lines(apply(IdentityRemoval(), b.finish(("y",)))) == ["y = Where(mask, x, z)"]


def test_a_cast_to_the_type_that_a_value_has_goes(apply: Apply, lines: Lines) -> None:
    b, x = start()
    same = b.add(Cast("float32"), x)
    b.add(Cast("int32"), b.add(Max(), b.add(Min(), same)), output="y")
    assert lines(apply(IdentityRemoval(), b.finish(("y",)))) == ["y = Cast[to='int32'](x)"]


def test_moves_that_follow_one_another_are_joined(apply: Apply, lines: Lines) -> None:
    b, x = start()
    shaped = b.add(Reshape((6, 4)), b.add(Reshape((24,)), x, output="flat"), output="shaped")
    turned = b.add(Transpose((2, 0, 1)), b.add(Transpose((1, 2, 0)), x, output="t1"), output="t2")
    back = b.add(Reshape((2, 3, 4)), b.add(Reshape((3, 8)), x, output="r1"), output="r2")
    graph = b.finish((shaped, b.add(Relu(), turned, output="t"), b.add(Relu(), back, output="r")))
    after = apply(DeadCode(), IdentityRemoval()(graph))
    assert lines(after) == ["shaped = Reshape[shape=(6, 4)](x)", "t = Relu(x)", "r = Relu(x)"]


def test_of_two_transposes_the_first_one_is_done_first(apply: Apply, lines: Lines) -> None:
    b, x = start()
    swapped = b.add(Transpose((1, 0, 2)), x)
    b.add(Transpose((0, 2, 1)), swapped, output="y")
    after = apply(DeadCode(), apply(IdentityRemoval(), b.finish(("y",))))
    assert lines(after) == ["y = Transpose[permutation=(1, 2, 0)](x)"]


def test_an_output_takes_the_name_of_the_identity_that_made_it(apply: Apply, lines: Lines) -> None:
    b, x = start()
    r = b.add(Relu(), x, output="r")
    first = b.add(Identity(), r, output="y")
    second = b.add(Identity(), r, output="z")
    passed = b.add(Reshape((2, 3, 4)), x, output="w")
    after = apply(IdentityRemoval(), b.finish((first, second, passed)))
    assert lines(after) == ["y = Relu(x)", "w = Identity(x)", "z = Identity(y)"]


def top(b: GraphBuilder, value: str, name: str) -> tuple[str, str]:
    made = (f"{name}_values", f"{name}_places")
    b.add_node(GraphNode(TopK(2, 3), (value,), made))
    return made


def test_a_node_lives_while_one_of_its_values_does(apply: Apply, lines: Lines) -> None:
    b, x = start()
    _, places = top(b, x, "read")
    top(b, b.add(Relu(), x), "dead")
    after = apply(DeadCode(), b.finish((places,)))
    assert lines(after) == ["read_values, read_places = TopK[axis=2, count=3](x)"]


def test_equal_nodes_with_several_values_are_one_value_by_value(apply: Apply, lines: Lines) -> None:
    b, x = start()
    (values, _), (_, places) = top(b, x, "a"), top(b, x, "b")
    y = b.add(Relu(), values, output="y")
    z = b.add(Cast("float32"), places, output="z")
    after = apply(CommonSubexpressions(), b.finish((y, z)))
    assert lines(after) == [
        "a_values, a_places = TopK[axis=2, count=3](x)",
        "y = Relu(a_values)",
        "z = Cast[to='float32'](a_places)",
    ]
    b, x = start()
    (values, _), (_, places) = top(b, x, "a"), top(b, x, "b")
    graph = b.finish((values, places))  # of each, one is an output under its own name
    assert apply(CommonSubexpressions(), graph) is graph


def test_a_node_with_several_values_folds_to_as_many_constants(apply: Apply, lines: Lines) -> None:
    b, _ = start()
    table = top(b, b.constant("table", np.float32([[[3, 1, 4, 1]]])), "table")
    ones = top(b, b.constant("ones", Splat(1.0, "float32", (1, 1, 9))), "ones")
    after = apply(ConstantFolding(), b.finish((*table, *ones)))
    assert lines(after) == []
    assert [after.constants[name].tolist() for name in (*table, *ones)] == [
        [[[4, 3, 1]]],
        [[[2, 0, 1]]],
        [[[1, 1, 1]]],
        [[[0, 1, 2]]],
    ]
