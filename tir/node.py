"""Node: the base of everything that the language is made of.

Nodes are frozen, slotted dataclasses compared by value. Their hash is computed once, from the
hashes of their children, and kept. `Var` and `Buffer` are the exception: names are hints, so those
two compare by identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Self, TypeVar

NodeT = TypeVar("NodeT", bound="Node")


_FIELDS: dict[type, tuple[str, ...]] = {}


def field_names(kind: type) -> tuple[str, ...]:
    """The fields of the node class `kind` that take part in comparison, in order of definition."""
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(field.name for field in fields(kind) if field.compare)
    return _FIELDS[kind]


class Node:
    """A typed, immutable tree node."""

    __slots__ = ("__weakref__", "_children", "_hash")
    _hash: int
    _children: tuple[Node, ...]

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            values = tuple(getattr(self, name) for name in field_names(type(self)))
            value = hash((type(self).__name__, values))
            object.__setattr__(self, "_hash", value)
            return value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or hash(self) != hash(other):
            return False
        return all(getattr(self, n) == getattr(other, n) for n in field_names(type(self)))

    def map_children(self, visit: Callable[[Node], Node]) -> Self:
        """This node with `visit` applied to each child; the same object when no child changed."""
        changed: dict[str, object] = {}
        for name in field_names(type(self)):
            old = getattr(self, name)
            if isinstance(old, Node):
                new: object = visit(old)
            elif isinstance(old, tuple):
                new = tuple(visit(item) if isinstance(item, Node) else item for item in old)
                if all(a is b for a, b in zip(new, old, strict=True)):
                    continue
            else:
                continue
            if new is not old:
                changed[name] = new
        return _rebuild(self, changed) if changed else self

    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one, in order of definition; found once, and kept."""
        try:
            return self._children
        except AttributeError:
            found: list[Node] = []
            for name in field_names(type(self)):
                value = getattr(self, name)
                if isinstance(value, Node):
                    found.append(value)
                elif isinstance(value, tuple):
                    found += [item for item in value if isinstance(item, Node)]
            object.__setattr__(self, "_children", tuple(found))
            return self._children


def _rebuild(node: NodeT, changed: dict[str, object]) -> NodeT:
    values = {name: getattr(node, name) for name in field_names(type(node))}
    return type(node)(**{**values, **changed})
