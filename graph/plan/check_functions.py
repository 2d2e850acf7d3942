"""Compare the function of each kernel with the NumPy references of the operators that it stands
for, before it is scheduled: fusion, tensor expressions, collapsed axes, Winograd's algorithms.

Both are evaluated in float64 on the same random data, weights included. Where that leaves numbers
that are not finite, such as the root of a negative one, they are once more on positive data.
Integers are drawn from -100 to 100, one in eight from the whole range of its type.

The two may differ by what sums in another order explain, and by what the constants of an expression
do that were rounded to its type (log2(e) in a softmax): measured, as in `compare`, with each of
them off by half of its last place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from ...driver.check.data import Draw, random_array
from ...tir.analysis.specialise import specialise
from ...tir.dtype import FLOAT64, dtype
from ...tir.expr import Const
from ...tir.func import PrimFunc
from ...tir.node import Node
from ...tir.number import integer_range
from ...tir.reference.definitions import definitions
from ...tir.reference.evaluate import evaluate as evaluate_function
from ...tir.reference.evaluate import is_contraction
from ...tir.sizes import closed_shape, shape_in
from ...tir.visit import transform
from ..ir.at_sizes import graph_at, node_at, usual_sizes
from ..ir.ir import Graph, GraphNode, make_graph
from ..kernels.groups import FusionGroup
from ..ops.base import ReferenceWork
from ..reference.compare import ALLOWED_FLOAT64, ROUNDINGS, half_last_place, relative_error
from ..reference.effort import TooLarge, check_limits, check_within, effort
from ..reference.reference import evaluate
from ..types import Array, TensorType
from .choose import KernelChoice

_SMALL = 100
_DYADIC = 4096  # constants below _WHOLE that are a multiple of its inverse are held as they are
_WHOLE = 2.0**24
_ALONE = 32  # steps of a matrix product take as long as one point of what is none
UNCHECKED = "unchecked: too large"


class FunctionChecker:
    """Checks functions, each workload once.

    verdicts: by workload key, "equal", what is wrong, or UNCHECKED.
    """

    def __init__(self, graph: Graph, *, seed: int = 0) -> None:
        """For kernels of groups of `graph`. seed: of the data."""
        self._sizes = usual_sizes(graph)
        self._graph = graph_at(graph, self._sizes)
        self._seed = seed
        self.verdicts: dict[str, str] = {}

    def wrong(self, parts: Sequence[KernelChoice]) -> dict[FusionGroup, str]:
        """The groups whose function does not compute what their operators do, and how far off it
        is.
        """
        for part in parts:
            if part.kernel.key not in self.verdicts:
                self.verdicts[part.kernel.key] = self._verdict(part)
        found = {part.group: self.verdicts[part.kernel.key] for part in parts}
        return {g: verdict for g, verdict in found.items() if verdict not in ("equal", UNCHECKED)}

    def __str__(self) -> str:
        skipped = list(self.verdicts.values()).count(UNCHECKED)
        large = f", {skipped} too large to compare" if skipped else ""
        return (
            f"functions: {len(self.verdicts) - skipped} compared with the NumPy references of "
            f"their operators, in float64{large}"
        )

    def _verdict(self, part: KernelChoice) -> str:
        limits = check_limits()
        try:
            check_within(effort(self._nodes(part), self._graph.types), limits)
            check_within(_effort_of(self._function(part)), limits)
        except TooLarge:
            return UNCHECKED
        rng = np.random.default_rng(self._seed)
        for positive in (False, True):
            differences, finite = self._differences(part, rng, positive)
            for error, allowed in differences:
                if error > allowed:
                    return (
                        f"it differs by {error:.3g} of its largest element; rounding explains "
                        f"{allowed:.3g}"
                    )
            if finite:
                break
        return "equal"

    def _nodes(self, part: KernelChoice) -> list[GraphNode]:
        """What the kernel stands for, at the sizes of the check."""
        return [node_at(node, self._sizes) for node in part.group.nodes]

    def _function(self, part: KernelChoice) -> PrimFunc:
        """The function at the sizes of the check."""
        func, sizes = part.kernel.func, shape_in(part.kernel.sizes, self._sizes)
        return specialise(func, dict(zip(func.dims, sizes, strict=True)))

    def _differences(
        self, part: KernelChoice, rng: np.random.Generator, positive: bool
    ) -> tuple[list[tuple[float, float]], bool]:
        """How far each result of the function is from the operators', and how far it may be, as
        shares of its largest element; whether all elements are finite.
        """
        graph, group = self._graph, part.group
        operands = dict(zip(part.values, part.fused.operands, strict=True))
        scalars = {v: graph.constants[v] for v, operand in operands.items() if operand.scalar}
        drawn = {v: _draw(rng, graph.types[v], positive) for v in operands if v not in scalars}
        types = {value: graph.types[value] for value in drawn}
        alone = make_graph(graph.name, types, group.outputs, self._nodes(part), scalars)
        return differences(alone, self._function(part), drawn)


def differences(
    graph: Graph, func: PrimFunc, drawn: Mapping[str, Array]
) -> tuple[list[tuple[float, float]], bool]:
    """How far each result of a function is from that of a graph which it stands for, and how far it
    may be, as shares of the largest element; whether all elements are finite. drawn: the inputs of
    both, in order.
    """
    arrays = list(drawn.values())
    with np.errstate(all="ignore"):
        wanted = list(evaluate(graph, drawn).values())
        found = _results(func, arrays, len(wanted))
        errors = [
            relative_error(one, other.reshape(one.shape))
            for one, other in zip(wanted, found, strict=True)
        ]
        allowed = [ALLOWED_FLOAT64] * len(errors)
        rounded = [n for n, e in enumerate(errors) if ALLOWED_FLOAT64 < e < np.inf]
        changes = _roundings(func, arrays, len(errors)) if rounded else []
        for n in rounded:
            allowed[n] += ROUNDINGS * changes[n]
        finite = all(bool(np.isfinite(one).all()) for one in wanted)
        return list(zip(errors, allowed, strict=True)), finite


def _effort_of(func: PrimFunc) -> ReferenceWork:
    """What evaluating a function takes beside its tensors; one that counts who is smaller, say,
    takes far more than NumPy's sort.
    """
    steps = 0
    for definition in definitions(func):
        call = definition.extern
        if call is not None:
            steps += _ALONE * sum(buffer.size for buffer in (*call.inputs, *call.outputs))
            continue
        points = math.prod(axis.extent for axis in (*definition.axes, *definition.reduced))
        steps += points * (1 if is_contraction(definition) else _ALONE)
    return ReferenceWork(0, steps)


def _results(func: PrimFunc, arrays: Sequence[Array], count: int) -> list[Array]:
    """The first outputs of a function in float64, of arrays in the order of its parameters; behind
    them stand checks of indices.
    """
    given = {
        parameter.name: array.reshape(parameter.buffer.shape)
        for parameter, array in zip(func.parameters, arrays, strict=False)
    }
    found = evaluate_function(func, given, FLOAT64)
    return [found[buffer.name] for buffer in func.outputs[:count]]


def _roundings(func: PrimFunc, arrays: Sequence[Array], count: int) -> list[float]:
    """By how much each result changes when each constant of the body is half of a last place up."""

    def off(node: Node) -> Node:
        match node:
            case Const(float(value), kind) if kind.is_float and _is_rounded(value):
                return Const(value * (1 + half_last_place(kind.numpy)), FLOAT64)
        return node

    loose = func.with_body(transform(func.body, off))
    pairs = zip(_results(func, arrays, count), _results(loose, arrays, count), strict=True)
    return [relative_error(one, other) for one, other in pairs]


def _is_rounded(value: float) -> bool:
    """Whether a constant may be what another number was rounded to."""
    return bool((value * _DYADIC) % 1) or abs(value) >= _WHOLE


def _draw(rng: np.random.Generator, type_: TensorType, positive: bool) -> Array:
    """Random elements of a type, as that type holds them."""
    kind, shape = dtype(type_.dtype), closed_shape(type_.shape)
    if kind.is_float:
        return random_array(rng, kind, shape, Draw.POSITIVE if positive else Draw.NORMAL)
    low, high = integer_range(kind)
    least = max(low, 0 if positive else -_SMALL)
    array = rng.integers(least, min(high, _SMALL), shape, endpoint=True)
    if not positive and not kind.is_bool:
        held = kind.numpy if kind.bits >= 8 else np.dtype(np.int64)
        wide = rng.integers(low, high, shape, held.type, endpoint=True)
        array = np.where(rng.integers(0, 8, shape) == 0, wide, array)
    return array.astype(kind.numpy)
