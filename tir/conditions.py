"""Conditions made of others, and taken apart again."""

from __future__ import annotations

from .dim import Dim
from .expr import FALSE, LT, TRUE, And, Expr, Or, Var, is_const
from .visit import free_vars

MOST_IN_A_ROW = 16  # conditions; more of them are a tree


def all_of(*conditions: Expr) -> Expr:
    """The conjunction of `conditions`; true for none."""
    if len(conditions) > MOST_IN_A_ROW:
        half = len(conditions) // 2
        return all_of(all_of(*conditions[:half]), all_of(*conditions[half:]))
    result: Expr = TRUE
    for condition in conditions:
        if is_const(condition, 1) or condition == result:
            continue
        result = condition if is_const(result, 1) else And(result, condition)
    return result


def any_of(*conditions: Expr) -> Expr:
    """The disjunction of `conditions`; false for none."""
    if len(conditions) > MOST_IN_A_ROW:
        half = len(conditions) // 2
        return any_of(any_of(*conditions[:half]), any_of(*conditions[half:]))
    result: Expr = FALSE
    for condition in conditions:
        if is_const(condition, 0):
            continue
        result = condition if is_const(result, 0) else Or(result, condition)
    return result


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The conditions whose conjunction `condition` is; none for true."""
    if isinstance(condition, And):
        return conjuncts(condition.a) + conjuncts(condition.b)
    return () if is_const(condition, 1) else (condition,)


def dims_below(condition: Expr) -> dict[Var, Dim]:
    """The variables that a condition keeps below a dim, `v < n` beside whatever else it asks."""
    found = (part for part in conjuncts(condition) if isinstance(part, LT))
    return {part.a: part.b for part in found if isinstance(part.a, Var) and isinstance(part.b, Dim)}


def names_dim(condition: Expr) -> bool:
    """Whether a size that a call decides is part of a condition."""
    return any(isinstance(var, Dim) for var in free_vars(condition))
