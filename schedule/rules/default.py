"""The default schedule of a function: the first rule that recognises its structure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...tir.func import PrimFunc
from ...tir.instructions.instructions import usable
from ...tir.target.target import Target
from ..legality.externs import check_no_calls
from ..schedule import Schedule
from ..trace.decisions import Decisions
from .attention import AttentionRule
from .depthwise import DepthwiseRule
from .elementwise import ElementwiseRule
from .gpu.attention import GridAttentionRule
from .gpu.block_rows import GridBlockRowsRule
from .gpu.products import GridProductsRule
from .gpu.rows import GridRowsRule
from .gpu.warps import GridWarpsRule
from .gpu.windows import GridWindowsRule
from .networks import NetworksRule
from .plain import PlainRule
from .products.block_dots import BlockDotsRule
from .products.block_panels import BlockPanelsRule
from .products.block_rows import BlockRowsRule
from .products.contraction import ContractionRule
from .products.dots import DotsRule
from .products.winograd import WinogradRule
from .reduction import ReductionRule
from .rows import RowsRule
from .rule import Rule
from .scatters import ScatterRule
from .strided import StridedRule

# the most special first; the last one takes everything
RULES: tuple[Rule, ...] = (
    ScatterRule(),
    ElementwiseRule(),
    NetworksRule(),
    WinogradRule(),
    AttentionRule(),
    BlockDotsRule(),
    BlockRowsRule(),
    BlockPanelsRule(),
    DotsRule(),
    ContractionRule(),
    DepthwiseRule(),
    ReductionRule(),
    StridedRule(),
    RowsRule(),
)
# those of a GPU, in the same way
GRID_RULES: tuple[Rule, ...] = (
    GridAttentionRule(),
    GridBlockRowsRule(),
    GridWarpsRule(),
    GridProductsRule(),
    GridWindowsRule(),
    GridRowsRule(),
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

    Raises: ScheduleError where `func` calls a C function, or scatters for a GPU.
    """
    check_no_calls(func, target)
    listed = RULES if target is None or not target.has_grid else GRID_RULES
    for rule in listed:
        if strict and not rule.keeps_order:
            continue
        units = usable(rule.instructions, target, strict=strict, allow=allow)
        one = replace(rule, in_order=strict, units=units)
        if one.matches(func):
            yield one
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
    return rule.schedule(func, target, decisions)
