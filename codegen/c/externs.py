"""The C texts that a user brings, as they stand in a generated source: whole and unchanged, each
once, between two lines by which a compiler's complaint is traced back to them. They stand last, so
that no macro of theirs meets generated code.
"""

from __future__ import annotations

from ...tir.extern import ExternFunction
from ...tir.func import PrimFunc
from ...tir.stmt import Extern
from ...tir.visit import statements
from .dialect import C

BEGIN, END = "/* begin of the text of extern ", "/* end of the text of extern "


def with_externs(body: str, *functions: PrimFunc) -> str:
    """The definitions `body` of some functions with what they call: a declaration of each symbol
    before, the texts after. A declaration makes a function static, whatever its definition says,
    and the compiler compares the two.
    """
    nodes = (node for func in functions for node in statements(func.body))
    calls = [node for node in nodes if isinstance(node, Extern)]
    if not calls:
        return body
    declared = dict.fromkeys(map(_declaration, calls))
    symbols: dict[str, str] = {}
    for call in calls:
        if isinstance(call.function, ExternFunction):
            symbols.setdefault(call.function.source, call.function.symbol)
    texts = [
        f"{BEGIN}{symbol} */\n{source.rstrip()}\n{END}{symbol} */\n"
        for source, symbol in symbols.items()
    ]
    return "\n".join(["\n".join(declared), "", body, *texts])


def blamed(source: str, line: int) -> tuple[str, int] | None:
    """The symbol of the user's text in which a line of a source stands, and the line's number in
    that text, both counted from 1; None for a line of generated code.
    """
    found: tuple[str, int] | None = None
    for number, text in enumerate(source.splitlines()[:line], 1):
        if text.startswith(BEGIN):
            found = text.removeprefix(BEGIN).removesuffix(" */"), number
        elif text.startswith(END):
            found = None
    return None if found is None else (found[0], line - found[1])


def _declaration(call: Extern) -> str:
    inputs = [f"const {C.type_of(buffer.type)} *" for buffer in call.inputs]
    outputs = [f"{C.type_of(buffer.type)} *" for buffer in call.outputs]
    return f"static void {call.function.symbol}({', '.join([*inputs, *outputs])});"
