"""Sizes as JAX writes them, "2*b^2 + floordiv(n, 2)": parsed by a list of what is allowed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ....tir.sizes import AnySize, greatest, least, product_of, quotient

LONGEST = 4096  # characters of a size
_DEEPEST = 32
_LARGEST_POWER = 8


class UnknownExtent(Exception):
    """A text is no size, or says what sizes cannot be."""


def _remainder(a: AnySize, b: AnySize) -> AnySize:
    return a - quotient(a, b) * b


_FUNCTIONS: Mapping[str, Callable[[AnySize, AnySize], AnySize]] = {
    "floordiv": quotient,
    "max": greatest,
    "min": least,
    "mod": _remainder,
}


def extent_from(text: str, symbols: Mapping[str, AnySize]) -> AnySize:
    """The size that a text is, where its symbols are these.

    Raises: UnknownExtent; SizeError where it has no normal form.
    """
    return _value(_parsed(text), symbols, 0)


def symbol_of(text: str) -> str:
    """The symbol that a text is; "" where it is something else. Raises: UnknownExtent."""
    tree = _parsed(text)
    return tree.id if isinstance(tree, ast.Name) else ""


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise UnknownExtent(f"a size of {len(text)} characters")
    try:
        return ast.parse(text.replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnknownExtent(f"'{text[:80]}'") from error


def _value(tree: ast.expr, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    if depth > _DEEPEST:
        raise UnknownExtent("a size within too many others")
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.Name(id=name):
            raise UnknownExtent(f"the size '{name}', which no input has")
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, symbols, depth + 1)
        case ast.BinOp(left=left, op=operator, right=right):
            return _joined(operator, *(_value(one, symbols, depth + 1) for one in (left, right)))
        case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(one, symbols, depth + 1) for one in (a, b)))
    raise UnknownExtent(f"'{ast.unparse(tree)[:80]}'")


def _joined(operator: ast.operator, a: AnySize, b: AnySize) -> AnySize:
    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Pow() if isinstance(b, int) and 0 <= b <= _LARGEST_POWER:
            return product_of([a] * b)
    raise UnknownExtent(f"{type(operator).__name__} of {a} and {b}")
