"""The statements that both languages write alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from ...tir.buffer import Buffer
from ...tir.stmt import Alloc, For, If, Stmt
from .dialect import Dialect
from .scalars import Scalars

Expressions = TypeVar("Expressions", bound=Scalars)


class Statements(ABC, Generic[Expressions]):
    """Writes statements among the lines of `expressions`. The order in which they are done, and
    where a buffer is kept, is each language's own.
    """

    def __init__(self, dialect: Dialect, expressions: Expressions) -> None:
        self.dialect = dialect
        self.expressions = expressions
        self.lines = expressions.lines

    def branch(self, stmt: If, write: Callable[[Stmt], None]) -> None:
        """An if; `write` appends what stands in it."""
        with self.lines.block(f"if ({self.expressions.scalar(stmt.condition)}) {{"):
            write(stmt.then)
        if stmt.orelse is not None:
            self.lines.add_to_last(" else {")
            self.lines.depth += 1
            write(stmt.orelse)
            self.lines.depth -= 1
            self.lines.add("}")

    @contextmanager
    def counting(self, loop: For, start: str, end: str, comment: str = "") -> Iterator[None]:
        """A loop around the lines added inside; the names in it end with it."""
        before = self.lines.names.used
        name = self.lines.names.declare(loop.var)
        self.lines.ranges[loop.var] = (0, loop.extent - 1)
        for key, value in loop.annotations:
            if key == "unroll_hint":
                self.lines.add(self.dialect.unroll.format(value))
        head = f"for ({self.dialect.index} {name} = {start}; {name} < {end}; {name}++) {{"
        with self.lines.block(f"{head}{comment}"):
            yield
        self.lines.names.forget_uses(before)

    def pointer(self, buffer: Buffer, *, written: bool) -> str:
        """The type of a parameter that points to a buffer."""
        return f"{'' if written else 'const '}{self.dialect.type_of(buffer.type)} *"

    def allocations(self, stmt: Alloc) -> Stmt:
        """Declare the buffers of a chain of allocations, and return what stands below it; variables
        of one type share lines.
        """
        variables: dict[str, list[str]] = {}
        body: Stmt = stmt
        while isinstance(body, Alloc):
            alloc, buffer, body = body, body.buffer, body.body
            kind = self.variable_type(buffer)
            if kind is None:
                with self.lines.marked(alloc):
                    self.declare_array(buffer)
            else:
                name = self.lines.names.declare(buffer)
                variables.setdefault(kind, []).append(f"{name}{self.initial(buffer)}")
        for kind, names in variables.items():
            self.lines.declare_all(kind, names)
        return body

    @abstractmethod
    def variable_type(self, buffer: Buffer) -> str | None:
        """The type of the variable that a buffer is; None for an array."""

    def initial(self, buffer: Buffer) -> str:
        """What stands behind such a variable where it is declared."""
        return ""

    @abstractmethod
    def declare_array(self, buffer: Buffer) -> None:
        """Append the declaration of a buffer in memory."""
