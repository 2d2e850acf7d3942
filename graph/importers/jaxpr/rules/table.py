"""The rules of all modules beside this one."""

from __future__ import annotations

from .....tir.siblings import siblings
from ..rule import Rule


def _merged() -> dict[str, Rule]:
    found: dict[str, Rule] = {}
    for module in siblings(__name__):
        rules: dict[str, Rule] = getattr(module, "RULES", {})
        assert found.keys().isdisjoint(rules), module.__name__
        found |= rules
    return found


RULES: dict[str, Rule] = _merged()
