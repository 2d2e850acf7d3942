"""A matrix product as peers get it: a model of one MatMul, and oneDNN's product through torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tilewright.cli.peers import Session
from tilewright.runtime.arrays import Array


def onnx_matmul(rows: int, weights: np.ndarray) -> bytes:
    """C = A B of `rows` rows as an ONNX model; B, the weights, is an initializer."""
    inner, columns = weights.shape
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["A", "B"], ["C"])],
        "matmul",
        [helper.make_tensor_value_info("A", TensorProto.FLOAT, [rows, inner])],
        [helper.make_tensor_value_info("C", TensorProto.FLOAT, [rows, columns])],
        [numpy_helper.from_array(weights, "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@dataclass(frozen=True)
class OneDnn:
    """oneDNN's product of float32, called by torch; it gets the weights in the layout that it asks
    for. torch's own product is no peer: on AMD it runs at the speed of AVX2.
    """

    name: str = "oneDNN"
    requirement: str = "torch"

    def is_installed(self) -> bool:
        return find_spec("torch") is not None

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
    ) -> Session:
        """The model that `onnx_matmul` made; its one initializer is the weights."""
        import torch  # an optional dependency

        assert isinstance(model, bytes)
        torch.set_num_threads(threads)
        (x,) = (torch.from_numpy(array) for array in inputs.values())
        (tensor,) = onnx.load_from_string(model).graph.initializer
        transposed = torch.from_numpy(numpy_helper.to_array(tensor).T.copy())
        weights = torch.ops.mkldnn._reorder_linear_weight(transposed, x.shape[0])
        made = {}

        def call() -> None:
            with torch.inference_mode():
                made[outputs[0]] = torch.ops.mkldnn._linear_pointwise(
                    x, weights, None, "none", [], ""
                )

        return Session(call, lambda: {name: array.numpy() for name, array in made.items()})
