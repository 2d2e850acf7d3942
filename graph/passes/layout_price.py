"""Whether a spatial operator at the rim of a network keeps its channels first, by price.

With channels last, vectors run along channels, and what lies as in the model is transposed before
and after. With channels first they run along the pixels of a row, which suits pools, depthwise
convolutions, and those with few channels on either side. All is counted in elements that a
Transpose moves, and for the largest sizes.

Measured on a Xeon with AVX-512 in float32, one thread: a Transpose moves 2 elements a nanosecond;
sums over channels last do 50 to 60 multiply-adds, dense ones with few channels and channels first
30 to 70, depthwise ones 25 to 33, windows that step along a row, which are gathers, 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...tir.sizes import AnySize, closed_shape, largest
from ..ir.ir import Graph, GraphNode
from ..ops.base import OperatorRole
from ..ops.convolution import Conv
from ..ops.pooling import AveragePool, MaxPool, SumPool
from ..ops.spatial import is_spatial
from .max_pool_splitting import GATHER, pool_steps

STEPS_PER_MOVE = 24.0  # along full vectors of channels
DENSE, OTHER = 1.7, 2.0  # times as long, along pixels
LANES = 16  # of the longest vectors: rows and channels that are shorter leave some idle
FEW = 3  # channels: more make a product, which wants vectors of them

_PASSED = (OperatorRole.ELEMENTWISE, OperatorRole.MOVEMENT)  # what a layout is handed on through

Readers = Mapping[str, list[GraphNode]]


@dataclass(frozen=True, slots=True)
class _Steps:
    """How many steps an operator takes with channels last and with channels first; one is what a
    full vector along channels does in a lane.
    """

    last: float
    first: float


def keeps_first(graph: Graph, node: GraphNode, readers: Readers, *, moved: bool) -> bool:
    """Whether a spatial operator that can be computed with channels first is cheaper that way.

    moved: its data is there with channels last, too.
    """
    steps = _steps(graph, node)
    if steps is None:
        return False
    data, result = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    wanted = _is_wanted_last(graph, readers[node.outputs[0]], readers)
    before = 0 if moved or data.shape[1] == 1 else largest(data.elements)
    after = 0 if result.shape[1] == 1 else largest(result.elements)
    last = steps.last * _idle(result.shape[1]) / STEPS_PER_MOVE + before
    first = steps.first * _idle(result.shape[-1]) / STEPS_PER_MOVE
    return first + after < last if wanted else first < last + after


def goes_last(graph: Graph, node: GraphNode) -> bool:
    """Whether an operator has channels and is not computed with channels first."""
    return is_spatial(node.op) and _steps(graph, node) is None


def _steps(graph: Graph, node: GraphNode) -> _Steps | None:
    """The steps of an operator that may be computed either way; None for one that goes last."""
    data, result = graph.types[node.inputs[0]], graph.types[node.outputs[0]]
    many = float(largest(result.elements))
    match node.op:
        case MaxPool() as pool:
            last = pool_steps(replace(pool, layout="NHWC"))
            return _Steps(many * last, many * pool_steps(pool) * OTHER)
        case AveragePool() | SumPool() as pool:
            many *= math.prod(pool.kernel)
            return _Steps(many, many * OTHER * _gathered(pool.strides))
        case Conv(groups=groups) as conv if data.dtype in ("float32", "float64"):
            outputs, inputs, *kernel = closed_shape(graph.types[node.inputs[1]].shape)
            few = inputs <= FEW or outputs <= FEW if groups == 1 else inputs == 1
            if few and node.inputs[1] in graph.constants:
                many *= inputs * math.prod(kernel)
                slower = DENSE if groups == 1 else OTHER
                return _Steps(many, many * slower * _gathered(conv.strides))
    return None


def _gathered(strides: tuple[int, ...]) -> float:
    """How many times as long a step takes that moves along a row of pixels so."""
    return GATHER if strides[-1] > 1 else 1.0


def _idle(size: AnySize) -> float:
    """How many times as many lanes as elements an axis takes."""
    count = max(1, largest(size))
    return -(-count // LANES) * LANES / count


def _is_wanted_last(graph: Graph, found: list[GraphNode], readers: Readers) -> bool:
    """Whether a reader, perhaps behind others that hand it on, will have its channels last."""
    waiting, seen = list(found), set[str]()
    while waiting:
        node = waiting.pop()
        if goes_last(graph, node):
            return True
        if node.op.role in _PASSED and node.outputs[0] not in seen:
            seen.add(node.outputs[0])
            waiting += readers[node.outputs[0]]
    return False
