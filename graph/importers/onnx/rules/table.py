"""What each ONNX operator means in core operators: one rule for each, for all versions since 7.

A rule reads a node and returns the core operator with its inputs, or the constant that the node is.
What depends only on types is decided here: automatic padding, omitted attributes, shapes given as
values. A rule lists the versions whose meaning it knows, so a version that a later ONNX brings is
refused instead of misread. The table holds the rules of every module beside this one.
"""

from __future__ import annotations

from .....tir.siblings import siblings
from .rule import ImportRule


def _merged() -> dict[str, ImportRule]:
    found: dict[str, ImportRule] = {}
    for module in siblings(__name__):
        rules: dict[str, ImportRule] = getattr(module, "RULES", {})
        assert found.keys().isdisjoint(rules), module.__name__
        found |= rules
    return found


RULES: dict[str, ImportRule] = _merged()
