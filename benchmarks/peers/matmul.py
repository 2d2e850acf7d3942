"""A matrix product as peers get it: a model of one operator, oneDNN's product through torch, and
NumPy's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.cli.compare.peers import Package, PeerSession
from tilewright.runtime.arrays import Array

if TYPE_CHECKING:
    import torch


# by the type of the weights: the operator, the types of A and C
OPERATORS = {
    np.dtype(np.float32): ("MatMul", TensorProto.FLOAT, TensorProto.FLOAT),
    np.dtype(ml_dtypes.bfloat16): ("MatMul", TensorProto.BFLOAT16, TensorProto.BFLOAT16),
    np.dtype(np.int8): ("MatMulInteger", TensorProto.UINT8, TensorProto.INT32),
}


def onnx_matmul(rows: int, weights: np.ndarray) -> bytes:
    """C = A B of `rows` rows as an ONNX model; B, the weights, is an initializer of float32,
    bfloat16 or int8. bytes of int8 meet those of uint8 and give int32.
    """
    operator, left, result = OPERATORS[weights.dtype]
    inner, columns = weights.shape
    graph = helper.make_graph(
        [helper.make_node(operator, ["A", "B"], ["C"])],
        "matmul",
        [helper.make_tensor_value_info("A", left, [rows, inner])],
        [helper.make_tensor_value_info("C", result, [rows, columns])],
        [numpy_helper.from_array(weights, "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@dataclass(frozen=True, slots=True)
class OneDnn(Package):
    """oneDNN's product of float32 or bfloat16, called by torch; it gets the weights in the layout
    that it asks for. torch's own product of float32 is no peer: on AMD it has the speed of AVX2.
    """

    name: str = "oneDNN"
    requirement: str = "torch"

    def version(self) -> str:
        return f"of torch {version('torch')}"

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"set_num_threads": str(threads)}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        """The model that `onnx_matmul` made; its one initializer is the weights. An output is given
        as float32.
        """
        import torch  # an optional dependency

        assert isinstance(model, bytes)
        torch.set_num_threads(threads)
        (given,) = inputs.values()
        (initializer,) = onnx.load_from_string(model).graph.initializer
        with torch.inference_mode():  # tensors made here are never differentiated, calls or not
            x = _tensor(given)
            transposed = _tensor(numpy_helper.to_array(initializer).T.copy())
            weights = torch.ops.mkldnn._reorder_linear_weight(transposed, x.shape[0])
        product = torch.ops.mkldnn._linear_pointwise
        made: dict[str, torch.Tensor] = {}

        def call() -> None:
            made.clear()  # so that its memory can be taken again
            made[outputs[0]] = product(x, weights, None, "none", [], "")

        return PeerSession(
            call, lambda: {name: found.float().numpy() for name, found in made.items()}
        )


@dataclass(frozen=True, slots=True)
class NumPy(Package):
    """NumPy's product, which is OpenBLAS's; threadpoolctl sets its threads, for the whole process.

    Raises at `load`: RuntimeError where OPENBLAS_CORETYPE names the kernels that it is to take.
    """

    name: str = "numpy"
    requirement: str = "threadpoolctl"

    def version(self) -> str:
        return version("numpy")

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"threadpool_limits": str(threads)}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        """The model that `onnx_matmul` made; its one initializer is the weights."""
        import threadpoolctl  # an optional dependency

        if "OPENBLAS_CORETYPE" in os.environ:
            raise RuntimeError("OPENBLAS_CORETYPE is set: unset it, so that NumPy is at its best")
        assert isinstance(model, bytes)
        threadpoolctl.threadpool_limits(threads, user_api="blas")
        (x,) = inputs.values()
        (initializer,) = onnx.load_from_string(model).graph.initializer
        weights = numpy_helper.to_array(initializer)
        out = np.empty((len(x), weights.shape[1]), x.dtype)
        return PeerSession(lambda: np.matmul(x, weights, out=out), lambda: {outputs[0]: out})


def _tensor(array: np.ndarray) -> torch.Tensor:
    """The array's memory as a tensor; torch does not know the bfloat16 of ml_dtypes."""
    import torch  # an optional dependency

    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
