"""All drawings of operators that are read."""

from __future__ import annotations

from typing import Any

from onnx import defs

from ...importers.onnx.rules.table import RULES
from . import indexed, layers, pointwise
from .drawing import Drawing


def _is_read(op: str) -> bool:
    """Whether an operator has a rule, or is a function of others."""
    schema: Any = defs.get_schema(op)
    return op in RULES or schema.has_function or schema.has_context_dependent_function


DRAWINGS: tuple[Drawing, ...] = tuple(
    drawing
    for module in (pointwise, indexed, layers)
    for drawing in module.all_drawings()
    if _is_read(drawing.op)
)
