"""The rules of all modules beside this one."""

from __future__ import annotations

from .....tir.siblings import merged
from ..rule import Rule

RULES: dict[str, Rule] = merged(__name__, "RULES")


def rule_name(target: str) -> str:
    """What the table calls an operator: "aten.relu.default" is "relu"."""
    return target.removeprefix("aten.").removesuffix(".default")
