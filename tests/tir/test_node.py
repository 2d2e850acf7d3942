"""tir/node.py: what every node can do."""

from __future__ import annotations

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import INT64
from tilewright.tir.expr import LT, Add, And, Const, Expr, Select, Var, index
from tilewright.tir.node import Node, field_names
from tilewright.tir.stmt import For, Store

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
