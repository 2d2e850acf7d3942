"""The passes that every model goes through, in order, and the runner that checks each of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

import numpy as np

from ...tir.errors import InternalError, TilewrightError
from ...tir.target.target import Target, covers
from ..errors import OperatorError
from ..extensions.identity import pass_identity
from ..extensions.origin import is_ours
from ..ir.at_sizes import graph_at, least_sizes, usual_sizes
from ..ir.ir import Graph, GraphNode, RegionOperator, rebuilt
from ..ir.verify import verify
from ..ops.base import ReferenceWork
from ..reference.compare import GraphDifference, compare
from ..reference.effort import TooLarge, check_limits
from .attention_recognition import AttentionRecognition
from .batch_norm_folding import BatchNormFolding
from .block_products import BlockProducts
from .common_subexpressions import CommonSubexpressions
from .constant_folding import ConstantFolding
from .control_flow import ControlFlow
from .dead_code import DeadCode
from .fast_norm_recognition import FastNormRecognition
from .gelu_recognition import GeluRecognition
from .grid_block_products import GridBlockProducts
from .head_merging import HeadMerging
from .identity_removal import IdentityRemoval
from .int16_products import Int16Products
from .integer_products import IntegerProducts
from .kept_axes import KeptAxes
from .layer_norm_recognition import LayerNormRecognition
from .layout import ChannelsLast
from .level_clamps import LevelClamps
from .level_motion import LevelMotion
from .level_quotients import LevelQuotients
from .level_rows import LevelRows
from .level_transposes import LevelTransposes
from .max_pool_splitting import MaxPoolSplitting
from .mean_recognition import MeanRecognition
from .pad_folding import PadFolding
from .product_turning import ProductTurning
from .region_inputs import RegionInputs
from .reshape_motion import ReshapeMotion
from .row_product_recognition import RowProductRecognition
from .shared_heads import SharedHeads
from .signed_products import SignedProducts
from .softmax_recognition import SoftmaxRecognition
from .transposed_phases import TransposedPhases
from .widened_products import WidenedProducts
from .word_products import WordProducts

Verdict = Literal["unchanged", "equal", "unchecked", "undone", "left out"]


class GraphPass(Protocol):
    """A frozen value that turns a Graph into an equal one, the same object if nothing is to do.

    keeps_rounding: whether what it makes rounds where the operators of the model do, and sums in
    their order; a strict build runs no other pass. One may have `needs`, ("avx512+vnni", "avx2"):
    a target must have one of these, or be of a kind that is named, as "cuda" is, for what it makes
    to be faster; `idle`, of these with features with which something else is; and `concerns`, which
    says of a graph whether it has what the pass is about, without which it is neither run nor told
    of.
    """

    keeps_rounding: ClassVar[bool]

    def __call__(self, graph: Graph) -> Graph: ...


PIPELINE: tuple[GraphPass, ...] = (
    # first, so that the passes below see producers and consumers and no copies between them
    IdentityRemoval(),
    # as long as levels are spelled as the model has them
    LevelMotion(),
    # needs weights as bytes, before they are folded to the numbers that they stand for
    IntegerProducts(),
    Int16Products(),
    # bytes are multiplied as the processor does it; what a run packs first
    WordProducts("int8", ("avx512+vnni", "avx2+vnni", "neon+i8mm")),
    WordProducts("uint8", ("neon+dotprod",), idle=("neon+i8mm",)),
    WordProducts("int16", ("avx2",), idle=("avx2+vnni",)),
    WidenedProducts(),
    SignedProducts(),
    # likewise; what multiplies floats
    BlockProducts(),
    GridBlockProducts(),
    # likewise; rows of tables
    LevelRows(),
    # constants in full before anybody looks for them; splats stay splats
    ConstantFolding(),
    # what folding made a constant may change nothing: a mask of zeros
    IdentityRemoval(),
    # needs constants; what it takes out of branches and loops goes through all that follows
    ControlFlow(),
    # apart from what folds constants, whose roundings the comparison then sees
    RegionInputs(),
    # needs constant weights; before the layout moves channels away from axis 1
    BatchNormFolding(),
    # before the layout pass, which would move axes to and fro around a Pad
    PadFolding(),
    # the convolution pads what it reads; before anything is moved around it
    TransposedPhases(),
    # equal weights and shared subtrees, before the layout pass permutes each of them
    CommonSubexpressions(),
    # equal parts are one node; before the layout pass may put moves between them
    KeptAxes(),
    # reductions keep their axes now, as patterns have them
    MeanRecognition(),
    SoftmaxRecognition(),
    LayerNormRecognition(),
    # after what keeps rounding
    FastNormRecognition(),
    GeluRecognition(),
    # products whose rows are those of the result, as an attention has them
    ProductTurning(),
    # likewise: the moves of heads that it leaves out are those of the model
    AttentionRecognition(),
    # needs Attention; before DeadCode, which takes the copies of keys and values
    SharedHeads(),
    # what folding left without readers must not be moved
    DeadCode(),
    # queries, keys and values of one tensor, now that only an attention reads them
    HeadMerging(),
    # needs constants; before ReshapeMotion, so that Reshapes follow as well
    LevelTransposes(),
    # spatial operators to NHWC; permutes weights
    ChannelsLast(),
    # needs the layout: rows of pixels are gathered, channels are not
    MaxPoolSplitting(),
    # elementwise operators join what computes their operands; after all that looks for a product,
    # its bias and a Reshape in the model's order, and after the layout pass, which makes Reshapes
    ReshapeMotion(),
    # after all that looks for a product by its name
    RowProductRecognition(),
    # both join, split and permute: what is now next to its like is merged
    IdentityRemoval(),
    CommonSubexpressions(),
    # after all that looks for levels as they are spelled
    LevelQuotients(),
    # after that, which looks for the bytes of levels
    LevelClamps(),
    # last: weights in their old layout go
    DeadCode(),
)


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass did.

    verdict: "unchanged"; "equal" when old and new graph agree numerically; "unchecked" when that
    was not asked for, or is too large: then `problem` says so; "undone" when they do not or the
    result is no valid graph: then `problem` says why and the old graph was kept; "left out" where a
    build does without it, as `problem` says. origin: the package that brings it, "" of ours.
    not_kept: why the engine cache keeps no engine that it had a part in.
    operators: (name, count before, count after) of each operator whose count changed. seconds: the
    pass and its checks; check_seconds: of these, what comparing took.
    """

    name: str
    verdict: Verdict
    operators: tuple[tuple[str, int, int], ...] = ()
    seconds: float = 0.0
    comparison: GraphDifference | None = None
    problem: str = ""
    check_seconds: float = 0.0
    origin: str = ""
    not_kept: str = ""

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {before} -> {after}" for name, before, after in self.operators)
        details = [text for text in (counts, self.problem) if text]
        name = f"{self.name} of {self.origin}" if self.origin else self.name
        return f"{name}: {'; '.join([self.verdict, *details])}"


