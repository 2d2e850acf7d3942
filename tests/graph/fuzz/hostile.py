"""Models of a hundred bytes that ask for more than a machine has, each written by hand for one
place that believed them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Shape = tuple[int, ...]


def _node(operator: str, inputs: str, outputs: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(operator, inputs.split(" "), outputs.split(), **attributes)


def _model(
    *nodes: NodeProto,
    x: Shape = (1, 1, 4, 4),
    elem_type: int = TensorProto.FLOAT,
    opset: int = 17,
    **constants: object,
) -> ModelProto:
    """A model of input "x" and output "y"; constants: lists of int64, or arrays."""
    tensors = [numpy_helper.from_array(np.asarray(value), n) for n, value in constants.items()]
    graph = helper.make_graph(
        list(nodes),
        "hostile",
        [helper.make_tensor_value_info("x", elem_type, x)],
        [helper.make_empty_tensor_value_info("y")],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _range(start: float, limit: float, step: float, dtype: str = "float32") -> ModelProto:
    ends = dict(zip("abc", (np.array(n, dtype) for n in (start, limit, step)), strict=True))
    return _model(_node("Range", "a b c", "r"), _node("Add", "x r"), x=(1,), **ends)


def models() -> Mapping[str, ModelProto]:
    """The models by what they do."""
    return {**_windows(), **_repetitions(), **_malformed()}


def _windows() -> dict[str, ModelProto]:
    """Ranges and windows that reach far."""
    ones = np.ones((1, 1, 3, 3), np.float32)
    one = np.ones((1, 1, 1, 1), np.float32)
    return {
        "range to 2**32": _range(0, 2**32 - 1, 1),
        "range to infinity": _range(0, np.inf, 1),
        "range to nan": _range(0, np.nan, 1),
        "range of tiny steps": _range(0, 1, 1e-38),
        "range of all integers": _range(-(2**63), 2**63 - 1, 1, "int64"),
        "lrn over 2**40 channels": _model(_node("LRN", "x", size=2**40 + 1)),
        "convolution at a distance of 2**40": _model(
            _node("Conv", "x w", pads=[2**40] * 4, dilations=[2**40, 2**40]), w=ones
        ),
        "convolution in 2**30 zeros": _model(
            _node("Conv", "x w", pads=[0, 2**30, 0, 0], strides=[1, 2**29]), w=one
        ),
        "transposed convolution at 2**16": _model(
            _node("ConvTranspose", "x w", strides=[2, 65536]), w=ones
        ),
        "transposed convolution with an output of 2**40": _model(
            _node("ConvTranspose", "x w", output_shape=[2**40, 2**40]), w=ones
        ),
        "transposed convolution of short lists": _model(
            _node("ConvTranspose", "x w", strides=[2]), w=ones
        ),
        "window of 2**14 squared": _model(
            _node("MaxPool", "x", kernel_shape=[2**14, 2**14], pads=[2**14] * 4)
        ),
        "mean of 2**13 squared": _model(
            _node("AveragePool", "x", kernel_shape=[2**13, 2**13], pads=[2**12] * 4)
        ),
    }


def _repetitions() -> dict[str, ModelProto]:
    """Values that are far larger than what they are made of."""
    bits = {"elem_type": TensorProto.INT8, "x": (1, 1)}
    filled = _node("ConstantOfShape", "shape", "c")
    return {
        "tile of 2**24": _model(_node("Tile", "x n"), x=(1, 4), n=[1, 2**24 + 2]),
        "tile of 2**33 bytes": _model(_node("Tile", "x n"), n=[2**16, 2**17], **bits),
        "expansion to 2**33 bytes": _model(_node("Expand", "x n"), n=[2**16, 2**17], **bits),
        "sum of 2**33 equal bytes": _model(
            filled,
            _node("ReduceMax", "c", "m", keepdims=0),
            _node("Cast", "m", "f", to=TensorProto.FLOAT),
            _node("Add", "x f"),
            x=(1,),
            shape=[2**16, 2**16],
        ),
        "2**30 equal indices": _model(
            _node("ConstantOfShape", "shape", "c", value=numpy_helper.from_array(np.array([1]))),
            _node("Gather", "x c"),
            x=(4,),
            shape=[2**30],
        ),
        "resize up one axis and down the other": _model(
            _node("Resize", "x  s", mode="linear"),
            x=(1, 2**28),
            s=np.array([2.0**28, 2.0**-28], np.float32),
        ),
        "resize by the smallest number": _model(
            _node("Resize", "x  s"), s=np.array([1, 1, 1, 1e-38], np.float32)
        ),
        "product of 2**20 rows and columns": _model(
            _node("Transpose", "x", "t"), _node("MatMul", "x t"), x=(2**16, 2)
        ),
    }


def _malformed() -> dict[str, ModelProto]:
    """Numbers that no element type, axis or list has."""
    bits = {"elem_type": TensorProto.INT8, "x": (1, 1)}
    return {
        "padding by -2**63": _model(_node("Pad", "x p"), x=(2,), p=[-(2**63), 0]),
        "reflection of 100 of 2": _model(_node("Pad", "x p", mode="reflect"), x=(2,), p=[100, 0]),
        "wrapping around 2**32 times": _model(
            _node("Pad", "x p", mode="wrap"), x=(2,), p=[2**31, 2**31]
        ),
        "split into 2**40": _model(_node("Split", "x", num_outputs=2**40), opset=18),
        "split into nothing": _model(_node("Split", "x s"), s=np.zeros(0, np.int64)),
        "sums along no axis": _model(_node("CumSum", "x a"), a=np.zeros(0, np.int64)),
        "diagonal at 2**63": _model(_node("Trilu", "x k"), k=np.array(2**63 - 1)),
        "shape of a million axes": _model(_node("Reshape", "x s"), s=np.full(1 << 20, 2**62)),
        "axes of no elements and 2**62": _model(
            _node("Reshape", "x s"), x=(0, 4), s=[0, 2**62], opset=13
        ),
        "blocks of 2**31": _model(_node("DepthToSpace", "x", blocksize=2**31)),
        "clip of bytes by floats": _model(
            _node("Clip", "x", min=-3e38, max=float("nan")), opset=7, **bits
        ),
        "minus bytes": _model(_node("Neg", "x"), elem_type=TensorProto.UINT8),
    }
