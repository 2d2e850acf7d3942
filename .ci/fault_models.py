"""Models that a compile should refuse, or get right, whatever is wrong between graph and arena."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from fault_task import Array, Arrays, Make, Task, normal
from onnx import ModelProto, NodeProto, helper, numpy_helper


def _model(nodes: Sequence[NodeProto], inputs: Arrays, outputs: Arrays, weights: Arrays) -> Task:
    """A model whose ends are these arrays."""
    ends = [
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in named.items()
        ]
        for named in (inputs, outputs)
    ]
    listed = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "tried", *ends, listed)
    opsets = [helper.make_opsetid("", 17)]
    model: ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return Task(model, inputs, outputs)


def _convolved(x: Array, w: Array) -> Array:
    """A convolution of one image, padded to its size, in float64."""
    rows, columns = x.shape[2:]
    wide = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
    taps = [
        np.einsum("chw,oc->ohw", wide[:, r : r + rows, s : s + columns], w[:, :, r, s])
        for r in range(3)
        for s in range(3)
    ]
    return np.sum(taps, axis=0)[None]


def _normalised(variance: float, dtype: str, tolerance: float) -> Task:
    """A convolution and a batch normalisation of one variance."""
    x, w = normal(1, 3, 9, 9, dtype=dtype), normal(4, 3, 3, 3, dtype=dtype)
    scale, bias, mean = (normal(4, seed=n, dtype=dtype) for n in range(3))
    weights = {"w": w, "scale": scale, "bias": bias, "mean": mean}
    weights["variance"] = np.full(4, variance, dtype)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["y"], epsilon=1e-5
        ),
    ]
    wide = {name: array.astype(np.float64)[:, None, None] for name, array in weights.items()}
    deviation = np.sqrt(wide["variance"] + 1e-5)
    y = (_convolved(x, w.astype(np.float64)) - wide["mean"]) / deviation * wide["scale"]
    made = _model(nodes, {"x": x}, {"y": (y + wide["bias"]).astype(dtype)}, weights)
    return Task(made.what, made.inputs, {"y": y + wide["bias"]}, tolerance)


def joined_transposes() -> Task:
    """Two permutations of a cube that do not commute."""
    x = normal(5, 5, 5)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        helper.make_node("Transpose", ["t"], ["y"], perm=[0, 2, 1]),
    ]
    return _model(nodes, {"x": x}, {"y": x.transpose(1, 0, 2).transpose(0, 2, 1)}, {})


def heads_of_one_tensor() -> Task:
    """Attention whose queries, keys and values are products of one tensor."""
    places, heads, depth = 6, 4, 8
    width = heads * depth
    x = normal(1, places, width)
    weights = {f"w{n}": normal(width, width, seed=n) / np.float32(4) for n in range(3)}
    nodes, parts = [], []
    for n in range(3):
        product = x[0].astype(np.float64) @ weights[f"w{n}"]
        parts.append(product.reshape(places, heads, depth).transpose(1, 0, 2))
        perm = [0, 2, 3, 1] if n == 1 else [0, 2, 1, 3]
        nodes += [
            helper.make_node("MatMul", ["x", f"w{n}"], [f"p{n}"]),
            helper.make_node("Reshape", [f"p{n}", "split"], [f"r{n}"]),
            helper.make_node("Transpose", [f"r{n}"], [f"h{n}"], perm=perm),
        ]
    nodes += [
        helper.make_node("MatMul", ["h0", "h1"], ["scores"]),
        helper.make_node("Mul", ["scores", "scale"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "h2"], ["mixed"]),
        helper.make_node("Transpose", ["mixed"], ["turned"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["turned", "joined"], ["y"]),
    ]
    q, k, v = parts
    powers = np.exp(q @ k.swapaxes(1, 2) * 0.25)
    mixed = powers / powers.sum(2, keepdims=True) @ v
    y = mixed.transpose(1, 0, 2).reshape(1, places, width)
    weights["split"] = np.array([1, places, heads, depth])
    weights["joined"] = np.array([1, places, width])
    weights["scale"] = np.array(0.25, np.float32)
    return _model(nodes, {"x": x}, {"y": y.astype(np.float32)}, weights)


def averages_at_the_border() -> Task:
    """Means of windows, whose padding does not count."""
    x = normal(1, 3, 8, 8)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1])

    def sums(array: Array) -> Array:
        wide = np.pad(array.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        taps = [wide[:, :, r : r + 8, s : s + 8] for r in range(3) for s in range(3)]
        return np.sum(taps, axis=0)

    y = sums(x) / sums(np.ones_like(x))
    return _model([node], {"x": x}, {"y": y.astype(np.float32)}, {})


def fused_difference() -> Task:
    """max(x, 0) - z in one kernel."""
    x, z = normal(20, 30), normal(20, 30, seed=1)
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Sub", ["r", "z"], ["y"]),
    ]
    return _model(nodes, {"x": x, "z": z}, {"y": np.maximum(x, 0) - z}, {})


def _chain(rows: int, sizes: Sequence[int], reads: Sequence[int]) -> Task:
    """Products one behind the other: the n-th reads the result of number reads[n], of sizes[n]
    columns; 0 is the input. The outputs are sums of what nobody else reads.
    """
    x = normal(rows, sizes[0])
    values, nodes, weights = [x.astype(np.float64)], [], {}
    for n, source in enumerate(reads, 1):
        weights[f"w{n}"] = w = normal(sizes[source], sizes[n]) / np.float32(sizes[source] ** 0.5)
        values.append(values[source] @ w)
        nodes.append(helper.make_node("MatMul", [f"v{source}", f"w{n}"], [f"v{n}"]))
    ends = [n for n in range(1, len(values)) if n not in reads]
    outputs = {f"v{n}": values[n].astype(np.float32) for n in ends}
    return _model(nodes, {"v0": x}, outputs, weights)


def products_in_a_row() -> Task:
    """Products each of which reads all that the one before it stores."""
    return _chain(96, (96, 192, 192, 192, 192, 192, 192), (0, 1, 2, 3, 4, 5))


def odd_products_in_a_row() -> Task:
    """Products of whose results none ends with a cache line."""
    return _chain(3, (33, 35, 37, 35, 33), (0, 1, 2, 3))


def products_with_gaps() -> Task:
    """Products that leave gaps in the arena, some of which are one cache line too small."""
    return _chain(16, (16, 1, 3, 1, 3), (0, 0, 1, 2))


def scratch_beside_the_arena() -> Task:
    """Convolutions that keep a padded copy of what they read."""
    x, w, v = normal(1, 16, 28, 28), normal(16, 16, 3, 3), normal(16, 16, 3, 3, seed=1)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    y = _convolved(np.maximum(_convolved(x, w), 0), v)
    return _model(nodes, {"x": x}, {"y": y.astype(np.float32)}, {"w": w, "v": v})


def copied_outputs() -> Task:
    """Outputs that are other names of an input and of another output, of an odd number of bytes in
    whole cache lines.
    """
    x = normal(3001)
    nodes = [
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["y"], ["again"]),
        helper.make_node("Identity", ["x"], ["same"]),
    ]
    y = np.maximum(x, 0)
    return _model(nodes, {"x": x}, {"y": y, "again": y, "same": x}, {})


MODELS: dict[str, Make] = {
    "normalised": partial(_normalised, 1.0, "float32", 1.5e-6),
    "normalised_small": partial(_normalised, 1e-3, "float32", 1e-5),
    "normalised_float16": partial(_normalised, 1e-4, "float16", 5e-3),
    **{
        make.__name__: make
        for make in (
            joined_transposes,
            heads_of_one_tensor,
            averages_at_the_border,
            fused_difference,
            products_in_a_row,
            odd_products_in_a_row,
            products_with_gaps,
            scratch_beside_the_arena,
            copied_outputs,
        )
    },
}
