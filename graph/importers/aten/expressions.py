"""Expressions of sizes as SymPy writes them, `Mul(Integer(2), Symbol('s0', integer=True))`: parsed
by a list of what is allowed, never evaluated as Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from ....tir.sizes import AnySize, greatest, least, product_of, quotient
from ..size_texts import UnknownSize, check_depth, known_symbol, parsed, power, remainder, unknown


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
    "Mod": (2, remainder),
    "Mul": (None, _product),
    "Pow": (2, power),
    "PythonMod": (2, remainder),
}
_NUMBERS = {"One": 1, "Zero": 0, "NegativeOne": -1}


def size_from(text: str, symbols: Mapping[str, AnySize]) -> AnySize:
    """The size that an expression is, where its symbols are these.

    Raises: UnknownSize; SizeError where it has no normal form.
    """
    return _value(parsed(text), symbols, 0)


def symbol_of(text: str) -> str:
    """The symbol that a text is; "" where it is something else. Raises: UnknownSize."""
    tree = parsed(text)
    return _symbol(tree) if isinstance(tree, ast.Call) and _called(tree) == "Symbol" else ""


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _symbol(call: ast.Call) -> str:
    match call.args:
        case [ast.Constant(value=str(name))] if name.isidentifier():
            return name
    raise UnknownSize("a symbol without a name")


def _value(tree: ast.expr, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    check_depth(depth)
    match tree:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
            return -number
        case ast.Attribute(value=ast.Name(id="S"), attr=name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.Call():
            return _call(tree, symbols, depth)
    raise unknown(tree)


def _call(call: ast.Call, symbols: Mapping[str, AnySize], depth: int) -> AnySize:
    name = _called(call)
    if name == "Symbol":
        return known_symbol(_symbol(call), symbols)
    values: Sequence[AnySize] = [_value(one, symbols, depth + 1) for one in call.args]
    if name == "Integer" and len(values) == 1:
        return values[0]
    count, function = _FUNCTIONS.get(name, (0, _sum))
    if not values or (count is not None and len(values) != count):
        raise unknown(call)
    return function(*values)
