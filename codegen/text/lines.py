"""Lines of a source under construction, and the names in scope."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...tir.analysis.linear import Interval
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.stmt import Stmt
from .marked import Mark, MarkedText
from .names import CNames

_WIDTH = 100


class Lines:
    """The lines of one function. Statements append; an expression that needs a statement first
    appends it too.
    """

    def __init__(self) -> None:
        self.names = CNames()
        self.ranges: dict[Var, Interval] = {}
        self.listed: list[MarkedText] = []
        self.depth = 1
        self.top: list[str] = []
        self._mark: Mark | None = None
        self._once: dict[str, str] = {}

    def add(self, line: str) -> None:
        """Append a line at the current depth."""
        self.listed.append(MarkedText.of("    " * self.depth + line, self._mark))

    def add_to_last(self, text: str) -> None:
        """Let the last line go on with `text`."""
        last = self.listed[-1]
        self.listed[-1] = MarkedText(last + text, last.marks)

    @contextmanager
    def marked(self, stmt: Stmt) -> Iterator[None]:
        """The lines added inside are what `stmt` becomes, unless one below it says so of itself."""
        outer = self._mark
        self._mark = Mark(stmt, outer)
        yield
        self._mark = outer

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """`head {`, the lines added inside, one level deeper, `tail`; names declared inside end
        with it.
        """
        self.add(head)
        before = self.names.used
        self.depth += 1
        yield
        self.depth -= 1
        self.names.forget_uses(before)
        self.add(tail)

    @contextmanager
    def apart(self) -> Iterator[list[MarkedText]]:
        """Collect the lines added inside in the list given, instead of appending them."""
        outer, self.listed = self.listed, []
        self.depth += 1
        yield self.listed
        self.depth -= 1
        self.listed = outer

    def declare(self, c_type: str, item: Var | Buffer, value: str) -> None:
        """Append `const c_type name = value;`."""
        self.add(f"const {c_type} {self.names.declare(item)} = {value};")

    def declare_all(self, c_type: str, names: Sequence[str]) -> None:
        """Append declarations of several variables of one type, as many in a line as fit."""
        line = c_type
        for name in names:
            if len(line) + len(name) + 2 > _WIDTH - 4 * self.depth:
                self.add(f"{line};")
                line = c_type
            line += f"{' ' if line == c_type else ', '}{name}"
        self.add(f"{line};")

    def once(self, c_type: str, hint: str, value: str) -> str:
        """The name of a constant that is declared at the top of the function, however often it is
        asked for; those behind the first one of a hint have a number.
        """
        name = self._once.get(value)
        if name is None:
            others = sum(known.startswith(hint) for known in self._once.values())
            name = self.names.reserve(f"{hint}_{others}" if others else hint)
            self._once[value] = name
            self.top.append(f"    const {c_type} {name} = {value};")
        return name

    def keep(self, c_type: str, hint: str, value: str) -> str:
        """Append a constant for `value` and return its name."""
        name = self.names.fresh(hint)
        self.add(f"const {c_type} {name} = {value};")
        return name


def wrapped(items: Sequence[str], indent: str) -> str:
    """The items separated by commas, over several lines where one would be long."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) > _WIDTH - 20 and lines[-1]:
            lines.append(indent)
        lines[-1] += item if not lines[-1].strip() else f", {item}"
    return ",\n".join(lines)
