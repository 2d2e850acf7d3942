"""Weights of GPTQ and AWQ: levels in words of 32 bits.

A layer has, behind one name, `qweight`, `qzeros` and `scales` [groups, N], and with GPTQ `g_idx`:

    GPTQ    qweight int32 [K * bits / 32, N], a word has levels that follow each other along K;
            qzeros int32 [groups, N * bits / 32], along N; g_idx int32 [K], the group of each row
    AWQ     qweight int32 [K, N / 8] and qzeros int32 [groups, N / 8], of 4 bits; the levels in a
            word are those of columns 0, 2, 4, 6, 1, 3, 5, 7 of eight

GPTQ's first format stores zeros less 1: 15, of 4 bits, stands for 16. (AutoGPTQ's qlinear modules
and AutoAWQ's gemm module define both.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...block_weights import BlockWeights, Bytes, packed_levels, unpacked_levels
from ...errors import ModelError
from ...types import Array

WORD = 32
SCALES = ("float16", "bfloat16", "float32")
PARTS = ("qweight", "qzeros", "scales", "g_idx")
AWQ_BITS = 4
AWQ_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # in a word, of columns 0 to 7


@dataclass(frozen=True, slots=True)
class PackedLayer:
    """The parts of a layer by name. source, layer: for messages. stored_less: what GPTQ's zeros are
    less than what they stand for.
    """

    source: str
    layer: str
    parts: Mapping[str, Array]
    stored_less: int

    def weights(self) -> BlockWeights:
        """The layer's matrix [K, N]. Raises: ModelError where the parts do not fit together."""
        self._check_parts()
        rows, words = self.parts["qweight"].shape
        groups, columns = self.parts["scales"].shape
        if words == columns:
            return self._gptq()
        if words * WORD == columns * AWQ_BITS and rows % groups == 0:
            return self._awq()
        raise self._misfit("GPTQ's or AWQ's")

    def _check_parts(self) -> None:
        missing = [part for part in PARTS[:3] if part not in self.parts]
        if missing:
            raise ModelError(
                f"model: '{self.source}': '{self.layer}' has {', '.join(sorted(self.parts))}, and "
                f"no {', '.join(missing)}.",
                code="packed-missing",
                hints=("give all files of the model, where it is in several.",),
            )
        for part, array in self.parts.items():
            kinds, rank = SCALES if part == "scales" else ("int32",), 1 if part == "g_idx" else 2
            if array.dtype.name not in kinds or array.ndim != rank or not array.size:
                raise ModelError(
                    f"model: '{self.source}': '{self.layer}.{part}' is {array.dtype.name}"
                    f"{list(array.shape)}; expected {' or '.join(kinds)} of {rank} dimensions.",
                    code="packed-type",
                )

    def _misfit(self, whose: str) -> ModelError:
        shapes = ", ".join(f"{part} {list(a.shape)}" for part, a in self.parts.items())
        return ModelError(
            f"model: '{self.source}': the parts of '{self.layer}' do not fit together: {shapes}; "
            f"expected {whose} shapes, of levels of 2, 4 or 8 bits.",
            code="packed-shapes",
        )

    def _gptq(self) -> BlockWeights:
        words, scales, zeros = (self.parts[part] for part in PARTS[:3])
        scales, zeros = self.parts["scales"], self.parts["qzeros"]
        groups, columns = scales.shape
        bits = WORD * zeros.shape[1] // columns
        if bits not in (2, 4, 8) or zeros.shape != (groups, columns * bits // WORD):
            raise self._misfit("GPTQ's")
        steps = words.shape[0] * (WORD // bits)
        of_rows = self.parts.get("g_idx")
        if steps % groups or (of_rows is not None and of_rows.shape != (steps,)):
            raise self._misfit("GPTQ's")
        group = steps // groups
        levels = _bytes_of(words.T)  # [N, K * bits / 8]
        order = None if of_rows is None else self._order(cast(NDArray[np.int32], of_rows), group)
        if order is not None:
            levels = packed_levels(unpacked_levels(levels, bits)[:, order], bits)
        found = unpacked_levels(_bytes_of(zeros), bits).astype(np.int16) + self.stored_less
        return self._made(bits, group, levels, found, order)

    def _order(self, of_rows: NDArray[np.int32], group: int) -> NDArray[np.int32] | None:
        """The rows in the order of their groups; None where they are in it."""
        groups = of_rows.size // group
        inside = of_rows.min() >= 0 and of_rows.max() < groups
        if not inside or (np.bincount(of_rows) != group).any():
            raise ModelError(
                f"model: '{self.source}': '{self.layer}.g_idx' has rows of groups "
                f"{of_rows.min()} to {of_rows.max()}; expected {groups} groups of {group} rows.",
                code="packed-groups",
            )
        order = np.argsort(of_rows, kind="stable").astype(np.int32)
        return None if (np.diff(order) == 1).all() else order

    def _awq(self) -> BlockWeights:
        words, scales, zeros = (self.parts[part] for part in ("qweight", "scales", "qzeros"))
        steps, columns = words.shape[0], scales.shape[1]
        group = steps // scales.shape[0]
        if zeros.shape != (scales.shape[0], words.shape[1]) or group % 2:
            raise self._misfit("AWQ's")
        levels = _of_awq(words).T.reshape(columns, steps)
        found = _of_awq(zeros).astype(np.int16)
        return self._made(AWQ_BITS, group, packed_levels(levels, AWQ_BITS), found, None)

    def _made(
        self,
        bits: int,
        group: int,
        levels: Bytes,
        zeros: NDArray[np.int16],
        order: NDArray[np.int32] | None,
    ) -> BlockWeights:
        """Of levels [N, K * bits / 8] and zeros [groups, N]."""
        if group * bits % 8:
            raise self._misfit("GPTQ's")
        scales = np.ascontiguousarray(self.parts["scales"].T)
        columns, groups = scales.shape
        kind = np.uint8 if zeros.max() < 256 else np.int16
        return BlockWeights(
            (groups * group, columns),
            bits,
            group,
            levels.reshape(columns, groups, -1),
            scales,
            zeros=np.ascontiguousarray(zeros.T.astype(kind)),
            order=order,
        )


def _bytes_of(words: Array) -> Bytes:
    """The bytes of words [..., n], the lowest first: uint8 [..., 4 n]."""
    return np.ascontiguousarray(words).astype("<i4", copy=False).view(np.uint8)


def _of_awq(words: Array) -> Bytes:
    """The levels of words [..., n] of AWQ, in the order of their columns: uint8 [..., 8 n]."""
    levels = unpacked_levels(_bytes_of(words), AWQ_BITS).reshape(*words.shape, -1)
    return levels[..., AWQ_PLACES].reshape(words.shape[0], -1)
