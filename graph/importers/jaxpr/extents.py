"""Sizes as JAX writes them, "2*b^2 + floordiv(n, 2)": parsed by a list of what is allowed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from ....tir.sizes import AnySize, greatest, least, quotient
from ..size_texts import UnknownSize, check_depth, known_symbol, parsed, power, remainder, unknown

_FUNCTIONS: Mapping[str, Callable[[AnySize, AnySize], AnySize]] = {
    "floordiv": quotient,
    "max": greatest,
    "min": least,
    "mod": remainder,
}


def extent_from(text: str, symbols: Mapping[str, AnySize]) -> AnySize:
    """The size that a text is, where its symbols are these.

    Raises: UnknownSize; SizeError where it has no normal form.
    """
    return _value(parsed(text.replace("^", "**")), symbols, 0)


def symbol_of(text: str) -> str:
    """The symbol that a text is; "" where it is something else. Raises: UnknownSize."""
    tree = parsed(text.replace("^", "**"))
    return tree.id if isinstance(tree, ast.Name) else ""


def _value(tree: ast.expr, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    check_depth(depth)
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            return known_symbol(name, symbols)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, symbols, depth + 1)
        case ast.BinOp(left=left, op=operator, right=right):
            return _joined(operator, *(_value(one, symbols, depth + 1) for one in (left, right)))
        case ast.Call(func=ast.Name(id=name), args=[a, b]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*(_value(one, symbols, depth + 1) for one in (a, b)))
    raise unknown(tree)


def _joined(operator: ast.operator, a: AnySize, b: AnySize) -> AnySize:
    match operator:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Pow():
            return power(a, b)
    raise UnknownSize(f"{type(operator).__name__} of {a} and {b}")
