"""Small models that mutants are made of: a few of several nodes, those that the onnx package keeps
as files, and those of a folder that the caller names.

    python -m tests.graph.fuzz.seeds FOLDER

writes the models of the onnx package's node tests there, which takes half a minute to make; the
integers that a test feeds (shapes, axes, indices) become initialisers.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tilewright.graph.importers.onnx.rules.table import RULES

_KEPT = Path(onnx.backend.test.__file__).parent / "data"
_FOLDERS = [_KEPT / "pytorch-operator", _KEPT / "pytorch-converted", _KEPT / "simple"]
_LARGEST = 1 << 16  # bytes of a model


def add_folder(folder: Path) -> None:
    """Take the models of a folder as seeds, too."""
    _FOLDERS.append(folder)
    seed_models.cache_clear()


def seed_model(number: int) -> ModelProto:
    """One of the seeds, each third one of several nodes; the same number gives the same model as
    long as the folders are the same. The caller may change it.
    """
    made = hand_made() if number % 3 == 0 else seed_models()
    copy = ModelProto()
    copy.CopyFrom(made[number // 3 % len(made)])
    return copy


@cache
def seed_models() -> tuple[ModelProto, ...]:
    """The models of the folders whose operators we know."""
    paths = [path for folder in _FOLDERS for path in sorted(folder.rglob("*.onnx"))]
    small = (onnx.load(path) for path in paths if path.stat().st_size <= _LARGEST)
    return tuple(model for model in small if _is_known(model))


def _is_known(model: ModelProto) -> bool:
    return all(node.op_type in RULES and not node.domain for node in model.graph.node)


def write_node_tests(folder: Path) -> int:
    """Write the models of the node tests; how many there are."""
    import onnx.backend.test.loader as loader

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators of the cases overflow on purpose
        cases = loader.load_model_tests(kind="node")
    folder.mkdir(parents=True, exist_ok=True)
    known = [case for case in cases if _is_known(case.model)]
    for case in known:
        model = case.model
        feeds = case.data_sets[0][0] if case.data_sets else ()
        for item, value in zip(list(model.graph.input), feeds, strict=False):
            if isinstance(value, np.ndarray) and value.dtype == np.int64:
                model.graph.initializer.append(numpy_helper.from_array(value, item.name))
                model.graph.input.remove(item)
        onnx.save(model, folder / f"{case.name}.onnx")
    return len(known)


@cache
def hand_made() -> tuple[ModelProto, ...]:
    """Models of several nodes: what passes, fusion and plans have work with."""
    return (_convolutions(), _products(), _shapes(), _halves(), _constants(), _odd_ones())


def _convolutions() -> ModelProto:
    """A convolution, what follows it, and a product."""
    return _model(
        [
            _node("Conv", "x w b", "c", pads=[1, 1, 1, 1]),
            _node("BatchNormalization", "c s s s s", "n"),
            _node("Relu", "n", "r"),
            _node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2]),
            _node("GlobalAveragePool", "p", "g"),
            _node("Flatten", "g", "f"),
            _node("Gemm", "f m", "y", transB=1),
        ],
        {"x": (1, 3, 8, 8)},
        {"w": _floats(4, 3, 3, 3), "b": _floats(4), "s": _floats(4), "m": _floats(5, 4)},
    )


def _products() -> ModelProto:
    """A product with a normalised row."""
    return _model(
        [
            _node("MatMul", "x w", "h"),
            _node("Add", "h b", "a"),
            _node("LayerNormalization", "a b b", "l"),
            _node("Gelu", "l", "g"),
            _node("Softmax", "g", "y", axis=-1),
        ],
        {"x": (2, 3, 8)},
        {"w": _floats(8, 6), "b": _floats(6)},
        opset=20,
    )


def _shapes() -> ModelProto:
    """Shapes that a model computes."""
    return _model(
        [
            _node("Shape", "x", "s"),
            _node("Gather", "s zero", "n"),
            _node("Unsqueeze", "n axis", "u"),
            _node("Concat", "u rest", "t", axis=0),
            _node("Reshape", "x t", "r"),
            _node("Transpose", "r", "y", perm=[0, 2, 1]),
        ],
        {"x": (2, 3, 4)},
        {"zero": np.array(0), "axis": np.array([0]), "rest": np.array([-1, 2])},
    )


def _halves() -> ModelProto:
    """Two halves that meet again."""
    return _model(
        [
            _node("Split", "x", "a b", axis=1),
            _node("Sigmoid", "a", "c"),
            _node("Mul", "b c", "d"),
            _node("Concat", "d a", "e", axis=1),
            _node("ReduceMean", "e", "y", axes=[-1], keepdims=0),
        ],
        {"x": (2, 6, 5)},
        {},
        opset=13,
    )


def _constants() -> ModelProto:
    """Constants that a model makes, and gathers from."""
    return _model(
        [
            _node("ConstantOfShape", "shape", "z"),
            _node("Range", "zero four one", "i"),
            _node("Gather", "table i", "e"),
            _node("Expand", "x shape", "t"),
            _node("Tile", "t two", "v"),
            _node("Add", "v z", "o"),
            _node("Pad", "o pads", "y"),
            _node("CumSum", "e zero", "q"),
        ],
        {"x": (1, 4)},
        {
            "shape": np.array([2, 4]),
            "zero": np.array(0),
            "four": np.array(4),
            "one": np.array(1),
            "two": np.array([1, 1]),
            "pads": np.array([0, 1, 2, 0]),
            "table": _floats(6, 3),
        },
    )


def _odd_ones() -> ModelProto:
    """Operators that are made of others."""
    return _model(
        [
            _node("ConvTranspose", "x w", "c", strides=[2, 2], pads=[1, 1, 0, 0]),
            _node("Resize", "c  scales", "r", mode="linear"),
            _node("LRN", "r", "l", size=3),
            _node("TopK", "l k", "t i"),
            _node("ArgMax", "l", "y", axis=1),
            _node("InstanceNormalization", "c s s", "n"),
        ],
        {"x": (1, 2, 4, 4)},
        {
            "w": _floats(2, 3, 3, 3),
            "scales": np.array([1, 1, 1.5, 2], np.float32),
            "k": np.array([2]),
            "s": _floats(3),
        },
    )


def _floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


def _node(operator: str, inputs: str, outputs: str, **attributes: object) -> NodeProto:
    return helper.make_node(operator, inputs.split(" "), outputs.split(), **attributes)


def _model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, ...]],
    constants: dict[str, np.ndarray],
    opset: int = 17,
) -> ModelProto:
    """A model whose outputs are the values that no node reads."""
    read = {name for node in nodes for name in node.input}
    ends = [name for node in nodes for name in node.output if name not in read]
    graph = helper.make_graph(
        nodes,
        "seed",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in ends],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


if __name__ == "__main__":
    print(write_node_tests(Path(sys.argv[1])))
