"""What onnxruntime's quantiser of MatMulNBits makes of weights: the functions that it calls, and
the node that it writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@dataclass(frozen=True)
class Quantised:
    """Weights [K, N] as inputs of MatMulNBits."""

    shape: tuple[int, int]
    bits: int
    group: int
    packed: np.ndarray
    scales: np.ndarray
    packed_zeros: np.ndarray | None

    @property
    def levels(self) -> np.ndarray:
        return self._unpacked(self.packed)[:, : self.shape[0]].T

    @property
    def zeros(self) -> np.ndarray | None:
        if self.packed_zeros is None:
            return None
        return self._unpacked(self.packed_zeros)[:, : self.scales.shape[1]].T

    def _unpacked(self, data: np.ndarray) -> np.ndarray:
        shifts = np.arange(0, 8, self.bits, dtype=np.uint8)
        parts = (data[..., None] >> shifts) & ((1 << self.bits) - 1)
        return parts.reshape(self.shape[1], -1)

    def model(self, rows: int | str) -> onnx.ModelProto:
        """y = MatMulNBits of x [rows, K]."""
        steps, columns = self.shape
        tables = {"w": self.packed, "scales": self.scales}
        if self.packed_zeros is not None:
            tables["zeros"] = self.packed_zeros
        kind, value = TensorProto.FLOAT, helper.make_tensor_value_info
        node = helper.make_node(
            "MatMulNBits",
            ["x", *tables],
            ["y"],
            name="product",
            domain="com.microsoft",
            K=steps,
            N=columns,
            bits=self.bits,
            block_size=self.group,
        )
        graph = helper.make_graph(
            [node],
            "blocks",
            [value("x", kind, [rows, steps])],
            [value("y", kind, [rows, columns])],
            [numpy_helper.from_array(array, name) for name, array in tables.items()],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def quantised(weights: np.ndarray, bits: int, group: int, symmetric: bool) -> Quantised:
    """What onnxruntime makes of weights [K, N]."""
    state = pytest.importorskip("onnxruntime.capi._pybind_state")
    steps, columns = weights.shape
    blocks, packs = -(-steps // group), 8 // bits
    packed = np.zeros((columns, blocks, group * bits // 8), np.uint8)
    zeros = np.zeros((columns, -(-blocks // packs)), np.uint8)
    scales = np.zeros((columns, blocks), weights.dtype)
    padded = np.pad(weights, ((0, blocks * group - steps), (0, 0)))
    quantise = getattr(state, f"quantize_matmul_{bits}bits")
    quantise(packed, padded, scales, zeros, group, columns, steps, symmetric)
    own = None if symmetric else zeros
    return Quantised((steps, columns), bits, group, packed, scales, own)
