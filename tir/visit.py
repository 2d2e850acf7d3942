"""Walking and rewriting trees: bottom-up, rebuilding only what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import UnionType
from typing import TypeVar, cast, overload

from .buffer import Buffer, Load
from .expr import Expr, Let, Var
from .node import Leaf, Node
from .stmt import Alloc, Block, For, IterVar, LetStmt, Prefetch, Seq, Stmt, Store, seq

NodeT = TypeVar("NodeT", bound=Node)


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
    found: list[Node] = []
    stack = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, kinds):
            found.append(top)
        if not isinstance(top, Leaf):
            stack += top.children()[::-1]
    return found


def statements(node: Node) -> tuple[Stmt, ...]:
    """Every statement of the tree as `walk` yields them, without a look into expressions; found
    once for each statement, and kept.
    """
    if isinstance(node, Stmt) and hasattr(node, "_statements"):
        return node._statements
    waiting = [node]
    while True:
        top = waiting[-1]
        below = [] if isinstance(top, Store) else [c for c in top.children() if isinstance(c, Stmt)]
        new = [child for child in below if not hasattr(child, "_statements")]
        if new:
            waiting += new
            continue
        own = (top,) if isinstance(top, Stmt) else ()
        found = (*own, *chain.from_iterable(child._statements for child in below))
        if isinstance(top, Stmt):
            object.__setattr__(top, "_statements", found)
        waiting.pop()
        if not waiting:
            return found


def transform(node: NodeT, rule: Callable[[Node], Node]) -> NodeT:
    """The tree with `rule` applied to each node after its children; the same object where nothing
    changed.
    """

    def visit(current: Node) -> Node:
        return rule(current.map_children(visit))

    result = visit(node)
    assert isinstance(result, Node)
    return result  # type: ignore[return-value]


def exchange(node: NodeT, rule: Callable[[Node], Node]) -> NodeT:
    """The tree with `rule`, which knows nothing but the node, applied as `transform` does.

    A part of an expression that stands in several places as one object is rewritten once, and
    stays one object.
    """
    done: dict[int, Node] = {}  # by identity: `node` holds what these are of

    def visit(current: Node) -> Node:
        if isinstance(current, Leaf):
            return rule(current)
        if not isinstance(current, Expr):
            return rule(current.map_children(visit))
        found = done.get(id(current))
        if found is None:
            found = done[id(current)] = rule(current.map_children(visit))
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
    return exchange(node, lambda n: buffers.get(n, n) if isinstance(n, Buffer) else n)


def replace_node(root: NodeT, old: Node, new: Node) -> NodeT:
    """The tree with one node, found by identity, replaced."""

    def visit(node: Node) -> Node:
        return new if node is old else node.map_children(visit)

    return visit(root)  # type: ignore[return-value]


def replace_stmt(root: NodeT, old: Stmt, new: Stmt) -> NodeT:
    """The tree with the statement `old`, found by identity, replaced by `new`.

    A sequence that takes the place of one statement of another sequence becomes part of it.
    """

    def visit(node: Node) -> Node:
        if node is old:
            return new
        changed = node.map_children(visit) if isinstance(node, Stmt) or node is root else node
        if isinstance(changed, Seq) and changed is not node:
            return seq(*changed.body)
        return changed

    return visit(root)  # type: ignore[return-value]


def free_vars(node: Node) -> frozenset[Var]:
    """The variables that `node` mentions and does not bind."""
    bound = set()
    used = set()
    for item in found_in(node, Var | For | LetStmt | IterVar | Let):
        if isinstance(item, Var):
            used.add(item)
        elif isinstance(item, For | LetStmt | IterVar | Let):
            bound.add(item.var)
    return frozenset(used - bound)


def loads(node: Node) -> tuple[Load, ...]:
    """Every Load in the tree, in the order of the text; kept where that is a statement."""
    if not isinstance(node, Stmt):
        return tuple(found_in(node, Load))
    try:
        return node._loads
    except AttributeError:
        found = tuple(found_in(node, Load))
        object.__setattr__(node, "_loads", found)
        return found


def stores(node: Node) -> tuple[Store, ...]:
    """Every Store in the tree, in the order of the text."""
    return tuple(n for n in statements(node) if isinstance(n, Store))


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
    """The nodes from `root` down to the parent of `target` (found by identity); () when it is
    absent.
    """

    path: list[Node] = []  # from the target upwards

    def search(node: Node) -> bool:
        if node is target:
            return True
        for child in node.children():
            if isinstance(child, Stmt) and search(child):
                path.append(node)
                return True
        return False

    search(root)
    return tuple(reversed(path))


def accesses(node: Node) -> tuple[Load | Store | Prefetch, ...]:
    """Every Load, Store and Prefetch, in the order of the text."""
    found = found_in(node, Load | Store | Prefetch)
    return cast("tuple[Load | Store | Prefetch, ...]", tuple(found))


def blocks(node: Node) -> tuple[Block, ...]:
    """Every Block in the tree, in the order of the text."""
    return tuple(n for n in statements(node) if isinstance(n, Block))
