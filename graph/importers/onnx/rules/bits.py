"""Rules of the operators on bits."""

from __future__ import annotations

from ....ops import bits, functions, movement
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .rule import ImportRule, Result, plain

_WIDTHS = {
    "bool": 8,
    **{f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": bits for bits in (16, 32, 64)},
}


def _shift(node: NodeReader) -> Result:
    direction = node.text("direction", "")
    if direction not in ("LEFT", "RIGHT"):
        raise NotSupported(f"direction is '{direction}'")
    return bits.BitShift(direction == "RIGHT"), node.inputs


def _bit_cast(node: NodeReader) -> Result:
    """Between integers of one width, and from bool, it is a Cast, which keeps all bits."""
    source, to = node.type(0).dtype, dtype_name(node.integer("to"))
    widths = [_WIDTHS.get(name, 0) for name in (source, to)]
    if source == to:
        return movement.Identity(), node.inputs
    is_float = "float" in source or "float" in to
    if widths[0] != widths[1] or to == "bool" or widths[0] < (32 if is_float else 8):
        raise NotSupported(
            f"it gives the bits of {source} as {to}; known are integers of one width, and floats "
            "of 32 and 64 bits"
        )
    return bits.BitCast(source, to) if is_float else functions.Cast(to), node.inputs


RULES: dict[str, ImportRule] = {
    "BitCast": ImportRule((26,), ("to",), _bit_cast),
    "BitShift": ImportRule((11, 28), ("direction",), _shift),
    "BitwiseAnd": ImportRule((18,), (), plain(bits.BitwiseAnd())),
    "BitwiseNot": ImportRule((18,), (), plain(bits.BitwiseNot())),
    "BitwiseOr": ImportRule((18,), (), plain(bits.BitwiseOr())),
    "BitwiseXor": ImportRule((18,), (), plain(bits.BitwiseXor())),
}
