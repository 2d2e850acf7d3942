"""Structural equality: the same tree up to the names and the identity of what it binds.

Variables and buffers bound by the two trees match in the order in which they are bound; those that
a tree does not bind match only themselves. The names of functions, blocks and families are names
like any other: they match one to one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..buffer import Buffer
from ..dim import Dim
from ..expr import Const, Expr, Let, Var
from ..func import PrimFunc
from ..node import Node, field_names
from ..stmt import Alloc, Block, For, LetStmt, Parameter, Stmt
from .printer import print_expr, print_stmt


def equal(a: Node, b: Node) -> bool:
    """Whether two functions, statements or expressions are the same up to names."""
    return difference(a, b) is None


def difference(a: Node, b: Node) -> str | None:
    """The first place where two trees differ, as a text; None when they are equal."""
    found = _Matcher(isinstance(a, PrimFunc)).node(a, b)
    if found is None:
        return None
    return f"{_text(found[0])}  <>  {_text(found[1])}"


Difference = tuple[object, object]


class _Matcher:
    def __init__(self, whole: bool) -> None:
        self._whole = whole
        self._partner: dict[Var | Buffer, Var | Buffer] = {}
        self._taken: set[Var | Buffer] = set()
        self._names: dict[str, str] = {}
        self._name_taken: set[str] = set()

    def node(self, a: Node, b: Node) -> Difference | None:
        if isinstance(a, Var | Buffer):
            return None if self._partner.get(a, a) is b and self._free(a, b) else (a, b)
        if type(a) is not type(b):
            return a, b
        if isinstance(a, Const):
            return None if a == b else (a, b)
        for one, other in zip(_bound(a), _bound(b), strict=False):
            if not self._bind(one, other):
                return one, other
        for name in field_names(type(a)):
            if name == "name" and isinstance(a, PrimFunc):
                continue
            found = self._field(name, getattr(a, name), getattr(b, name))
            if found is not None:
                return found if isinstance(found[0], Node | Parameter) else (a, b)
        return None

    def _free(self, a: Var | Buffer, b: Var | Buffer) -> bool:
        """Whether both or none of two partners are bound here."""
        return (a in self._partner) == (b in self._taken)

    def _bind(self, a: Var | Buffer, b: Var | Buffer) -> bool:
        if not self._same_kind(a, b) or a in self._partner or b in self._taken:
            return False
        self._partner[a] = b
        self._taken.add(b)
        return True

    def _same_kind(self, a: Var | Buffer, b: Var | Buffer) -> bool:
        if isinstance(a, Var) and isinstance(b, Var):
            return a.type == b.type and _limits(a) == _limits(b)
        if not isinstance(a, Buffer) or not isinstance(b, Buffer):
            return False
        if _form(a) != _form(b):
            return False
        if self._sequence(a.dims, b.dims) is not None:
            return False
        if a.origin is None or b.origin is None:
            return a.origin is b.origin
        if self._whole and a.origin not in self._partner and b.origin not in self._taken:
            self._partner[a.origin] = b.origin  # its storage was folded away: nothing declares it
            self._taken.add(b.origin)
        return self._partner.get(a.origin, a.origin) is b.origin

    def _field(self, name: str, a: object, b: object) -> Difference | None:
        if isinstance(a, Node) and isinstance(b, Node):
            return self.node(a, b)
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self._sequence(a, b)
        if isinstance(a, Parameter) and isinstance(b, Parameter):
            same = a.role == b.role and _range(a) == _range(b)
            return None if same else (a, b)
        if isinstance(a, str) and isinstance(b, str) and name in ("name", "family"):
            return None if self._name(a, b) else (a, b)
        return None if a == b else (a, b)

    def _sequence(self, a: Sequence[object], b: Sequence[object]) -> Difference | None:
        for one, other in zip(a, b, strict=False):
            found = self._field("", one, other)
            if found is not None:
                return found
        return None if len(a) == len(b) else (a, b)

    def _name(self, a: str, b: str) -> bool:
        if a not in self._names and b not in self._name_taken:
            self._names[a] = b
            self._name_taken.add(b)
        return self._names.get(a) == b


def _limits(var: Var) -> tuple[int, int] | None:
    """The bounds of a dim; None for another variable."""
    return (var.low, var.high) if isinstance(var, Dim) else None


def _form(buffer: Buffer) -> tuple[object, ...]:
    """What two buffers have in common that are equal."""
    return buffer.type, buffer.shape, buffer.scope, buffer.aligned, buffer.swizzled


def _range(parameter: Parameter) -> int | str | None:
    """The extent that a check compares with; what it is called is a name."""
    check = parameter.check
    if check is None:
        return None
    return check.extent if isinstance(check.extent, int) else "a size"


def _bound(node: Node) -> tuple[Var | Buffer, ...]:
    """What a node binds, in the order of its text."""
    match node:
        case For() | LetStmt() | Let():
            return (node.var,)
        case Block():
            return tuple(iteration.var for iteration in node.iters)
        case Alloc():
            return (node.buffer,)
        case PrimFunc():
            return (*node.dims, *(parameter.buffer for parameter in node.parameters))
    return ()


def _text(item: object) -> str:
    match item:
        case Var():
            return f"variable {item.name}: {item.type}"
        case Buffer():
            return f"buffer {item.name}: {item.type}{list(item.shape)}"
        case Expr():
            return print_expr(item)
        case Stmt():
            return print_stmt(item)
    return str(item)
