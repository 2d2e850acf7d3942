"""The default schedule of a function: the first rule that recognises its structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ...tir.func import PrimFunc
from ...tir.instructions import usable
from ...tir.target import Target
from ...tir.tensor_intrinsics import TENSOR_INTRINSICS
from ...tir.warp_products import WARP_PRODUCTS
from ..decisions import Decisions
from ..externs import check_no_calls
from ..schedule import Schedule
from .attention import AttentionRule
from .contraction import ContractionRule
from .depthwise import DepthwiseRule
from .dots import DotsRule
from .elementwise import ElementwiseRule
from .grid.attention import GridAttentionRule
from .grid.products import GridProductsRule
from .grid.rows import GridRowsRule
from .grid.warps import GridWarpsRule
from .grid.windows import GridWindowsRule
from .plain import PlainRule
from .reduction import ReductionRule
from .rows import RowsRule
from .winograd import WinogradRule


class Rule(Protocol):
    """A schedule program for one kind of kernel."""

    @property
    def name(self) -> str:
        """The name, as logs and `explain` give it."""

    def matches(self, func: PrimFunc) -> bool:
        """Whether the function has the structure that the rule is for."""

    def apply(self, sch: Schedule, target: Target) -> None:
        """Take the steps."""


# the most special first; the last one takes everything
RULES: tuple[Rule, ...] = (
    ElementwiseRule(),
    WinogradRule(),
    AttentionRule(),
    ContractionRule(),
    DotsRule(),
    DepthwiseRule(),
    ReductionRule(),
    RowsRule(),
)
# those of strict builds, which keep the order of each sum
STRICT_RULES: tuple[Rule, ...] = (
    ElementwiseRule(),
    AttentionRule(in_order=True),
    ContractionRule(in_order=True),
    DotsRule(),
    DepthwiseRule(),
    ReductionRule(in_order=True),
    RowsRule(in_order=True),
)


# those of a GPU, in the same way
GRID_RULES: tuple[Rule, ...] = (
    GridAttentionRule(),
    GridWarpsRule(),
    GridProductsRule(),
    GridWindowsRule(),
    GridRowsRule(),
)
STRICT_GRID_RULES: tuple[Rule, ...] = (
    GridWarpsRule(),
    GridProductsRule(in_order=True),
    GridWindowsRule(),
    GridRowsRule(in_order=True),
)


def rule_for(
    func: PrimFunc,
    target: Target | None = None,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> Rule:
    """The rule that schedules `func` for a target; by default, for one that has every instruction.

    allow: the tensor intrinsics with a liberty that rules may use.
    Raises: ScheduleError where `func` calls a C function.
    """
    return next(rules_for(func, target, strict=strict, allow=allow))


def rules_for(
    func: PrimFunc,
    target: Target | None = None,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> Iterator[Rule]:
    """Every rule that takes `func`, that of `rule_for` first; each is for what the ones before it
    are refused, and the last one takes next to no step.

    Raises: ScheduleError where `func` calls a C function.
    """
    check_no_calls(func)
    if target is not None and target.gpu is not None:
        listed = STRICT_GRID_RULES if strict else GRID_RULES
    else:
        listed = STRICT_RULES if strict else RULES
    for rule in listed:
        if isinstance(rule, DotsRule):
            units = usable(TENSOR_INTRINSICS, target, strict=strict, allow=allow)
            rule = replace(rule, units=units)
        elif isinstance(rule, GridWarpsRule):
            units = usable(WARP_PRODUCTS, target, strict=strict, allow=allow)
            rule = replace(rule, units=units)
        if rule.matches(func):
            yield rule
    yield PlainRule()


def default_schedule(
    func: PrimFunc,
    target: Target,
    decisions: Decisions | None = None,
    *,
    strict: bool = False,
    allow: Sequence[str] = (),
) -> Schedule:
    """The schedule that the rule for `func` makes, with its analytical choices or those of
    `decisions`. strict: every sum keeps the order of its definition. allow: the tensor intrinsics
    with a liberty that it may use.
    """
    rule = rule_for(func, target, strict=strict, allow=allow)
    return scheduled_by(rule, func, target, decisions)


def scheduled_by(
    rule: Rule, func: PrimFunc, target: Target, decisions: Decisions | None = None
) -> Schedule:
    """The schedule that a rule makes. Raises: ScheduleError where it takes a step that is
    refused.
    """
    sch = Schedule(func, target, decisions, origin="rule")
    return sch.apply(lambda s: rule.apply(s, target))
