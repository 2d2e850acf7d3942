"""Node: the base of everything that the language is made of.

Nodes are frozen, slotted dataclasses compared by value. Their hash is computed once, from the
hashes of their children, and kept. `Var` and `Buffer` are the exception: names are hints, so those
two compare by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter, is_
from typing import Any, Self, TypeVar

NodeT = TypeVar("NodeT", bound="Node")


# by class, of which there are a few dozen
_FIELDS: dict[type, tuple[str, ...]] = {}
_VALUES: dict[type, Callable[[Node], tuple[object, ...]]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The fields of the node class `kind` that take part in comparison, in order of definition."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(field.name for field in fields(kind) if field.compare)
    return found


def _values(node: Node) -> tuple[object, ...]:
    """What the fields of `node` hold, in order of definition."""
    kind = type(node)
    getter = _VALUES.get(kind)
    if getter is None:
        getter = _VALUES[kind] = _getter(field_names(kind))
    return getter(node)


def _getter(names: tuple[str, ...]) -> Callable[[Node], tuple[object, ...]]:
    """What reads the fields of these names, which are as few as none."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple([getattr(node, name) for name in names])


_TEXTS: dict[type[Node], Callable[[Any], str]] = {}


def show_nodes(kind: type[NodeT], write: Callable[[NodeT], str]) -> None:
    """Let nodes of `kind` show themselves as `write` writes them: the printer says that, since it
    knows them all.
    """
    _TEXTS[kind] = write


class Node:
    """A typed, immutable tree node. Its constructor takes its fields in order."""

    __slots__ = ("__weakref__", "_children", "_hash")
    _hash: int
    _children: tuple[Node, ...]

    def __init_subclass__(cls) -> None:
        """Keep the repr of nodes: a dataclass writes one of its fields where a class has none."""
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        write = next((_TEXTS[kind] for kind in type(self).__mro__ if kind in _TEXTS), None)
        return object.__repr__(self) if write is None else write(self)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash((type(self).__name__, _values(self)))
            object.__setattr__(self, "_hash", value)
            return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node) or type(self) is not type(other):
            return False
        mine, theirs = getattr(self, "_hash", None), getattr(other, "_hash", None)
        if mine is not None and theirs is not None and mine != theirs:
            return False
        return bool(_values(self) == _values(other))

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        """This node with `visit` applied to each child; the same object when no child changed."""
        old = self.children()
        new = [visit(child) for child in old]
        return self if all(map(is_, old, new)) else self._with_children(new)

    def _with_children(self, children: Sequence[Node]) -> Self:
        """This node with other ones where its children stand."""
        following = iter(children)
        made = type(self)(
            *[
                next(following)
                if isinstance(value, Node)
                else tuple([next(following) if isinstance(v, Node) else v for v in value])
                if type(value) is tuple and value
                else value
                for value in _values(self)
            ]
        )
        object.__setattr__(made, "_children", tuple(children))
        return made

    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one, in order of definition; found once, and kept."""
        try:
            return self._children
        except AttributeError:
            found: list[Node] = []
            for value in _values(self):
                if isinstance(value, Node):
                    found.append(value)
                elif isinstance(value, tuple) and value:
                    found += [item for item in value if isinstance(item, Node)]
            object.__setattr__(self, "_children", tuple(found))
            return self._children


class Leaf(Node):
    """A node that holds no others."""

    __slots__ = ()

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        """This node."""
        return self

    def children(self) -> tuple[Node, ...]:
        """None."""
        return ()
