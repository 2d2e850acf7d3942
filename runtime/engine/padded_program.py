"""The code of a variant that serves runs of fewer rows than it has: they are copied into arrays of
its own, rows are added, and of what it writes the first rows are copied out.

What the added rows hold changes no bit of the others, which was proved when the variant was made
(tir/program/inert_padding.py). They are copies of the last row, so that a check of indices fails
just where it fails for the rows of the run, and no number is stranger than those that were given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from ...codegen.artifact import Parameter
from ...tir.dim import Dim
from ...tir.sizes import AnySize, Size, closed_shape
from ..arrays import ALIGNMENT, Array
from .context import ProfiledFrame, ProgramCode, RunFrame, SizedFrame
from .size_counts import SizeCounts

if TYPE_CHECKING:
    from ..model.profile import Profile


@dataclass(frozen=True, slots=True)
class PaddedArray:
    """An input or an output of a variant. inner: how many elements in a series are of one row; 0
    where it has none, so that the caller's array serves.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    inner: int

    @property
    def bytes(self) -> int:
        """What it takes of the memory for padded arrays."""
        size = math.prod(self.shape) * self.dtype.itemsize if self.inner else 0
        return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """Where the rows lie in the arrays of a variant, which has `count` of them."""

    count: int
    inputs: tuple[PaddedArray, ...]
    outputs: tuple[PaddedArray, ...]

    @property
    def bytes(self) -> int:
        """The memory for padded arrays."""
        return sum(one.bytes for one in (*self.inputs, *self.outputs))


def padded_array(
    opened: Sequence[AnySize], closed: Parameter, dim: Dim, count: int
) -> PaddedArray | None:
    """An input or an output of a variant beside its shape in the open model; None where the rows of
    a dim are no part of one axis.
    """
    shape = closed_shape(closed.shape)
    axes = [n for n, one in enumerate(opened) if isinstance(one, Size) and dim in one.dims]
    if len(shape) != len(opened) or len(axes) > 1:
        return None
    if not axes:
        return PaddedArray(shape, closed.dtype.numpy, 0)
    times, left = divmod(shape[axes[0]], count)
    if left:
        return None
    return PaddedArray(shape, closed.dtype.numpy, times * math.prod(shape[axes[0] + 1 :]))


class PaddedProgram:
    """The code of a variant for runs of fewer rows."""

    def __init__(self, code: ProgramCode, rows: PaddedRows, counts: SizeCounts) -> None:
        self.code = code
        self.rows = rows
        self.counts = counts
        self.checks = code.checks
        self.interface = code.interface

    def frame_in(self, room: Array, threads: int) -> PaddedFrame:
        """Memory for runs on so many threads. room: bytes for the padded arrays."""
        return PaddedFrame(self, self.code.frame(threads), room)


class PaddedFrame:
    """The memory of one run at a time. It copies when it runs: arrays that stay bound may change in
    between.
    """

    def __init__(self, program: PaddedProgram, frame: RunFrame, room: Array) -> None:
        self.inner = frame
        self._rows = program.rows
        self._counts = program.counts
        arrays, at = [], 0
        for one in (*self._rows.inputs, *self._rows.outputs):
            size = math.prod(one.shape) * one.dtype.itemsize if one.inner else 0
            arrays.append(room[at : at + size].view(one.dtype))
            at += one.bytes
        self._inputs = arrays[: len(self._rows.inputs)]
        self._outputs = arrays[len(self._rows.inputs) :]
        self._in: list[tuple[Array, Array]] = []  # what is copied to what
        self._out: list[tuple[Array, Array]] = []

    def point(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Let the next runs use these arrays, which the caller keeps alive."""
        rows, total = self._rows, self._rows.count
        given, made, kept = list(inputs), list(outputs), 0
        self._in, self._out = [], []
        for n, (one, array) in enumerate(zip(rows.inputs, inputs, strict=True)):
            if one.inner:
                given[n] = self._inputs[n].reshape(one.shape)
                padded = self._inputs[n].reshape(-1, total, one.inner)
                source = array.reshape(len(padded), -1, one.inner)
                kept = source.shape[1]
                self._in.append((source, padded[:, :kept]))
                self._in.append((source[:, -1:], padded[:, kept:]))
        for n, (one, array) in enumerate(zip(rows.outputs, outputs, strict=True)):
            if one.inner:
                made[n] = self._outputs[n].reshape(one.shape)
                padded = self._outputs[n].reshape(-1, total, one.inner)
                self._out.append((padded[:, :kept], array.reshape(len(padded), -1, one.inner)))
        self.inner.point(given, made)
        self._counts.padded.append((kept, total))

    def fill(self) -> None:
        """Copy the inputs, and add rows."""
        for source, target in self._in:
            target[...] = source

    def run(self, threads: int) -> int:
        """Run; how many threads took part."""
        self.fill()
        try:
            return self.inner.run(threads)
        finally:  # a check of indices fails after a run
            for source, target in self._out:
                target[...] = source

    @property
    def sizes(self) -> Mapping[Dim, int]:
        """The sizes of the last run of the variant."""
        return cast("SizedFrame", self.inner).sizes

    def profile(self, threads: int, rounds: int) -> Profile:
        """Time each launch of the variant alone, and the whole run, without the copies."""
        self.fill()
        return cast("ProfiledFrame", self.inner).profile(threads, rounds)
