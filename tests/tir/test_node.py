"""tir/node.py: what every node can do."""

from __future__ import annotations

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import INT64
from tilewright.tir.expr import LT, Add, And, Const, Expr, Select, Var, index
from tilewright.tir.extern import ExternFunction
from tilewright.tir.node import Node, field_names
from tilewright.tir.stmt import NOTHING, Extern, For, ForKind, Store

from .expressions import VARIABLES

X, Y, _ = VARIABLES


def test_children_are_the_nodes_below_in_order_of_definition() -> None:
    select = Select(X < Y, X, Y)
    assert select.children() == (X < Y, X, Y)
    assert X.children() == ()


def test_map_children_returns_the_same_object_when_nothing_changed() -> None:
    expr = Add(X, index(1))
    assert expr.map_children(lambda child: child) is expr


def test_map_children_rebuilds_only_what_changed() -> None:
    left = Add(X, index(1))
    expr = Add(left, Y)
    changed = expr.map_children(lambda child: index(7) if child is Y else child)
    assert changed == Add(left, index(7))
    assert isinstance(changed, Add)
    assert changed.a is left


def test_a_pair_maps_both_operands_and_keeps_its_kind() -> None:
    for kind in (Add, LT, And):
        pair = kind(X, Y)
        assert pair.children() == (X, Y)
        assert pair.map_children(lambda child: child) is pair
        turned = pair.map_children(lambda child: Y if child is X else X)
        assert turned == kind(Y, X)


def test_a_leaf_visits_nothing() -> None:
    for leaf in (X, index(1), Buffer("A", INT64, (4,))):
        assert leaf.children() == ()
        assert leaf.map_children(lambda child: X) is leaf


def test_nodes_in_a_tuple_are_mapped_and_the_tuple_is_kept_where_none_changed() -> None:
    load = Load(Buffer("A", INT64, (4, 4)), (X, Y))
    assert load.map_children(lambda child: child) is load
    moved = load.map_children(lambda child: index(2) if child is Y else child)
    assert moved.indices == (X, index(2))


def test_a_node_that_was_rebuilt_has_the_children_that_its_fields_hold() -> None:
    load = Load(Buffer("A", INT64, (4, 4)), (X, Y), mask=X < Y, other=index(0))
    moved = load.map_children(lambda child: index(2) if child is Y else child)
    assert moved.children() == (load.buffer, X, index(2), X < Y, index(0))
    assert moved.children() == Load(*(getattr(moved, n) for n in field_names(Load))).children()
    swapped = For(X, 4, ForKind.SERIAL, NOTHING).map_children(lambda c: Y if c is X else c)
    assert (swapped.var, swapped.extent, swapped.annotations) == (Y, 4, ())


def test_an_extern_maps_its_buffers_and_keeps_the_walk_over_their_elements() -> None:
    a, b, c = (Buffer(name, INT64, (4,)) for name in "ABC")
    function = ExternFunction("copy", "void copy(void);", lambda x: x)
    extern = Extern(function, (a,), (b,))
    assert extern.map_children(lambda child: child) is extern
    moved = extern.map_children(lambda child: c if child is a else child)
    assert (moved.inputs, moved.outputs) == ((c,), (b,))
    walked = moved.children()
    assert {node.buffer for node in walked if isinstance(node, Load)} == {c}
    assert {node.buffer for node in walked if isinstance(node, Store)} == {b}


def test_fields_take_part_in_comparison_in_order_of_definition() -> None:
    assert field_names(For) == (
        *("var", "extent", "kind", "body", "tail", "annotations"),
        *("intrinsic", "axis"),
    )
    assert field_names(Store) == ("buffer", "indices", "value", "mask")
    assert field_names(Load) == ("buffer", "indices", "mask", "other")


def test_the_hash_is_computed_once_and_kept() -> None:
    calls = []

    class Counting(Const):
        def __hash__(self) -> int:
            calls.append(1)
            return super().__hash__()

    inner: Expr = Counting(1, X.dtype)
    outer: Node = Add(inner, Y)
    assert hash(outer) == hash(outer)
    assert len(calls) == 1


def test_nodes_of_different_kinds_or_fields_differ() -> None:
    assert Add(X, Y) != Add(Y, X)
    assert Add(X, Y) != "x + y"
    assert Var("x") != X
