"""From a model as imported to a checked Program: passes, fusion, choice by price, lowering.

One function, top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...driver.check.clock import Clock, Laps
from ...schedule.source import ScheduleSource
from ...tir.errors import InternalError
from ...tir.instructions.tensor_intrinsics import VDPBF16PS
from ...tir.target.target import Target, covers
from ..errors import OperatorError
from ..extensions.operators import declaration_of
from ..ir.ir import Graph
from ..kernels.algorithms import ALGORITHMS, ROUNDING_MORE
from ..kernels.groups import FusionGroup
from ..passes.levels import has_bytes
from ..passes.passes import chosen_passes
from ..passes.pipeline import GraphPass, PassReport, left_out, optimise, run_by
from ..passes.reshape_motion import ReshapeMotion
from ..precision.blocks.rounded_data import round_data
from ..precision.halves import PAIRS, HalfProducts, Precision, ProductPrecision, choose_halves
from .check_functions import FunctionChecker
from .choose import (
    GroupDecision,
    KernelChoice,
    alternatives,
    choose,
    chosen_parts,
    taken_apart,
    without,
)
from .flatten import FlatModel, flatten
from .fusion import Fusion, fuse
from .kept_prices import KeptPrices
from .lowering import LoweredModel, lower
from .pricing import Pricer


@dataclass(frozen=True, slots=True)
class Planned:
    """A model, planned.

    imported: as it was read, or with the data of products rounded where it permits that
    (`graph/precision/blocks`); graph: after the passes; passes: what each did. flat: the
    graph without regions, which is what is fused, chosen and lowered. decisions: for each group of
    the fusion, what was priced and what was taken. checker: what compared the kernels' functions
    with their operators, None where nobody asked. notes: whose data are rounded, and what was taken
    apart, and why. products: which types the products have, where others than their own were asked
    for. seconds: what each stage took.
    """

    imported: Graph
    graph: Graph
    flat: FlatModel
    passes: tuple[PassReport, ...]
    fusion: Fusion
    decisions: tuple[GroupDecision, ...]
    lowered: LoweredModel
    pricer: Pricer
    checker: FunctionChecker | None
    notes: tuple[str, ...]
    seconds: Laps
    products: tuple[ProductPrecision, ...] = ()

    @property
    def reference(self) -> Graph:
        """What its kernels are to compute: the model as it was imported, or where operands of
        products are rounded, the graph that says which.
        """
        return self.graph if self.is_rounded else self.imported

    @property
    def is_rounded(self) -> bool:
        """Whether operands of some product are rounded to 16 bits."""
        return any(one.form != "float32" for one in self.products)

    @property
    def allow(self) -> tuple[str, ...]:
        """The instructions with a liberty that its kernels may use."""
        return self.pricer.allow


def plan_model(
    imported: Graph,
    target: Target,
    source: ScheduleSource | None = None,
    *,
    passes: Iterable[GraphPass] | None = None,
    check: bool = True,
    strict: bool = False,
    tolerance: float | None = None,
    precision: Precision = "float32",
    keep: bool = False,
) -> Planned:
    """Optimise a graph and lower it to a Program.

    source: times and schedules that are known. passes: those of the pipeline by default. check:
    compare the graph before and after each pass on random numbers. strict: no algorithm or pass
    that sums in another order than the operators say. tolerance: of the expected error of an
    algorithm that rounds more; None: no such one. precision: of products, or of those that are
    named (`graph/precision/halves.py`). Where `check`, the function of each kernel is
    also compared with the NumPy references of its operators. keep: take estimates of earlier
    builds, and keep those that are made. Raises: PrecisionError; InternalError
    where an invariant does not hold.
    """
    clock = Clock()
    rounded = round_data(imported, target, strict=strict)
    imported = rounded.graph
    pipeline = chosen_passes(passes)
    allow = allowed_by(precision)
    kept = KeptPrices(target, strict=strict, allow=allow) if keep else None
    pricer = Pricer(target, source, strict=strict, tolerance=tolerance, allow=allow, kept=kept)
    run = run_by(pipeline, target, strict=strict)
    graph, reports, products = optimised(imported, run, pricer, precision, check)
    if passes is not None or has_bytes(imported):
        reports += left_out(pipeline, target, strict=strict)
    clock.lap("passes", [("check of passes", report.check_seconds) for report in reports])
    model = flatten(graph)
    flat = model.graph
    fusion = fuse(flat, outputs=model.outputs)
    decisions = choose(flat, fusion.groups, pricer)
    clock.lap("choose")
    checker = FunctionChecker(flat) if check else None
    decisions, notes = _checked(flat, decisions, pricer, checker)
    clock.lap("check of functions")
    lowered = lower(model, chosen_parts(flat, decisions))
    clock.lap("plan")
    return Planned(
        imported,
        graph,
        model,
        reports,
        fusion,
        decisions,
        lowered,
        pricer,
        checker,
        (*rounded.notes, *notes),
        clock.laps,
        products,
    )


def optimised(
    imported: Graph,
    pipeline: tuple[GraphPass, ...],
    pricer: Pricer,
    precision: Precision,
    check: bool,
) -> tuple[Graph, tuple[PassReport, ...], tuple[ProductPrecision, ...]]:
    """The graph after all passes. Products are rounded after patterns are found and the layout is
    known, and before what moves Reshapes, so that what rounds their data joins what makes it.
    Which of them are, the cost model alone decides, whatever a log knows of some: a model has the
    same products when it is tuned and when it is compiled with what that found.
    """
    if precision == "float32":
        return *optimise(imported, pipeline, check=check), ()
    kinds = [isinstance(one, ReshapeMotion) for one in pipeline]
    at = kinds.index(True) if True in kinds else len(pipeline)
    graph, before = optimise(imported, pipeline[:at], check=check)

    plain = Pricer(pricer.target, tolerance=pricer.tolerance, allow=pricer.allow)

    def price(alone: Graph) -> float:
        return min(one.seconds for one in alternatives(alone, FusionGroup(alone.nodes), plain))

    pairs = covers((pricer.target.instructions,), PAIRS) and bool(pricer.allow)
    products = choose_halves(imported, graph, precision, price, pairs=pairs)
    behind = (HalfProducts(products), *pipeline[at:])
    graph, after = optimise(graph, behind, check=check)
    return graph, (*before, *after), products


def allowed_by(precision: Precision) -> tuple[str, ...]:
    """The instructions that a precision consents to."""
    kinds = precision.values() if isinstance(precision, Mapping) else (precision,)
    return (VDPBF16PS.name,) if "bfloat16" in kinds else ()


def _checked(
    graph: Graph,
    decisions: Sequence[GroupDecision],
    pricer: Pricer,
    checker: FunctionChecker | None,
) -> tuple[tuple[GroupDecision, ...], tuple[str, ...]]:
    """The decisions, each group whose function is wrong taken apart, and a note of each.

    Raises: InternalError where the function of one operator is wrong.
    """
    if checker is None:
        return tuple(decisions), ()
    found, notes = [], list[str]()
    for decision in decisions:
        wrong = checker.wrong(decision.chosen.parts)
        if wrong:
            single = taken_apart(graph, decision.group, pricer)
            left = checker.wrong(single.parts)
            for group, reason in left.items():
                raise _wrong_function(group, reason)
            decision = replace(decision, chosen=single)
        notes += [
            f"{group.title} ({group.label}) was taken apart: its function is wrong: {reason}"
            for group, reason in wrong.items()
        ]
        found.append(decision)
    return tuple(found), tuple(notes)


def _wrong_function(group: FusionGroup, reason: str) -> InternalError | OperatorError:
    """The error of one operator whose function is wrong: whoever declared it is to mend it."""
    declared = declaration_of(type(group.nodes[0].op))
    problem = f"{group.title} ({group.label}) does not compute what NumPy does: {reason}."
    if declared is None:
        return InternalError(f"plan: the function of {problem}", code="plan-function")
    return OperatorError(
        f"plan: 'express' of {declared} contradicts its 'reference': {problem}",
        code="operator-function",
        hints=("tw.check_operator(operator, cases) shows on which data.",),
    )


def apart(planned: Planned, functions: Sequence[str]) -> Planned:
    """The plan with a kernel for each node of every group that runs in one of `functions` of its
    program.

    Returns `planned` itself when one of them cannot be taken apart.
    """
    program = planned.lowered.program
    labels = {step.label for step in program.launches if step.function in functions}
    decisions = []
    for decision in planned.decisions:
        bad = [part for part in decision.chosen.parts if part.group.label in labels]
        if not bad:
            decisions.append(decision)
        elif all(map(_is_single, bad)):
            return planned
        else:
            single = taken_apart(planned.flat.graph, decision.group, planned.pricer)
            decisions.append(replace(decision, chosen=single))
    return _decided(planned, decisions)


def divisible(planned: Planned) -> frozenset[str]:
    """The functions of the program that `apart` can take apart."""
    program = planned.lowered.program
    parts = [part for decision in planned.decisions for part in decision.chosen.parts]
    single = {part.group.label for part in parts if _is_single(part)}
    kept = {step.function for step in program.launches if step.label in single}
    return frozenset(func.name for func in program.functions if func.name not in kept)


def _is_single(part: KernelChoice) -> bool:
    """Whether a part is one operator, computed as that says."""
    return len(part.group.nodes) == 1 and part.group.algorithm not in ALGORITHMS


def rounding_more(planned: Planned) -> tuple[KernelChoice, ...]:
    """The kernels whose algorithm rounds more than the operators' own."""
    return tuple(
        part
        for decision in planned.decisions
        for part in decision.chosen.parts
        if part.group.algorithm in ROUNDING_MORE
    )


def closer(planned: Planned) -> Planned:
    """The plan without algorithms that round more."""
    return _decided(planned, [without(decision, ROUNDING_MORE) for decision in planned.decisions])


def _decided(planned: Planned, decisions: Sequence[GroupDecision]) -> Planned:
    flat = planned.flat.graph
    checked, notes = _checked(flat, decisions, planned.pricer, planned.checker)
    lowered = lower(planned.flat, chosen_parts(flat, checked))
    return replace(planned, decisions=checked, lowered=lowered, notes=(*planned.notes, *notes))
