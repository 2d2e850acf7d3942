"""Expressions of sizes as SymPy writes them, `Mul(Integer(2), Symbol('s0', integer=True))`: parsed
by a list of what is allowed, never evaluated as Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from ....tir.sizes import AnySize, greatest, least, product_of, quotient

LONGEST = 4096  # characters of an expression
_DEEPEST = 32


class UnknownExpression(Exception):
    """A text is no expression of sizes, or says what sizes cannot be."""


def _power(base: AnySize, exponent: AnySize) -> AnySize:
    if not isinstance(exponent, int) or not 0 <= exponent <= 8:
        raise UnknownExpression(f"the power {exponent} of a size")
    return product_of([base] * exponent)


def _remainder(a: AnySize, b: AnySize) -> AnySize:
    return a - quotient(a, b) * b


def _sum(*values: AnySize) -> AnySize:
    total: AnySize = 0
    for value in values:
        total = total + value
    return total


def _product(*values: AnySize) -> AnySize:
    return product_of(values)


_FUNCTIONS: Mapping[str, tuple[int | None, Callable[..., AnySize]]] = {
    "Add": (None, _sum),
    "CleanDiv": (2, quotient),
    "FloorDiv": (2, quotient),
    "Max": (None, greatest),
    "Min": (None, least),
    "Mod": (2, _remainder),
    "Mul": (None, _product),
    "Pow": (2, _power),
    "PythonMod": (2, _remainder),
}
_NUMBERS = {"One": 1, "Zero": 0, "NegativeOne": -1}


def size_from(text: str, symbols: Mapping[str, AnySize]) -> AnySize:
    """The size that an expression is, where its symbols are these.

    Raises: UnknownExpression; SizeError where it has no normal form.
    """
    return _value(_parsed(text), symbols, 0)


def symbol_of(text: str) -> str:
    """The symbol that a text is; "" where it is something else. Raises: UnknownExpression."""
    tree = _parsed(text)
    return _symbol(tree) if isinstance(tree, ast.Call) and _called(tree) == "Symbol" else ""


def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise UnknownExpression(f"an expression of {len(text)} characters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnknownExpression(f"'{text[:80]}'") from error


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _symbol(call: ast.Call) -> str:
    match call.args:
        case [ast.Constant(value=str(name))] if name.isidentifier():
            return name
    raise UnknownExpression("a symbol without a name")


def _value(tree: ast.expr, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    if depth > _DEEPEST:
        raise UnknownExpression("an expression within too many others")
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.Attribute(value=ast.Name(id="S"), attr=name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.Call():
            return _call(tree, symbols, depth)
    raise UnknownExpression(f"'{ast.unparse(tree)[:80]}'")


def _call(call: ast.Call, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    name = _called(call)
    if name == "Symbol":
        symbol = _symbol(call)
        if symbol not in symbols:
            raise UnknownExpression(f"the symbol '{symbol}', which no input has")
        return symbols[symbol]
    values: Sequence[AnySize] = [_value(one, symbols, depth + 1) for one in call.args]
    if name == "Integer" and len(values) == 1:
        return values[0]
    count, function = _FUNCTIONS.get(name, (0, _sum))
    if not values or (count is not None and len(values) != count):
        raise UnknownExpression(f"'{ast.unparse(call)[:80]}'")
    return function(*values)
