"""Walking and rewriting trees: bottom-up, rebuilding only what changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import UnionType
from typing import TypeVar, cast, overload

from .buffer import Buffer, Load
from .expr import Expr, Let, Var
from .node import Leaf, Node
from .stmt import Alloc, Block, For, IterVar, LetStmt, Prefetch, Seq, Stmt, Store, seq

NodeT = TypeVar("NodeT", bound=Node)

# by the kinds that were asked for, then by class, of which there are a few dozen
_IS_ONE_OF: dict[type[Node] | UnionType, dict[type[Node], bool]] = {}
_VARIABLES = Var | For | LetStmt | IterVar | Let
_ACCESSES = Load | Store | Prefetch


def walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, parents before children, in the order of the text."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if not isinstance(top, Leaf):
            stack += top.children()[::-1]


@overload
def found_in(node: Node, kinds: type[NodeT]) -> list[NodeT]: ...


@overload
def found_in(node: Node, kinds: UnionType) -> list[Node]: ...


def found_in(node: Node, kinds: type[Node] | UnionType) -> Sequence[Node]:
    """The nodes of the tree that are of one of the `kinds`, as `walk` yields them."""
    known = _IS_ONE_OF.setdefault(kinds, {})
    found: list[Node] = []
    stack = [node]
    while stack:
        top = stack.pop()
        kind = type(top)
        if kind not in known:
            known[kind] = issubclass(kind, kinds)
        if known[kind]:
            found.append(top)
        below = top.children()
        if below:
            stack += below[::-1]
    return found


def statements_below(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly below one; found once, and kept."""
    try:
        return stmt._below
    except AttributeError:
        is_plain = isinstance(stmt, Store)
        found = () if is_plain else tuple(c for c in stmt.children() if isinstance(c, Stmt))
        object.__setattr__(stmt, "_below", found)
        return found


def statements(node: Node) -> tuple[Stmt, ...]:
    """Every statement of the tree as `walk` yields them, without a look into expressions; found
    once for each statement but allocations, which stand one within the other, and kept.
    """
    if not isinstance(node, Stmt):
        inner = (child for child in node.children() if isinstance(child, Stmt))
        return tuple(chain.from_iterable(map(statements, inner)))
    around: list[Stmt] = []
    while isinstance(node, Alloc):
        around.append(node)
        node = node.body
    if hasattr(node, "_statements"):
        return (*around, *node._statements) if around else node._statements
    waiting = [node]
    while waiting:
        top = waiting[-1]
        below = statements_below(top)
        new = [c for c in below if not isinstance(c, Alloc) and not hasattr(c, "_statements")]
        if new:
            waiting += new
            continue
        parts = (statements(c) if isinstance(c, Alloc) else c._statements for c in below)
        object.__setattr__(top, "_statements", (top, *chain.from_iterable(parts)))
        waiting.pop()
    return (*around, *node._statements) if around else node._statements


def transform(node: NodeT, rule: Callable[[Node], Node]) -> NodeT:
    """The tree with `rule` applied to each node after its children; the same object where nothing
    changed.
    """

    def visit(current: Node) -> Node:
        if isinstance(current, Leaf):
            return rule(current)
        return rule(current.map_children(visit))

    result = visit(node)
    assert isinstance(result, Node)
    return result  # type: ignore[return-value]


def transform_statements(stmt: Stmt, rule: Callable[[Stmt], Node]) -> Stmt:
    """As `transform`, with a rule for statements alone: expressions are not walked."""

    def visit(current: Node) -> Node:
        if not isinstance(current, Stmt):
            return current
        return rule(current if isinstance(current, Store) else current.map_children(visit))

    return cast("Stmt", visit(stmt))


def exchange(
    node: NodeT, rule: Callable[[Node], Node], untouched: Callable[[Stmt], bool] | None = None
) -> NodeT:
    """The tree with `rule`, which knows nothing but the node, applied as `transform` does.

    A part of an expression that stands in several places as one object is rewritten once, and
    stays one object. untouched: says of a statement that the rule changes nothing in it.
    """
    done: dict[int, Node] = {}  # by identity: `node` holds what these are of

    def visit(current: Node) -> Node:
        if isinstance(current, Leaf):
            return rule(current)
        if isinstance(current, Stmt):
            if untouched is not None and untouched(current):
                return current
            return rule(current.map_children(visit))
        found = done.get(id(current))
        if found is None:
            found = rule(current.map_children(visit))
            if isinstance(current, Expr):
                done[id(current)] = found
        return found

    result = visit(node)
    assert isinstance(result, Node)
    return result  # type: ignore[return-value]


def substitute(node: NodeT, values: Mapping[Var, Expr]) -> NodeT:
    """The tree with variables replaced by expressions. Bound variables are unique objects, so
    nothing is captured.
    """
    if not values:
        return node
    return exchange(node, lambda n: values.get(n, n) if isinstance(n, Var) else n)


