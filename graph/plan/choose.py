"""Decide, by price, how much of a group runs in one kernel and by which algorithm.

A group that begins with a convolution, a matrix product, a pooling, a normalisation or a softmax
may run whole, or with only the first of its elementwise operators, the others in a kernel of their
own; what stands before a softmax or a normalisation is computed in its kernel, or apart; a
convolution of 1x1 windows may also run as a matrix product, one of 3x3 windows by Winograd's
algorithms, but not in a strict build: by F(2x2), and where a tolerance was given that its expected
error does not exceed, by F(4x4), which rounds more; one of integers in groups may join some of
these. Every alternative is built and priced; the cheapest total is taken, and of estimates that are
as good as equal the one with the fewest kernels. Groups that only move or combine elements always
run whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from ...tir.dtype import dtype
from ...tir.sizes import SizeError
from ..errors import ModelError
from ..ir.ir import Graph
from ..kernels.algorithms import ALGORITHMS, Algorithm
from ..kernels.collapse import collapsed
from ..kernels.fused_kernel import FusedKernel, fused_kernel_of
from ..kernels.groups import FusionGroup
from ..ops.base import OperatorRole
from .fusion import ordered
from .pricing import PricedKernel, Pricer

# estimates are not better than that: a kernel less stores and reads less, which is sure
NEAR = 1.02


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """One kernel of an alternative. values: what of the graph each operand of `fused` is."""

    group: FusionGroup
    fused: FusedKernel
    values: tuple[str, ...]
    kernel: PricedKernel

    @property
    def title(self) -> str:
        """The group and how it is computed: "Conv+Relu as matmul"."""
        algorithm = ALGORITHMS.get(self.group.algorithm)
        title = self.group.title
        return title if algorithm is None else f"{title} {algorithm.words}"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to compute a group: kernels one after the other."""

    parts: tuple[KernelChoice, ...]

    @property
    def seconds(self) -> float:
        """The sum of the prices."""
        return sum(part.kernel.price.seconds for part in self.parts)

    @property
    def measured(self) -> bool:
        """Whether every price was measured."""
        return all(part.kernel.price.measured is not None for part in self.parts)

    @property
    def title(self) -> str:
        """The kernels in words: "Conv (matmul) | Add+Relu"."""
        return " | ".join(part.title for part in self.parts)

    def __str__(self) -> str:
        refused = [part.kernel.price for part in self.parts if part.kernel.price.refused]
        if refused:
            return f"{self.title}: {refused[0]}"
        estimated = sum(part.kernel.price.estimated for part in self.parts)
        text = f"{self.title}: estimated {estimated * 1e6:.1f} us"
        known = [p.kernel.price.measured for p in self.parts if p.kernel.price.measured is not None]
        if not known:
            return text
        share = "" if self.measured else f" in {len(known)} of {len(self.parts)} kernels"
        return f"{text}, measured {sum(known) * 1e6:.1f} us{share}"


@dataclass(frozen=True, slots=True)
class GroupDecision:
    """The alternatives for one group, and the one that was taken."""

    group: FusionGroup
    alternatives: tuple[Alternative, ...]
    chosen: Alternative


def choose(
    graph: Graph, groups: tuple[FusionGroup, ...], pricer: Pricer
) -> tuple[GroupDecision, ...]:
    """A decision for each group, in order."""
    decisions = []
    for group in groups:
        found = tuple(alternatives(graph, group, pricer))
        decisions.append(GroupDecision(group, found, _cheapest(found)))
    return tuple(decisions)


def without(decision: GroupDecision, algorithms: Collection[str]) -> GroupDecision:
    """The decision, had there not been some algorithms; a group can always be computed directly."""
    left = [
        one
        for one in decision.alternatives
        if all(part.group.algorithm not in algorithms for part in one.parts)
    ]
    return decision if decision.chosen in left else replace(decision, chosen=_cheapest(left))


def _cheapest(found: Sequence[Alternative]) -> Alternative:
    best = min(found, key=lambda one: (one.seconds, len(one.parts)))
    if best.measured:
        return best
    near = [one for one in found if one.seconds <= NEAR * best.seconds]
    return min(near, key=lambda one: (len(one.parts), one.seconds))


def chosen_parts(graph: Graph, decisions: tuple[GroupDecision, ...]) -> tuple[KernelChoice, ...]:
    """The kernels to launch, in an order in which each finds what it reads."""
    parts = {part.group: part for decision in decisions for part in decision.chosen.parts}
    return tuple(parts[group] for group in ordered(graph, tuple(parts)))


def alternatives(graph: Graph, group: FusionGroup, pricer: Pricer) -> Iterator[Alternative]:
    """Every way to compute a group; the whole group, as its operators say, comes first."""
    roles = {node.op.role for node in group.nodes}
    whole = roles <= {OperatorRole.ELEMENTWISE, OperatorRole.MOVEMENT}
    sizes = (len(group.nodes),) if whole else _cuts(graph, group)
    for size in sizes:
        rest = group.nodes[size:]
        tail = (_direct(graph, FusionGroup(rest), pricer),) if rest else ()
        for first in _versions(graph, FusionGroup(group.nodes[:size]), pricer):
            yield Alternative((first, *tail))


def _cuts(graph: Graph, group: FusionGroup) -> tuple[int, ...]:
    """How many nodes the first kernel may have: all, or fewer. Of cuts that store wider elements
    than the group does, as between a product of bytes and its levels, the longest alone is tried.
    """

    def width(size: int) -> int:
        return dtype(graph.types[group.nodes[size - 1].outputs[0]].dtype).bytes

    whole = len(group.nodes)
    sizes = tuple(group.cuts())
    wider = [size for size in sizes if width(size) > width(whole)]
    return tuple(size for size in sizes if size not in wider[1:])


def taken_apart(graph: Graph, group: FusionGroup, pricer: Pricer) -> Alternative:
    """A kernel for each node of a group."""
    alone = (FusionGroup((node,)) for node in group.nodes)
    return Alternative(tuple(next(_versions(graph, one, pricer)) for one in alone))


def _versions(graph: Graph, group: FusionGroup, pricer: Pricer) -> Iterator[KernelChoice]:
    """A group by each algorithm that it may be computed by."""
    fused, values = fused_kernel_of(graph, group)
    found: list[tuple[Algorithm, FusedKernel]] = []
    for algorithm in ALGORITHMS.values():
        other = algorithm.admit(fused, pricer.target, pricer.strict, pricer.tolerance)
        if other is not None:
            found.append((algorithm, other))
    if not any(algorithm.gpu for algorithm, _ in found):
        yield _direct(graph, group, pricer)
    for algorithm, other in found:
        yield _choice(FusionGroup(group.nodes, algorithm.name), other, values, pricer)


def _direct(graph: Graph, group: FusionGroup, pricer: Pricer) -> KernelChoice:
    fused, values = fused_kernel_of(graph, group)
    small = collapsed(fused)
    return _choice(group, small, values, pricer)


def _choice(
    group: FusionGroup, fused: FusedKernel, values: tuple[str, ...], pricer: Pricer
) -> KernelChoice:
    """Raises: ModelError where a kernel of the group needs a number that a run decides."""
    try:
        return KernelChoice(group, fused, values, pricer.kernel(fused))
    except SizeError as error:
        problem = error.message
    raise ModelError(
        f"plan: {group.title} ({group.label}) has no kernel for sizes that a run "
        f"decides: {problem}",
        code="plan-open-size",
        hints=("shapes={...} gives a size that is a number.",),
    )
