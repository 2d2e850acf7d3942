"""What a row of operators' benchmark is: a few nodes, and the arrays that they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper, parser

from tilewright.graph.types import numpy_type
from tilewright.runtime.arrays import Array

IR_VERSION = 10


@dataclass(frozen=True)
class Draw:
    """Random elements, or known ones. fixed: they are a constant of the model."""

    make: Callable[[np.random.Generator], Array]
    fixed: bool = False


@dataclass(frozen=True)
class Subject:
    """One operator on one set of sizes.

    body: nodes as `onnx.parser` reads them, or what makes them. draws: its inputs and constants by
    name. outputs: their names. is_random: two runs differ, so means and deviations are compared.
    """

    name: str
    body: str | Callable[[], Sequence[NodeProto]]
    draws: Mapping[str, Draw]
    opset: int = 20
    outputs: tuple[str, ...] = ("y",)
    is_random: bool = False

    def model(self) -> tuple[ModelProto, dict[str, Array]]:
        """The model and its inputs. What stands in no declaration each system infers."""
        rng = np.random.default_rng(0)
        arrays = {name: draw.make(rng) for name, draw in self.draws.items()}
        graph = helper.make_graph(
            self._nodes(),
            "subject",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(arrays[name].dtype), arrays[name].shape
                )
                for name, draw in self.draws.items()
                if not draw.fixed
            ],
            [helper.make_empty_tensor_value_info(name) for name in self.outputs],
            [
                numpy_helper.from_array(arrays[name], name)
                for name, draw in self.draws.items()
                if draw.fixed
            ],
        )
        domains = {node.domain for node in graph.node if node.domain}
        versions = {"": self.opset, **{domain: _VERSIONS[domain] for domain in domains}}
        opsets = [helper.make_opsetid(*pair) for pair in versions.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
        return model, {name: arrays[name] for name, draw in self.draws.items() if not draw.fixed}

    def _nodes(self) -> Sequence[NodeProto]:
        if not isinstance(self.body, str):
            return self.body()
        head = f'<ir_version: {IR_VERSION}, opset_import: ["": {self.opset}]>'
        text = f"{head} subject () => () {{ {self.body} }}"
        return parser.parse_model(text).graph.node


_VERSIONS = {"com.microsoft": 1, "ai.onnx.ml": 3}


def normal(*shape: int, dtype: str = "float32") -> Draw:
    """Numbers around 0 with a deviation of 1."""
    kind = numpy_type(dtype)
    return Draw(lambda rng: rng.standard_normal(shape, np.float32).astype(kind))


def uniform(low: float, high: float, *shape: int, dtype: str = "float32") -> Draw:
    """Numbers between two, all alike."""
    return Draw(lambda rng: rng.uniform(low, high, shape).astype(numpy_type(dtype)))


def integers(low: int, high: int, *shape: int, dtype: str = "int64") -> Draw:
    """Integers from `low` on, less than `high`."""
    return Draw(lambda rng: rng.integers(low, high, shape).astype(numpy_type(dtype)))


def orders(*shape: int, below: int, dtype: str = "int64") -> Draw:
    """In each row other integers, less than `below`, in random order."""

    def make(rng: np.random.Generator) -> Array:
        rows = [rng.permutation(below)[: shape[-1]] for _ in range(prod(shape[:-1]))]
        return np.stack(rows).reshape(shape).astype(dtype)

    return Draw(make)


def known(values: object, dtype: str = "float32") -> Draw:
    """A constant with these elements."""
    return Draw(lambda rng: np.array(values, numpy_type(dtype)), fixed=True)


def fixed(draw: Draw) -> Draw:
    """The same, as a constant of the model."""
    return replace(draw, fixed=True)
