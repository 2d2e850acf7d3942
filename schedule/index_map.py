"""IndexMap: how the indices of a tensor become those of another layout, and back.

    IndexMap.of(lambda k, n: (n // 48, k, n % 48))

Each new index is an old one, its quotient by a number, its remainder, or the remainder of its
quotient: a digit of the old index; or 0, for an axis of one. So the map has an inverse, and its
text can be kept in a trace.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..tir.analysis.regions import Digit, digit_of
from ..tir.errors import IRError
from ..tir.expr import Expr, Var, index, is_const
from ..tir.text.printer import Names, print_expr
from ..tir.visit import substitute
from .errors import Kind, ScheduleError


@dataclass(frozen=True, slots=True)
class IndexMap:
    """old indices `sources` -> new indices `results`."""

    sources: tuple[Var, ...]
    results: tuple[Expr, ...]

    @staticmethod
    def read(given: str | Callable[..., Sequence[Expr | int]]) -> IndexMap:
        """The map of a function, or of its text. Raises: ScheduleError."""
        return IndexMap.parse(given) if isinstance(given, str) else IndexMap.of(given)

    @staticmethod
    def of(function: Callable[..., Sequence[Expr | int]]) -> IndexMap:
        """The map that a Python function of the old indices returns. Raises: ScheduleError."""
        sources = tuple(Var(name) for name in inspect.signature(function).parameters)
        results = function(*sources)
        if not isinstance(results, tuple | list):
            shown = print_expr(results) if isinstance(results, Expr) else repr(results)
            raise ScheduleError(
                f"transform_layout: the index map returns {shown}; expected a tuple of indices.",
                code="layout-tuple",
                hints=("lambda i: (i,)",),
            )
        made = IndexMap(sources, tuple(index(r) if isinstance(r, int) else r for r in results))
        made.digits()
        return made

    @staticmethod
    def parse(text: str) -> IndexMap:
        """The map of a text that `str` of an IndexMap gave. Raises: ScheduleError."""
        try:
            node = ast.parse(text, mode="eval").body
        except SyntaxError:
            node = None
        if not isinstance(node, ast.Lambda) or not isinstance(node.body, ast.Tuple):
            raise _malformed(text)
        sources = tuple(Var(argument.arg) for argument in node.args.args)
        names = {var.name: var for var in sources}
        try:
            return IndexMap(sources, tuple(_read(item, names, text) for item in node.body.elts))
        except IRError:  # a division by 0
            raise _malformed(text) from None

    def __str__(self) -> str:
        names = Names()
        sources = ", ".join(names[var] for var in self.sources)
        results = ", ".join(print_expr(result, names) for result in self.results)
        comma = "," if len(self.results) == 1 else ""
        return f"lambda {sources}: ({results}{comma})"

    def apply(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """The new indices of the element at `indices`."""
        values = dict(zip(self.sources, indices, strict=True))
        return tuple(substitute(result, values) for result in self.results)

    def digits(self) -> tuple[Digit | None, ...]:
        """Each result as a digit of a source; None for 0. Raises: ScheduleError when one is
        anything else.
        """
        return tuple(self._digit(result) for result in self.results)

    def _digit(self, result: Expr) -> Digit | None:
        if is_const(result, 0):
            return None
        found = digit_of(result)
        if found is not None and found.var in self.sources:
            return found
        raise ScheduleError(
            f"transform_layout: the new index {print_expr(result)} is not a digit of one old "
            "index; "
            "expected i, i // c, i % c, i // c % d or 0.",
            code="layout-digit",
            kind=Kind.LIMIT,
            hints=("lambda k, n: (n // 48, k, n % 48) packs n into panels of 48.",),
        )

    def shape(self, old: Sequence[int]) -> tuple[int, ...]:
        """The extents of the new layout of a tensor with the extents `old`, incomplete panels
        counted whole.
        """
        if len(old) != len(self.sources):
            raise ScheduleError(
                f"transform_layout: the index map '{self}' takes {len(self.sources)} indices; "
                f"the tensor has {len(old)}.",
                code="layout-rank",
            )
        extents = dict(zip(self.sources, old, strict=True))
        for source in self.sources:
            self._check_kept(source, extents[source])
        whole = []
        for digit in self.digits():
            if digit is None:
                whole.append(1)
                continue
            count = digit.count(extents[digit.var])
            incomplete = digit.modulus is not None and digit.weight == 1
            whole.append(max(count, digit.modulus or 0) if incomplete else count)
        return tuple(whole)

    def _check_kept(self, source: Var, extent: int) -> None:
        """The digits of an index, each once, are those of a number: they give the index again."""
        digits = [d for d in self.digits() if d is not None and d.var is source]
        weight: int | None = 1
        for digit in sorted(digits, key=lambda d: d.weight):
            if digit.weight != weight:
                weight = -1
                break
            weight = None if digit.modulus is None else digit.weight * digit.modulus
        if weight is not None and weight < extent:
            raise ScheduleError(
                f"transform_layout: the new layout does not keep index '{source.name}' of "
                f"{extent} values: its elements could not be found again.",
                code="layout-lost",
                hints=("each index needs its digits, such as i // 4 and i % 4, once.",),
            )

    def inverse(self, new: Sequence[Expr]) -> tuple[Expr, ...]:
        """The old indices of the element at the new indices `new`."""
        values: dict[Var, Expr] = {}
        for digit, item in zip(self.digits(), new, strict=True):
            if digit is None:
                continue
            part = item * digit.weight
            values[digit.var] = values[digit.var] + part if digit.var in values else part
        return tuple(values.get(var, index(0)) for var in self.sources)


def _malformed(text: str) -> ScheduleError:
    return ScheduleError(
        f"transform_layout: {text!r} is not an index map; expected a text such as 'lambda k, "
        "n: (n // 48, k, n % 48)'.",
        code="layout-text",
    )


_OPERATORS: dict[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _read(node: ast.expr, names: Mapping[str, Var], text: str) -> Expr:
    match node:
        case ast.Name(name) if name in names:
            return names[name]
        case ast.Constant(int() as value):
            return index(value)
        case ast.BinOp(a, operator, b) if type(operator) in _OPERATORS:
            return _OPERATORS[type(operator)](_read(a, names, text), _read(b, names, text))
    raise _malformed(text)
