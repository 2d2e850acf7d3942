"""What CUDA C computes in one expression, as a table: (operation, type) -> text, the operands as
`{0}`, `{1}`, `{2}`.

Sources are compiled with `--fmad=false`: a product and a sum become one instruction where the text
says so, and nowhere else.
"""

from __future__ import annotations

from ...tir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType

_FLOAT = {
    "min": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "max": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "min_any": "({0} < {1} ? {0} : {1})",  # a NaN in {0} is dropped, one in {1} kept
    "max_any": "({0} > {1} ? {0} : {1})",
    "abs": "fabs{s}({0})",
    "neg": "-{0}",
    "sqrt": "sqrt{s}({0})",
    "round": "rint{s}({0})",
    "floor": "floor{s}({0})",
    "fma": "fma{s}({0}, {1}, {2})",
}


def scalar_operations() -> dict[tuple[str, DType], str]:
    """The table."""
    table: dict[tuple[str, DType], str] = {}
    for dtype, f, s in ((FLOAT32, "f", "f"), (FLOAT64, "d", "")):
        for name, text in _FLOAT.items():
            table[name, dtype] = text.replace("{f}", f).replace("{s}", s)
    for stored, name in ((FLOAT16, "half"), (BFLOAT16, "bfloat16")):
        table["cast_float32", stored] = f"tw_float_from_{name}({{0}})"
        table[f"cast_{stored}", FLOAT32] = f"tw_{name}_from_float({{0}})"
    return table