def optimise(
    graph: Graph,
    passes: tuple[GraphPass, ...] = PIPELINE,
    *,
    check: bool = True,
    limits: ReferenceWork | None = None,
    seed: int = 0,
) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run `passes` in order and report each.

    check: compare the graph before and after each pass on random numbers (drawn with `seed`) where
    they differ, unless that would take more than `limits`, by default those of this machine; what
    passes of others made is always compared.
    A pass whose result is invalid or differs is undone and the rest go on. Raises: InternalError
    when `graph` is invalid; OperatorError where a pass of others raises, or gives no graph.
    """
    verify(graph)
    reports = []
    most = check_limits() if limits is None else limits
    for one in passes:
        if not getattr(one, "concerns", _anything)(graph):
            continue
        ours = is_ours(type(one))
        graph, report = _run(one, graph, most if check or not ours else None, seed)
        reports.append(report if ours else _of_others(report, one))
    regions = _Regions(passes, most if check else None, seed)
    graph = regions(graph)
    return graph, (*reports, *regions.reports)


class _Regions:
    """Runs passes on the regions of a graph, each as a graph of its own."""

    def __init__(
        self, passes: tuple[GraphPass, ...], limits: ReferenceWork | None, seed: int
    ) -> None:
        self._passes = passes
        self._limits = limits
        self._seed = seed
        self.reports: list[PassReport] = []

    def __call__(self, graph: Graph) -> Graph:
        nodes = [self._node(node) for node in graph.nodes]
        return rebuilt(graph, nodes, graph.constants)

    def _node(self, node: GraphNode) -> GraphNode:
        op = node.op
        if not isinstance(op, RegionOperator):
            return node
        found = []
        for name, region in zip(op.region_names, op.regions, strict=True):
            better, reports = optimise(
                region,
                self._passes,
                check=self._limits is not None,
                limits=self._limits,
                seed=self._seed,
            )
            found.append(better)
            where = f"{name} of '{node.name or node.outputs[0]}'"
            self.reports += [
                replace(report, name=f"{report.name} in {where}")
                for report in reports
                if report.verdict != "unchanged"
            ]
        if all(one is other for one, other in zip(found, op.regions, strict=True)):
            return node
        return replace(node, op=op.with_regions(tuple(found)))


def _run(
    one: GraphPass, graph: Graph, limits: ReferenceWork | None, seed: int
) -> tuple[Graph, PassReport]:
    """Run one pass; limits: what checking it may take, None where it is not checked."""
    name, start = pass_name(one), time.perf_counter()
    with np.errstate(all="ignore"):  # what has no value is NaN, as in the model; nobody is warned
        after = one(graph) if is_ours(type(one)) else _result_of_others(one, graph)
    if after is graph:
        return graph, PassReport(name, "unchanged", seconds=time.perf_counter() - start)
    operators = _changed_counts(graph, after)
    comparison = None
    problem = _invalid(graph, after)
    verdict: Verdict = "undone" if problem else "unchecked"
    began = time.perf_counter()
    if limits is not None and not problem:
        try:
            comparison = _compared(graph, after, seed, limits)
        except TooLarge as reason:
            problem = f"too large to compare: it {reason}"
        else:
            verdict = "equal" if comparison.equal else "undone"
            problem = "" if comparison.equal else _difference(comparison)
    now = time.perf_counter()
    took, checking = now - start, now - began
    report = PassReport(name, verdict, operators, took, comparison, problem, checking)
    return graph if verdict == "undone" else after, report


def _of_others(report: PassReport, one: GraphPass) -> PassReport:
    """The report of a pass of others, which says where it comes from."""
    found = pass_identity(one)
    return replace(report, origin=found.origin, not_kept=found.unknown)


def _result_of_others(one: GraphPass, graph: Graph) -> Graph:
    """What a pass of others makes. Raises: OperatorError."""
    title = f"{pass_name(one)} of {pass_identity(one).origin}"
    try:
        after = one(graph)
    except Exception as error:
        text = error.message if isinstance(error, TilewrightError) else str(error)
        raise OperatorError(
            f"passes: {title} raised {type(error).__name__}: {text.rstrip('.')}.",
            code="pass-raised",
            hints=("passes=tw.PASSES compiles without it.",),
        ) from error
    if not isinstance(after, Graph):
        raise OperatorError(
            f"passes: {title} gives a {type(after).__name__}; expected a Graph.", code="pass-result"
        )
    return after


def pass_name(one: GraphPass) -> str:
    """What reports call a pass: its class, or the function that it is."""
    return str(getattr(one, "__name__", type(one).__name__))


def _anything(graph: Graph) -> bool:
    """What a pass is about that does not say."""
    return True


def run_by(
    passes: Iterable[GraphPass], target: Target, *, strict: bool = False
) -> tuple[GraphPass, ...]:
    """The passes that a build runs, in order."""
    return tuple(one for one in passes if not _why_left_out(one, target, strict))


def left_out(
    passes: Iterable[GraphPass], target: Target, *, strict: bool = False
) -> tuple[PassReport, ...]:
    """Reports of the passes that a build does without."""
    reasons = ((one, _why_left_out(one, target, strict)) for one in passes)
    return tuple(
        _of_others(PassReport(pass_name(one), "left out", problem=why), one)
        for one, why in reasons
        if why
    )


def _why_left_out(one: GraphPass, target: Target, strict: bool) -> str:
    needs: tuple[str, ...] = getattr(one, "needs", ())
    if strict and not one.keeps_rounding:
        return "it may round elsewhere than the model"
    idle: tuple[str, ...] = getattr(one, "idle", ())
    if needs and not _has_one(target, needs):
        return f"it pays on {' and '.join(needs)}, and the target is '{target}'"
    if _has_one(target, idle):
        return f"it does not pay on {' and '.join(idle)}, and the target is '{target}'"
    return ""


def _has_one(target: Target, names: Iterable[str]) -> bool:
    """Whether a target has one of some instruction sets with features, or is of such a kind."""
    return any(covers((target.instructions, target.kind), name) for name in names)


def _compared(before: Graph, after: Graph, seed: int, limits: ReferenceWork) -> GraphDifference:
    """The difference at the sizes that are usual, and where all are as small as can be."""
    usual, least = usual_sizes(before), least_sizes(before)
    found = [
        compare(graph_at(before, sizes), graph_at(after, sizes), seed=seed, limits=limits)
        for sizes in ((usual, least) if least != usual else (usual,))
    ]
    return max(found, key=lambda one: (not one.equal, one.error))


def _difference(comparison: GraphDifference) -> str:
    return (
        f"'{comparison.worst}' differs by {comparison.error:.3g} of its largest element; "
        f"rounding explains {comparison.allowed:.3g}"
    )


def _invalid(before: Graph, after: Graph) -> str:
    try:
        verify(after)
    except (InternalError, OperatorError) as error:
        return error.message
    for what, old, new in (
        ("inputs", before.inputs, after.inputs),
        ("outputs", before.outputs, after.outputs),
    ):
        if old != new:
            return f"{what} changed from {', '.join(old)} to {', '.join(new)}"
    return ""


def _changed_counts(before: Graph, after: Graph) -> tuple[tuple[str, int, int], ...]:
    old, new = (Counter(node.op.title for node in graph.nodes) for graph in (before, after))
    return tuple(
        (name, old[name], new[name]) for name in sorted({*old, *new}) if old[name] != new[name]
    )
