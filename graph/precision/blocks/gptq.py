"""Levels of weights that keep what a product computes of given data: E. Frantar, S. Ashkboos,
T. Hoefler, D. Alistarh, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers" (2023).

Steps of the sum are rounded one after the other. What rounding one changes is made up for, as far
as the data allow, by those that are still to come: by how much, the inverse of the data's second
moments says.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...types import Floats
from .block_rounding import RoundedBlocks, grids, levels_on

Doubles = NDArray[np.float64]
DAMPING = 0.01  # of the mean of the moments' diagonal, that is added to it: as in the paper


def round_for_data(
    weights: Floats, moments: Doubles, bits: int, group: int, *, symmetric: bool
) -> RoundedBlocks:
    """The levels of weights [K, N] in blocks of `group` steps. moments: the sum of x x^T over rows
    x of the data, [K, K]; a step at which all data are 0 is rounded to the nearest level. A block
    has its scale and zero when it comes to it, with what blocks before it have changed.
    """
    steps, columns = weights.shape
    blocks = -(-steps // group)
    left: Doubles = weights.astype(np.float64)
    factor = _inverse_factor(moments)
    levels = np.zeros((blocks * group, columns), np.uint8)
    scales = np.zeros((blocks, columns), weights.dtype)
    zeros = np.zeros((blocks, columns), np.uint8)
    for block, start in enumerate(range(0, steps, group)):
        end = min(start + group, steps)
        own = left[start:end].astype(np.float32)
        scale, zero = grids(own, weights.dtype, bits, symmetric=symmetric)
        scales[block], zeros[block] = scale, zero
        levels[end : start + group] = zero
        errors = np.zeros((end - start, columns))
        for step in range(start, end):
            levels[step] = levels_on(left[step].astype(np.float32), scale, zero, bits)
            number = (levels[step].astype(np.float64) - zero) * scale
            errors[step - start] = error = (left[step] - number) / factor[step, step]
            left[step + 1 : end] -= np.outer(factor[step, step + 1 : end], error)
        left[end:] -= factor[start:end, end:].T @ errors
    return RoundedBlocks(levels, cast(Floats, scales), zeros)


def _inverse_factor(moments: Doubles) -> Doubles:
    """The upper triangle U with U^T U the inverse of the damped moments."""
    damped = moments.copy()
    diagonal = np.einsum("ii->i", damped)
    diagonal[diagonal == 0] = 1.0
    diagonal += DAMPING * diagonal.mean()
    lower: Doubles = np.linalg.cholesky(np.linalg.inv(damped))
    return lower.T
