"""How tall and how large an expression is, and how much of either the compiler takes.

`height` is the longest way down: what walks over expressions goes down with it, and Python follows
no more than some hundred calls. A call of a function that becomes arithmetic counts as many levels
as its argument sinks. `size` is the number of nodes, one that stands in several places counted in
each, as in the code that is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..expr import Call
from ..node import Node

MOST_HEIGHT = 64
MOST_SIZE = 1 << 14
_CALL_LEVELS = 8  # an argument's way down in the arithmetic of a function


def height(node: Node) -> int:
    """The levels of an expression; 1 for a variable."""
    return heights(node)[id(node)]


def heights(node: Node) -> dict[int, int]:
    """The levels of every part of an expression, by its identity."""
    return _over_parts(node, levels, _largest)


def size(node: Node) -> int:
    """The nodes of an expression."""
    return _over_parts(node, lambda _: 1, sum)[id(node)]


def occurrences(node: Node, part: Node) -> int:
    """How often an expression holds `part`, by identity."""
    return _over_parts(node, lambda found: int(found is part), sum)[id(node)]


def levels(node: Node) -> int:
    """The levels that a node adds to the highest of its children."""
    elementary = isinstance(node, Call) and node.intrinsic.elementary
    return _CALL_LEVELS if elementary else 1


def _largest(counts: Iterable[int]) -> int:
    return max(counts, default=0)


def _over_parts(
    root: Node, own: Callable[[Node], int], join: Callable[[Iterable[int]], int]
) -> dict[int, int]:
    """What each part of an expression has: its own number and those of its children, joined. Each
    part is visited once; iterative, since heights are asked of what may be too high.
    """
    found: dict[int, int] = {}
    for node in parts_of(root):
        found[id(node)] = own(node) + join(found[id(child)] for child in node.children())
    return found


def parts_of(root: Node) -> Iterator[Node]:
    """Each part of an expression once, by identity, children before what holds them."""
    done: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        waiting = [child for child in node.children() if id(child) not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        if id(node) not in done:
            done.add(id(node))
            yield node
