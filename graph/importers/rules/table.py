"""What each ONNX operator means in core operators: one rule for each, for all versions since 7.

A rule reads a node and returns the core operator with its inputs, or the constant that the node is.
What depends only on types is decided here: automatic padding, omitted attributes, shapes given as
values. A rule lists the versions whose meaning it knows, so a version that a later ONNX brings is
refused instead of misread.
"""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    constants,
    gathering,
    logic,
    matmul,
    movement,
    normalisation,
    ranking,
    reduction,
    resize,
    slicing,
    transposed_window,
    window,
)
from .rule import Rule

RULES: dict[str, Rule] = {
    **activation.RULES,
    **arithmetic.RULES,
    **constants.RULES,
    **gathering.RULES,
    **logic.RULES,
    **matmul.RULES,
    **movement.RULES,
    **normalisation.RULES,
    **ranking.RULES,
    **reduction.RULES,
    **resize.RULES,
    **slicing.RULES,
    **transposed_window.RULES,
    **window.RULES,
}
