"""Operators on bfloat16: NumPy computes them in float32 and rounds each output once."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.graph.ops.base import OperatorRole
from tilewright.graph.ops.bits import BitCast
from tilewright.graph.ops.convolution import ExactConv
from tilewright.graph.ops.kept_boxes import KeptBoxes
from tilewright.graph.ops.rounded_blocks import RoundBlocks, RoundedBlockMatMul
from tilewright.graph.ops.trees import Forest
from tilewright.graph.reference.reference import apply
from tilewright.graph.types import Array

from .operators import Sample, samples

OF_ITS_OWN_TYPES = (
    BitCast,
    ExactConv,
    Forest,
    KeptBoxes,
    RoundBlocks,
    RoundedBlockMatMul,
)  # which take no bfloat16
BRAIN = np.dtype(ml_dtypes.bfloat16)


def in_bfloat16(array: Array) -> Array:
    return array.astype(BRAIN) if array.dtype == np.float32 else array


def chosen() -> list[Sample]:
    """Samples that read float32, each in bfloat16."""
    return [
        Sample(sample.op, tuple(map(in_bfloat16, sample.arrays)))
        for sample in samples()
        if any(array.dtype == np.float32 for array in sample.arrays)
        and not isinstance(sample.op, OF_ITS_OWN_TYPES)
    ]


@pytest.mark.parametrize("sample", chosen(), ids=str)
def test_outputs_are_those_of_float32_rounded(sample: Sample) -> None:
    wide = [a.astype(np.float32) if a.dtype == BRAIN else a for a in sample.arrays]
    results = apply(sample.op, *sample.arrays)
    pairs = zip(results, apply(sample.op, *wide), sample.op.infer(sample.types), strict=True)
    for got, exact, type_ in pairs:
        assert got.dtype.name == type_.dtype
        assert got.shape == type_.shape
        bits = f"u{got.dtype.itemsize}"
        np.testing.assert_array_equal(got.view(bits), exact.astype(got.dtype).view(bits))


def test_what_moves_elements_keeps_their_bits() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16).view(BRAIN)
    for sample in samples():
        if sample.op.role is OperatorRole.MOVEMENT and sample.arrays:
            first, *rest = sample.arrays
            if first.dtype == np.float32 and not rest:
                (got,) = apply(sample.op, np.resize(bits, first.shape))
                assert got.dtype == BRAIN
                assert np.isin(
                    got.view(np.uint16), np.resize(bits, first.shape).view(np.uint16)
                ).all()
