"""tir/visit.py: walks in the order of the text, rewrites that rebuild only what changed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.expr import Add, Expr, Let, Mul, Var, const, index
from tilewright.tir.node import Node
from tilewright.tir.stmt import (
    NOTHING,
    Alloc,
    Block,
    For,
    ForKind,
    IterKind,
    IterVar,
    LetStmt,
    Prefetch,
    Seq,
    Stmt,
    Store,
    seq,
)
from tilewright.tir.text.equal import equal
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.visit import (
    accesses,
    blocks,
    enclosing_path,
    exchange,
    found_in,
    free_vars,
    fresh_copy,
    loads,
    loops_below,
    mentions_none,
    of_block,
    replace_buffers,
    replace_stmt,
    statements,
    stores,
    substitute,
    transform,
    transform_statements,
    walk,
    with_distinct_lets,
)

X, J, V = Var("i"), Var("j"), Var("v")
A, B, T = (Buffer(name, FLOAT32, (8,)) for name in "ABT")
STORE = Store(T, (V,), Load(A, (V,)))
BLOCK = Block("T", (IterVar(V, 8, IterKind.SPATIAL),), (Add(X, J),), STORE, family="T")
COPY = Store(B, (X,), Load(T, (X,)))
INNER = For(J, 4, ForKind.SERIAL, BLOCK)
NEST = For(X, 2, ForKind.SERIAL, Alloc(T, Seq((INNER, COPY, Prefetch(A, (X,))))))


def test_walk_goes_through_parents_before_children_in_the_order_of_the_text() -> None:
    kinds = [type(node).__name__ for node in walk(NEST) if isinstance(node, Stmt)]
    assert kinds == ["For", "Alloc", "Seq", "For", "Block", "Store", "Store", "Prefetch"]


def test_statements_are_those_that_walk_yields() -> None:
    assert list(statements(NEST)) == [node for node in walk(NEST) if isinstance(node, Stmt)]
    assert list(statements(BLOCK)) == [BLOCK, STORE]
    assert not list(statements(Load(A, (X,))))


def test_what_is_looked_for_comes_in_the_order_of_the_text() -> None:
    assert stores(NEST) == (STORE, COPY)
    assert [load.buffer for load in loads(NEST)] == [A, T]
    assert blocks(NEST) == (BLOCK,)
    assert [access.buffer for access in accesses(NEST)] == [T, A, B, T, A]
    assert [loop.var for loop in loops_below(NEST)] == [X, J]


def test_transform_returns_the_same_object_where_nothing_changed() -> None:
    assert transform(NEST, lambda node: node) is NEST


def test_transform_rewrites_children_first() -> None:
    def rule(node: Node) -> Node:
        return node.b if isinstance(node, Add) and node.a == index(0) else node

    zero = index(0)
    assert transform(Add(zero, Add(zero, X)), rule) is X


def test_transform_statements_does_so_without_a_look_into_expressions() -> None:
    seen: list[Node] = []

    def rule(stmt: Node) -> Node:
        seen.append(stmt)
        return COPY if isinstance(stmt, Prefetch) else stmt

    changed = transform_statements(NEST, rule)
    assert changed == transform(NEST, lambda n: COPY if isinstance(n, Prefetch) else n)
    assert all(isinstance(stmt, Stmt) for stmt in seen)
    assert [seen.count(stmt) for stmt in (STORE, COPY)] == [1, 1]
    assert seen.index(STORE) < seen.index(BLOCK) < seen.index(INNER)
    assert transform_statements(NEST, lambda stmt: stmt) is NEST


def test_loops_and_blocks_that_are_kept_are_those_of_a_fresh_walk() -> None:
    below = Alloc(T, For(X, 2, ForKind.SERIAL, Seq((INNER, Alloc(A, NEST), COPY))))
    for stmt in (below, Seq((below, INNER)), NEST):
        assert loops_below(stmt) == tuple(n for n in walk(stmt) if isinstance(n, For))
        assert blocks(stmt) == tuple(n for n in walk(stmt) if isinstance(n, Block))
        assert loops_below(stmt) is loops_below(stmt)


def test_substitute_replaces_variables_and_keeps_the_rest() -> None:
    expr: Expr = Add(X, J)
    assert substitute(expr, {X: index(3)}) == Add(index(3), J)
    assert substitute(expr, {}) is expr
    assert substitute(expr, {V: index(3)}) is expr


def test_replace_buffers_exchanges_every_mention() -> None:
    other = Buffer("other", FLOAT32, (8,))
    changed = replace_buffers(NEST, {T: other})
    assert {node for node in walk(changed) if isinstance(node, Buffer)} == {A, B, other}
    assert replace_buffers(NEST, {}) is NEST


def test_replace_stmt_finds_the_statement_by_identity() -> None:
    twice = Seq((COPY, Store(*(getattr(COPY, n) for n in ("buffer", "indices", "value")))))
    assert twice.body[0] == twice.body[1]
    changed = replace_stmt(twice, twice.body[1], NOTHING)
    assert changed == COPY
    assert replace_stmt(NEST, NOTHING, COPY) is NEST


def test_a_sequence_that_replaces_a_statement_of_a_sequence_becomes_part_of_it() -> None:
    changed = replace_stmt(NEST, COPY, seq(COPY, COPY))
    (inner,) = (node for node in walk(changed) if isinstance(node, Seq))
    assert inner.body == (INNER, COPY, COPY, Prefetch(A, (X,)))


def test_free_variables_are_those_that_are_mentioned_and_not_bound() -> None:
    assert free_vars(NEST) == frozenset()
    assert free_vars(INNER) == {X}
    assert free_vars(BLOCK) == {X, J}
    assert free_vars(LetStmt(V, Add(X, J), COPY)) == {X, J}


def test_a_fresh_copy_prints_alike_and_binds_other_variables_and_buffers() -> None:
    copy = fresh_copy(NEST)
    assert print_stmt(copy) == print_stmt(NEST)
    bound = {node.var for node in walk(NEST) if isinstance(node, For | IterVar)}
    assert not bound & {node for node in walk(copy) if isinstance(node, Var)}
    assert T not in {node for node in walk(copy) if isinstance(node, Buffer)}
    assert A in {node for node in walk(copy) if isinstance(node, Buffer)}


def test_a_store_keeps_its_block_through_rewrites_and_is_compared_without_it() -> None:
    i, j = Var("i"), Var("j")
    A = Buffer("A", FLOAT32, (8,))
    plain = For(i, 8, ForKind.SERIAL, Store(A, (i,), const(1.0, FLOAT32)))
    named = of_block(plain, "A")
    assert [store.block for store in stores(named)] == ["A"]
    assert named == plain
    assert hash(named) == hash(plain)
    assert print_stmt(named) == print_stmt(plain)
    moved = substitute(named.body, {i: j})
    assert isinstance(moved, Store)
    assert (moved.indices, moved.block) == ((j,), "A")
    assert [store.block for store in stores(fresh_copy(named))] == ["A"]


def test_a_let_that_stands_in_two_places_binds_two_variables() -> None:
    i, x = Var("i"), Var("x", FLOAT32)
    let = Let(x, Load(A, (i,)), Add(x, x))
    store = Store(B, (i,), Mul(let, let))
    distinct = with_distinct_lets(store)
    lets = found_in(distinct, Let)
    assert len({one.var for one in lets}) == len(lets) == 2
    assert print_stmt(distinct) == "B[i] = let(x, A[i], x + x) * let(x_1, A[i], x_1 + x_1)"
    assert with_distinct_lets(distinct) is distinct
    assert with_distinct_lets(NEST) is NEST


def test_the_enclosing_path_leads_from_the_root_to_the_parent() -> None:
    path = enclosing_path(NEST, BLOCK)
    assert [type(node).__name__ for node in path] == ["For", "Alloc", "Seq", "For"]
    assert enclosing_path(NEST, NEST) == ()
    assert enclosing_path(INNER, COPY) == ()


def test_seq_flattens_and_a_single_statement_stands_for_itself() -> None:
    assert seq(COPY) is COPY
    assert seq(seq(COPY, INNER), COPY) == Seq((COPY, INNER, COPY))
    assert seq() == NOTHING
    assert const(0.0, "float32") == const(0.0, "float32")


def test_exchange_rewrites_what_stands_in_two_places_once() -> None:
    i, a = Var("i"), Buffer("A", FLOAT32, (8,))
    shared = Load(a, (i + 1,))
    store = Store(Buffer("C", FLOAT32, (8,)), (i,), shared * shared)
    changed = substitute(store, {i: index(3)})
    assert isinstance(changed.value, Mul)
    assert changed.value.a is changed.value.b
    read = Load(a, (Add(index(3), index(1)),))
    assert equal(changed, Store(store.buffer, (index(3),), read * read))
    assert exchange(store, lambda node: node) is store


def test_statements_and_loads_are_found_once_and_kept() -> None:
    i, a, c = Var("i"), Buffer("A", FLOAT32, (8,)), Buffer("C", FLOAT32, (8,))
    store = Store(c, (i,), a[i] + a[i + 1])
    loop = For(i, 7, ForKind.SERIAL, seq(store, store))
    assert statements(loop) == (loop, loop.body, store, store)
    assert statements(loop) is statements(loop)
    assert [load.buffer for load in loads(loop)] == [a, a, a, a]
    assert loads(loop) is loads(loop)
    assert statements(store.value) == ()
    assert found_in(loop, Store) == [store, store]
    assert found_in(store, Load | Var) == list(loads_and_vars(store))


def loads_and_vars(store: Store) -> list[Load | Var]:
    return [node for node in walk(store) if isinstance(node, Load | Var)]


def nested() -> tuple[Stmt, list[Buffer], list[Store]]:
    """Storage within storage, and a store to each below a loop of its own."""
    buffers = [Buffer(f"b{n}", FLOAT32, (8,)) for n in range(4)]
    writes = [Store(buffer, (index(0),), const(1.0, FLOAT32)) for buffer in buffers]
    loops = [For(Var("i"), 3, ForKind.SERIAL, write) for write in writes]
    body: Stmt = seq(*loops[:3], Alloc(buffers[3], loops[3]))
    for buffer in buffers[:3]:
        body = Alloc(buffer, body)
    return body, buffers, writes


def test_what_stands_below_allocations_is_found_as_walk_finds_it() -> None:
    body, _, writes = nested()
    for _ in range(2):  # found, then kept
        assert list(statements(body)) == [n for n in walk(body) if isinstance(n, Stmt)]
        assert list(stores(body)) == writes
        assert list(accesses(body)) == writes
        assert list(loops_below(body)) == [n for n in walk(body) if isinstance(n, For)]
        assert list(loads(body)) == []
    assert not hasattr(body, "_statements")
    inner = body.children()[1]
    assert [n for n in statements(body) if n is not body] == list(statements(inner))


def test_hundreds_of_allocations_stand_one_within_the_other() -> None:
    """As a function of 100 sums has them once its rule has made partial sums in registers."""
    buffers = [Buffer(f"b{n}", FLOAT32, (8,)) for n in range(400)]
    body: Stmt = Store(buffers[7], (index(0),), const(1.0, FLOAT32))
    for buffer in buffers:
        body = Alloc(buffer, body)
    assert transform(body, lambda node: node) is body
    seen: list[Node] = []
    assert transform(body, lambda node: seen.append(node) or node) is body
    assert [n for n in seen if isinstance(n, Alloc)][-1] is body
    other = replace(buffers[7], name="other")
    changed = replace_buffers(body, {buffers[7]: other})
    assert [store.buffer for store in stores(changed)] == [other]
    assert sum(n.buffer is other for n in statements(changed) if isinstance(n, Alloc)) == 1
    first = next(n for n in statements(body) if isinstance(n, Alloc) and n.buffer is buffers[7])
    dropped = transform(body, lambda node: node.body if node is first else node)
    assert len([n for n in statements(dropped) if isinstance(n, Alloc)]) == 399

    def visit(node: Node) -> Node:
        return node if isinstance(node, Buffer) else node.map_children(visit)

    assert visit(body) is body


def test_the_path_to_a_statement_leads_through_allocations() -> None:
    body, _, writes = nested()
    for write in writes:
        path = enclosing_path(body, write)
        assert path[0] is body
        assert all(below in above.children() for above, below in pairwise((*path, write)))
        assert [type(node) for node in path[-2:]][-1] is For
    assert enclosing_path(body, Store(writes[0].buffer, (index(0),), writes[0].value)) == ()
    assert enclosing_path(body, body) == ()


def test_a_statement_below_allocations_is_replaced_and_the_others_stay() -> None:
    body, _, writes = nested()
    changed = replace_stmt(body, writes[1], NOTHING)
    assert list(stores(changed)) == [writes[0], *writes[2:]]
    assert [n for n in walk(changed) if n is writes[3]]
    assert replace_stmt(body, NOTHING, writes[0]) is body
    assert replace_stmt(body, body, NOTHING) is NOTHING


def test_an_exchange_does_not_look_into_what_is_said_to_be_untouched() -> None:
    body, buffers, writes = nested()
    seen: list[Node] = []

    def rule(node: Node) -> Node:
        seen.append(node)
        return node

    assert exchange(body, rule, lambda stmt: mentions_none(stmt, (buffers[3],))) is body
    assert writes[3] in seen
    assert not set(map(id, writes[:3])) & set(map(id, seen))
    other = Buffer("other", FLOAT32, (8,))
    changed = replace_buffers(body, {buffers[3]: other})
    assert [store.buffer for store in stores(changed)] == [*buffers[:3], other]
    assert all(a is b for a, b in zip(stores(changed)[:3], writes[:3], strict=True))
    assert other in [n.buffer for n in walk(changed) if isinstance(n, Alloc)]


def test_storage_that_nobody_uses_is_found_and_exchanged_too() -> None:
    _, (first, second, third, other), (write, *_) = nested()
    inner = Alloc(third, write)
    body = Alloc(first, seq(write, Alloc(second, inner)))
    assert enclosing_path(body, inner) == (body, body.body, body.body.children()[1])
    changed = replace_buffers(body, {third: other})
    assert [n.buffer for n in walk(changed) if isinstance(n, Alloc)] == [first, second, other]
