"""Rules of the operators on bits."""

from __future__ import annotations

from ....ops import bits, functions
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .rule import ImportRule, Result, plain


def _shift(node: NodeReader) -> Result:
    direction = node.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise NotSupported(f"direction is '{direction}'")
    return bits.BitShift(direction == "RIGHT"), node.inputs


def _bit_cast(node: NodeReader) -> Result:
    """Between integers of one width, and from bool, it is a Cast, which keeps all bits."""
    source, to = node.type(0).dtype, dtype_name(node.integer("to"))
    widths = [{"bool": "8"}.get(name, name.lstrip("uint")) for name in (source, to)]
    whole = widths[0] == widths[1] and widths[0].isdigit()
    if source != to and not (whole and to != "bool"):
        raise NotSupported(
            f"it gives the bits of {source} as {to}; known are integers of one width"
        )
    return functions.Cast(to), node.inputs


RULES: dict[str, ImportRule] = {
    "BitCast": ImportRule((26,), ("to",), _bit_cast),
    "BitShift": ImportRule((11, 28), ("direction",), _shift),
    "BitwiseAnd": ImportRule((18,), (), plain(bits.BitwiseAnd())),
    "BitwiseNot": ImportRule((18,), (), plain(bits.BitwiseNot())),
    "BitwiseOr": ImportRule((18,), (), plain(bits.BitwiseOr())),
    "BitwiseXor": ImportRule((18,), (), plain(bits.BitwiseXor())),
}
