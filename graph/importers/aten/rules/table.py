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


def rule_name(target: str) -> str:
    """What the table calls an operator: "aten.relu.default" is "relu"."""
    return target.removeprefix("aten.").removesuffix(".default")
