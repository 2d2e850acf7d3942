"""Facts: what holds of the sizes of a call together, which no bounds of single ones say.

A fact is a linear form of dims that is negative in no call. A window that slides over an axis of n
elements in m places has one: n - 2*m - 1. Whoever states it on a function has seen to it, and who
calls the function sees to it: a program for all the sizes that a run may have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dim import Dim
from ..expr import Expr
from ..sizes import AnySize
from .linear import linear


def fact_at(fact: Expr, values: Mapping[Dim, AnySize]) -> AnySize:
    """What the form is for values of its dims."""
    form = linear(fact)
    size: AnySize = form.constant
    for atom, factor in form.terms:
        assert isinstance(atom, Dim), "verified of every function"
        size = size + values[atom] * factor
    return size


def dims_of_facts(facts: Iterable[Expr]) -> frozenset[Expr]:
    """The dims that they tie together."""
    return frozenset(atom for fact in facts for atom, _ in linear(fact).terms)


def agree(facts: Iterable[Expr], values: Mapping[Dim, int]) -> bool:
    """Whether all of them hold for values of their dims."""
    return all(fact_at(fact, values) >= 0 for fact in facts)
