"""Compute transposed convolutions phase by phase, without the zeros between their pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...tir.sizes import AnySize
from ..ir.build import GraphBuilder
from ..ir.ir import Graph, GraphNode
from ..ops.convolution import Conv
from ..ops.movement import Concat, Reshape, Transpose
from ..ops.slicing import Slice, Spread
from ..types import Array, array_of, owned
from .exchange import exchanged, only_reader


def _has_spread(graph: Graph) -> bool:
    return any(isinstance(node.op, Spread) for node in graph.nodes)


@dataclass(frozen=True, slots=True)
class TransposedPhases:
    """Replace a convolution of pixels that stand apart in zeros by one of the pixels alone, with a
    channel for each phase, whose results are then laid side by side.

    Conv[pads](Spread[steps s](x), w)   ->   Slice(Reshape(Transpose(Reshape(
        Conv(x, w[r], w[r + s], ... for each phase r)))))

    Results that lie s apart along an axis read pixels through the same part of the weights, a phase
    (Shi et al., Is the deconvolution layer the same as a convolutional layer?, 2016). Phases with
    different numbers of weights are convolutions of their own, since weights of 0 would spread an
    infinity. Each sum has the terms that are no product by an inserted zero, in their order.
    Requires: layout NCHW, constant weights and bias, one step of weights and no fewer of them than
    steps along an axis with steps; several inputs in each group (depthwise ones stay).
    """

    keeps_rounding: ClassVar[bool] = True
    concerns = staticmethod(_has_spread)

    def __call__(self, graph: Graph) -> Graph:
        readers = graph.consumers
        found = dict[str, _Spaced]()
        for node in graph.nodes:
            reader = only_reader(graph, node.outputs[0], readers)
            if isinstance(node.op, Spread) and reader is not None:
                spaced = _Spaced(graph, node, reader)
                if spaced.has_phases():
                    found[reader.outputs[0]] = spaced
        gone = {spaced.spread.outputs[0] for spaced in found.values()}
        return exchanged(graph, found, gone, _write) if found else graph


@dataclass(frozen=True, slots=True)
class _AxisPhases:
    """One spatial axis: the step, weights and dilation; the first result is result `skipped` of
    phase 0; before, after: pads of the pixels for phases with all their weights.
    """

    step: int
    taps: int
    dilation: int
    skipped: int
    before: int
    after: int

    @staticmethod
    def of(step: int, taps: int, dilation: int, before: int, after: int) -> _AxisPhases:
        """Of a convolution with these pads around pixels `step` apart."""
        if step == 1:
            return _AxisPhases(1, taps, dilation, 0, before, after)
        whole, skipped = divmod(taps - 1 - before, step)
        return _AxisPhases(step, taps, 1, skipped, -(-taps // step) - 1 - whole, after // step)

    @property
    def parts(self) -> tuple[tuple[range, int], ...]:
        """Phases with as many weights each, and how many."""
        many, rest = divmod(self.taps, self.step)
        split = ((range(rest), many + 1), (range(rest, self.step), many))
        return tuple((phases, count) for phases, count in split if phases)

    def pad(self, count: int) -> int:
        """Pads before the pixels for phases of `count` weights."""
        return self.before - (-(-self.taps // self.step) - count) * self.dilation


@dataclass(frozen=True, slots=True)
class _Spaced:
    """A Spread and what alone reads it."""

    graph: Graph
    spread: GraphNode
    reader: GraphNode

    def has_phases(self) -> bool:
        """Whether it is a convolution that the pass is for."""
        op, spread = self.reader.op, self.spread.op
        if not isinstance(op, Conv) or not isinstance(spread, Spread):
            return False
        data, *others = self.reader.inputs
        known = data == self.spread.outputs[0] and all(v in self.graph.constants for v in others)
        if not known or op.layout != "NCHW" or op.data is not None or set(op.strides) != {1}:
            return False
        weights = self.graph.types[others[0]].shape
        if spread.steps[:2] != (1, 1) or max(spread.steps) == 1 or weights[1] == 1 < op.groups:
            return False
        taps = zip(spread.steps[2:], op.dilations, self.kernel, strict=True)
        if any(step > 1 and (dilation > 1 or count < step) for step, dilation, count in taps):
            return False
        return all(axis.pad(count) >= 0 for axis in self.axes for _, count in axis.parts)

    @property
    def conv(self) -> Conv:
        """The convolution."""
        assert isinstance(self.reader.op, Conv)
        return self.reader.op

    @property
    def kernel(self) -> tuple[int, ...]:
        """The weights along each spatial axis."""
        return self.weights.shape[2:]

    @property
    def weights(self) -> Array:
        """The weights, [outputs, inputs per group, kernel...]."""
        return array_of(self.graph.constants[self.reader.inputs[1]])

    @property
    def axes(self) -> tuple[_AxisPhases, ...]:
        """The spatial axes."""
        assert isinstance(self.spread.op, Spread)
        n, pads = len(self.kernel), self.conv.pads
        found = zip(
            self.spread.op.steps[2:],
            self.kernel,
            self.conv.dilations,
            pads[:n],
            pads[n:],
            strict=True,
        )
        return tuple(itertools.starmap(_AxisPhases.of, found))


def _write(builder: GraphBuilder, spaced: _Spaced) -> None:
    """Convolutions of all phases, joined and laid side by side, under the reader's name."""
    axes, name = spaced.axes, spaced.reader.name
    made = _joined(builder, spaced, axes, ())
    batch, groups, *phases, columns = builder.types[made].shape[: 3 + len(axes)]
    sizes = builder.types[made].shape[3 + len(axes) :]
    n = len(axes)
    sides = [axis for d in range(n) for axis in (3 + n + d, 2 + d)]
    turned = builder.add(Transpose((0, 1, 2 + n, *sides)), made, name=name)
    whole = [size * phase for size, phase in zip(sizes, phases, strict=True)]
    outputs = groups * columns
    joined = builder.add(Reshape((batch, outputs, *whole)), turned, name=name)
    (result,) = spaced.reader.outputs
    wanted = spaced.graph.types[result].shape
    starts = (0, 0, *(axis.skipped for axis in axes))
    builder.add(Slice(starts, wanted, (1,) * (n + 2)), joined, output=result, name=name)