def replace_buffers(node: NodeT, buffers: Mapping[Buffer, Buffer]) -> NodeT:
    """The tree with every mention of a buffer exchanged."""
    if not buffers:
        return node
    return exchange(
        node,
        lambda n: buffers.get(n, n) if isinstance(n, Buffer) else n,
        lambda stmt: mentions_none(stmt, buffers),
    )


def mentions_none(stmt: Stmt, buffers: Collection[Buffer]) -> bool:
    """Whether a statement mentions none of some buffers, as far as that is known at once: of
    allocations it is not.
    """
    return not isinstance(stmt, Alloc) and _mentioned(stmt).isdisjoint(buffers)


def _mentioned(stmt: Stmt) -> frozenset[Buffer]:
    """The buffers that a statement mentions; found once for each but allocations, and kept."""
    allocated: list[Buffer] = []
    while isinstance(stmt, Alloc):
        allocated.append(stmt.buffer)
        stmt = stmt.body
    if not hasattr(stmt, "_buffers"):
        found: set[Buffer] = set()
        for child in stmt.children():
            if isinstance(child, Stmt):
                found |= _mentioned(child)
            elif isinstance(child, Buffer):
                found.add(child)
            elif not isinstance(child, Leaf):
                found.update(found_in(child, Buffer))
        object.__setattr__(stmt, "_buffers", frozenset(found))
    return stmt._buffers.union(allocated) if allocated else stmt._buffers


def replace_node(root: NodeT, old: Node, new: Node) -> NodeT:
    """The tree with one node, found by identity, replaced."""

    def visit(node: Node) -> Node:
        return new if node is old else node.map_children(visit)

    return visit(root)  # type: ignore[return-value]


def replace_stmt(root: NodeT, old: Stmt, new: Stmt) -> NodeT:
    """The tree with the statement `old`, found by identity, replaced by `new`.

    A sequence that takes the place of one statement of another sequence becomes part of it.
    """

    made: Node = new
    for node in reversed(enclosing_path(root, old)):
        if isinstance(node, Alloc):
            made = Alloc(node.buffer, cast("Stmt", made)) if made is not old else node
        else:
            made = _with_child(node, old, made)
        old = cast("Stmt", node)
    return cast("NodeT", made if old is root else root)


def _with_child(node: Node, old: Node, new: Node) -> Node:
    """A node with a child replaced; a sequence takes in the parts of one that stands in it."""
    changed = node.map_children(lambda child: new if child is old else child)
    if isinstance(changed, Seq) and changed is not node:
        return seq(*changed.body)
    return changed


def free_vars(node: Node) -> frozenset[Var]:
    """The variables that `node` mentions and does not bind."""
    bound = set()
    used = set()
    for item in found_in(node, _VARIABLES):
        if isinstance(item, Var):
            used.add(item)
        else:
            bound.add(cast("For | LetStmt | IterVar | Let", item).var)
    return frozenset(used - bound)


def loads(node: Node) -> tuple[Load, ...]:
    """Every Load in the tree, in the order of the text; kept where that is a statement."""
    if not isinstance(node, Stmt):
        return tuple(found_in(node, Load))
    node = below_allocations(node)
    try:
        return node._loads
    except AttributeError:
        found = tuple(_gathered(node, Load, loads))
        object.__setattr__(node, "_loads", found)
        return found


def _gathered(
    stmt: Stmt, kinds: type[NodeT] | UnionType, below: Callable[[Node], Iterable[NodeT]]
) -> list[NodeT]:
    """What is found in a statement that is of no such kind, or holds no statement: of those in it
    what `below` has kept.
    """
    if not statements_below(stmt):
        return cast("list[NodeT]", found_in(stmt, kinds))
    found: list[NodeT] = []
    for child in stmt.children():
        if isinstance(child, Stmt):
            found += below(child)
        elif not isinstance(child, Leaf):
            found += cast("list[NodeT]", found_in(child, kinds))
    return found


def stores(node: Node) -> tuple[Store, ...]:
    """Every Store in the tree, in the order of the text; kept where that is a statement."""
    if not isinstance(node, Stmt):
        return tuple(n for n in statements(node) if isinstance(n, Store))
    node = below_allocations(node)
    try:
        return node._stores
    except AttributeError:
        found = tuple(n for n in statements(node) if isinstance(n, Store))
        object.__setattr__(node, "_stores", found)
        return found


def below_allocations(stmt: Stmt) -> Stmt:
    """What stands below the allocations of a statement, found once for each: they hold no access,
    and often stand one within the other, so that to keep more than this takes the square of their
    number.
    """
    if not isinstance(stmt, Alloc):
        return stmt
    try:
        return stmt._inner
    except AttributeError:
        inner = stmt.body
        while isinstance(inner, Alloc):
            inner = inner.body
        object.__setattr__(stmt, "_inner", inner)
        return inner


def of_block(stmt: Stmt, name: str) -> Stmt:
    """The statement, whose stores are parts of the block called `name`."""
    if isinstance(stmt, Store):
        return replace(stmt, block=name)
    return stmt.map_children(lambda n: of_block(n, name) if isinstance(n, Stmt) else n)


