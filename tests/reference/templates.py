"""The text of an f-string with readable placeholders: `{factors}` for `{', '.join(factors)}`."""

from __future__ import annotations

import ast
import re

MOST = 60  # characters of a placeholder; a longer one is {...}
SAME = frozenset({"list", "map", "repr", "set", "sorted", "str", "tuple"})  # they show an argument
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
}


def template(node: ast.expr) -> str:
    """The text of a literal or an f-string, with placeholders."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(template, node.values))
    if isinstance(node, ast.FormattedValue):
        text = shown(node.value)
        return "{...}" if len(text) > MOST else f"{{{text}}}"
    assert isinstance(node, ast.Constant)
    return str(node.value)


def shown(node: ast.expr) -> str:
    """An expression as a placeholder names it: what is shown, not how it is put together."""
    match node:
        case ast.Name():
            return node.id.lstrip("_")
        case ast.Attribute(attr="__name__"):
            return shown(node.value)
        case ast.Attribute(value=ast.Name(id="self")):
            return node.attr.lstrip("_")
        case ast.Attribute():
            return f"{shown(node.value)}.{node.attr.lstrip('_')}"
        case ast.Constant() | ast.JoinedStr():
            return re.sub(r"[{}]", "", template(node))
        case ast.IfExp():
            return f"{shown(node.body) or 'nothing'} | {shown(node.orelse) or 'nothing'}"
        case ast.Subscript():
            return f"{shown(node.value)}[{shown(node.slice)}]"
        case ast.BinOp() if type(node.op) in SIGNS:
            return f"{shown(node.left)} {SIGNS[type(node.op)]} {shown(node.right)}"
        case ast.UnaryOp(op=ast.USub()):
            return f"-{shown(node.operand)}"
        case ast.NamedExpr():
            return shown(node.target)
        case ast.Starred():
            return shown(node.value)
        case ast.Tuple() | ast.List():
            return ", ".join(map(shown, node.elts))
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp():
            return shown(node.generators[0].iter)
        case ast.Call():
            return _call(node)
    return "..."


def _call(call: ast.Call) -> str:
    match call.func:
        case ast.Attribute(attr="join", value=ast.Constant()):
            return f"{shown(call.args[0])}, ..."
        case ast.Name(id="known_names"):
            return f"{shown(call.args[1])}, closest first"
        case ast.Name(id=name) if name in SAME and call.args:
            return shown(call.args[-1])
        case ast.Name(id="type"):
            return f"type of {shown(call.args[0])}"
        case ast.Attribute(attr="unparse"):
            return shown(call.args[0])
        case ast.Attribute() if not call.args:
            return shown(call.func)
    return f"{shown(call.func)}({', '.join(map(shown, call.args))})"