def _joined(
    builder: GraphBuilder,
    spaced: _Spaced,
    axes: Sequence[_AxisPhases],
    chosen: tuple[tuple[range, int], ...],
) -> str:
    """[batch, groups, phases..., outputs per group, places...] of the phases that are `chosen` of
    the first axes and of all phases of the others.
    """
    depth = len(chosen)
    if depth == len(axes):
        return _convolved(builder, spaced, axes, chosen)
    parts = [_joined(builder, spaced, axes, (*chosen, part)) for part in axes[depth].parts]
    name = spaced.reader.name
    return parts[0] if len(parts) == 1 else builder.add(Concat(2 + depth), *parts, name=name)


def _convolved(
    builder: GraphBuilder,
    spaced: _Spaced,
    axes: Sequence[_AxisPhases],
    chosen: Sequence[tuple[range, int]],
) -> str:
    """The phases that are chosen of each axis, as one convolution."""
    conv, (_, weights, *bias), name = spaced.conv, spaced.reader.inputs, spaced.reader.name
    groups, many = conv.groups, math.prod(len(phases) for phases, _ in chosen)
    own = builder.constant(builder.fresh(f"{weights}.phases"), _phases(spaced, axes, chosen))
    inputs = [spaced.spread.inputs[0], own]
    for value in bias:
        numbers = array_of(spaced.graph.constants[value]).reshape(groups, 1, -1)
        repeated = owned(np.repeat(numbers, many, axis=1).reshape(-1))
        inputs.append(builder.constant(builder.fresh(f"{value}.phases"), repeated))
    before = [axis.pad(count) for axis, (_, count) in zip(axes, chosen, strict=True)]
    pads = (*before, *(axis.after for axis in axes))
    op = Conv(conv.strides, pads, tuple(axis.dilation for axis in axes), groups)
    made = builder.add(op, *inputs, name=name)
    batch, outputs, *sizes = builder.types[made].shape
    columns: AnySize = outputs // (groups * many)
    shape = (batch, groups, *(len(phases) for phases, _ in chosen), columns, *sizes)
    return builder.add(Reshape(shape), made, name=name)


def _phases(
    spaced: _Spaced, axes: Sequence[_AxisPhases], chosen: Sequence[tuple[range, int]]
) -> Array:
    """The weights that the results of each phase are sums with, as outputs of their own."""
    n, found = len(axes), spaced.weights
    _, inputs, *_ = found.shape
    for d, (axis, (phases, count)) in enumerate(zip(axes, chosen, strict=True)):
        # the last of the mirrored weights is that of phase 0 and of the newest pixel
        last = axis.taps - 1
        taken = [[last - r - axis.step * (count - 1 - j) for j in range(count)] for r in phases]
        found = np.take(found, np.array(taken), axis=2 + 2 * d)
    groups = spaced.conv.groups
    found = found.reshape(groups, -1, *found.shape[1:])
    order = (0, *range(3, 3 + 2 * n, 2), 1, 2, *range(4, 4 + 2 * n, 2))
    counts = [count for _, count in chosen]
    return owned(np.ascontiguousarray(found.transpose(order)).reshape(-1, inputs, *counts))