def fresh_copy(stmt: Stmt) -> Stmt:
    """The same statement with new loop, block and let variables and new buffers for its
    allocations.

    A pass that puts a statement in two places copies it first, so that bound variables stay unique
    objects.
    """
    values: dict[Var, Expr] = {}
    buffers: dict[Buffer, Buffer] = {}
    for node in walk(stmt):
        if isinstance(node, For | LetStmt | IterVar | Let):
            values[node.var] = Var(node.var.name, node.var.type)
        elif isinstance(node, Alloc):
            old = node.buffer
            buffers[old] = replace(old)
    return replace_buffers(substitute(stmt, values), buffers)


def with_distinct_lets(node: NodeT) -> NodeT:
    """The tree with a new variable for each Let whose own another one in front of it binds too: a
    value that came to stand in several places, as a mask does.
    """
    bound = [item.var for item in found_in(node, Let)]
    if len(set(bound)) == len(bound):
        return node
    seen: set[Var] = set()

    def rename(item: Node) -> Node:
        item = item.map_children(rename)
        if not isinstance(item, Let):
            return item
        if item.var in seen:
            var = Var(item.var.name, item.var.type)
            item = Let(var, item.value, substitute(item.body, {item.var: var}))
        seen.add(item.var)
        return item

    return cast("NodeT", rename(node))


def enclosing_path(root: Node, target: Node) -> tuple[Node, ...]:
    """The nodes from `root` down to the parent of the statement `target` (found by identity); ()
    when it is absent.
    """
    path: list[Node] = []
    node = root
    while node is not target:
        path.append(node)
        if isinstance(node, Alloc):
            node = node.body
            continue
        below = node.children()
        if isinstance(node, Stmt):
            below = statements_below(node)
        found = below[0] if len(below) == 1 else _holder(below, target)
        if found is None:
            return ()
        node = found
    return tuple(path)


def _holder(nodes: Sequence[Node], target: Node) -> Node | None:
    """That of some nodes which is, or has below it, a statement."""
    place = id(target)
    for node in nodes:
        if node is target:
            return node
        ids = getattr(node, "_ids", None)
        if (place in ids) if ids is not None else _holds(node, target):
            return node
    return None


def _holds(node: Node, target: Node) -> bool:
    """Whether a statement is below another one; kept for each but allocations."""
    if not isinstance(node, Stmt):
        return False
    while isinstance(node, Alloc):
        if node is target:
            return True
        node = node.body
    if not hasattr(node, "_ids"):
        object.__setattr__(node, "_ids", frozenset(map(id, statements(node))))
    return id(target) in node._ids


def accesses(node: Node) -> tuple[Load | Store | Prefetch, ...]:
    """Every Load, Store and Prefetch, in the order of the text; kept where that is a statement."""
    if not isinstance(node, Stmt):
        return cast("tuple[Load | Store | Prefetch, ...]", tuple(found_in(node, _ACCESSES)))
    node = below_allocations(node)
    try:
        return node._accesses
    except AttributeError:
        gathered = _gathered(node, _ACCESSES, accesses)
        found = cast("tuple[Load | Store | Prefetch, ...]", tuple(gathered))
        object.__setattr__(node, "_accesses", found)
        return found


def blocks(node: Node) -> tuple[Block, ...]:
    """Every Block in the tree, in the order of the text; kept where that is a statement."""
    if not isinstance(node, Stmt):
        return tuple(n for n in statements(node) if isinstance(n, Block))
    node = below_allocations(node)
    try:
        return node._blocks
    except AttributeError:
        return cast("tuple[Block, ...]", _kept_of_each(node, Block, "_blocks"))


def loops_below(node: Node) -> tuple[For, ...]:
    """Every loop in the tree, itself included, in the order of the text; kept where that is a
    statement.
    """
    if not isinstance(node, Stmt):
        return tuple(n for n in statements(node) if isinstance(n, For))
    node = below_allocations(node)
    try:
        return node._loops
    except AttributeError:
        return cast("tuple[For, ...]", _kept_of_each(node, For, "_loops"))


def _kept_of_each(stmt: Stmt, kind: type[Stmt], slot: str) -> tuple[Stmt, ...]:
    """The statements of a kind below one that is no allocation, itself included, kept in a slot of
    it and of all below it but allocations: where one of many changes, that of the others is there.
    """
    waiting = [stmt]
    while waiting:
        top = waiting[-1]
        below = [below_allocations(child) for child in statements_below(top)]
        new = [child for child in below if not hasattr(child, slot)]
        if new:
            waiting += new
            continue
        own = (top,) if isinstance(top, kind) else ()
        found = (*own, *chain.from_iterable([getattr(child, slot) for child in below]))
        object.__setattr__(top, slot, found)
        waiting.pop()
    return cast("tuple[Stmt, ...]", getattr(stmt, slot))
