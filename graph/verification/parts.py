"""Parts of a model, as models: some of its nodes, with what they read as inputs or constants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ...runtime.arrays import Array
from ..importers.onnx.nested import graphs_of, reads_of
from .cutting import value_of, with_graph

_FLOATS = "fV"  # kinds of NumPy: those of ml_dtypes are V, or f


@dataclass(frozen=True, slots=True)
class ModelPart:
    """Some nodes of a model. nodes: their places; outputs: those that are wanted, None for all that
    none of the nodes reads or that the model gives; bypassed: for a value, what is read instead;
    fixed: integers that other nodes computed are constants, of the values that they had in a run.
    """

    nodes: tuple[int, ...]
    outputs: tuple[str, ...] | None = None
    bypassed: Mapping[str, str] = field(default_factory=dict)
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class WholeModel:
    """A model that is to be reduced. arrays: its values in a run, as far as they are known, with
    its inputs; types: as ONNX infers them.
    """

    proto: ModelProto
    arrays: Mapping[str, Array]
    types: Mapping[str, ValueInfoProto]

    @staticmethod
    def of(proto: ModelProto, arrays: Mapping[str, Array]) -> WholeModel:
        """The model with the types of its values."""
        try:
            graph = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph
        except Exception:  # of any class: what is known of a run is enough
            graph = proto.graph
        infos = (*graph.value_info, *graph.output, *proto.graph.input)
        return WholeModel(proto, arrays, {item.name: item for item in infos})

    def whole(self) -> ModelPart:
        """All of it."""
        return ModelPart(tuple(range(len(self.proto.graph.node))))

    def model_of(self, part: ModelPart) -> tuple[ModelProto, dict[str, Array]] | None:
        """A part as a model, and what is known of its inputs; None where it is none: a type is not
        known, or onnx does not take it.
        """
        nodes = [self._node(place, part) for place in part.nodes]
        made = {name for node in nodes for name in node.output if name}
        reads = [name for node in nodes for name in reads_of(node) if name]
        weights = {tensor.name for tensor in self.proto.graph.initializer}
        given = {item.name for item in self.proto.graph.input} - weights
        results = self.results(part, made, set(reads))
        inputs, constants, known = [], {}, {}
        for name in dict.fromkeys(reads):
            if name in made or name in weights:
                continue
            if name in self.arrays:
                known[name] = self.arrays[name]
            is_value = name in known and known[name].dtype.kind not in _FLOATS
            if part.fixed and is_value and name not in given:
                constants[name] = known.pop(name)
                continue
            inputs.append(self.info(name))
        outputs = [self.info(name) or _untyped(name) for name in results]
        if not outputs or None in inputs:
            return None
        model = with_graph(self.proto, nodes, _there(inputs), outputs, set(reads), constants)
        _drop_functions(model)
        return (model, known) if is_valid(model) else None

    def results(self, part: ModelPart, made: set[str], reads: set[str]) -> list[str]:
        """What a part gives, in the order of its nodes."""
        ends = {item.name for item in self.proto.graph.output}
        wanted = (made & ends) | (made - reads) if part.outputs is None else set(part.outputs)
        order = (name for place in part.nodes for name in self.proto.graph.node[place].output)
        return [name for name in order if name in wanted]

    def info(self, name: str) -> ValueInfoProto | None:
        """A value with its type; what of its shape nobody says is as it was in the run."""
        info, array = self.types.get(name), self.arrays.get(name)
        if info is None or not info.type.HasField("tensor_type"):
            return None if array is None else value_of(name, array)
        kind = info.type.tensor_type
        if not kind.elem_type:
            return None if array is None else value_of(name, array)
        if array is None:
            return info
        if not kind.HasField("shape") or len(kind.shape.dim) != array.ndim:
            return value_of(name, array)
        sizes = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or size
            for dim, size in zip(kind.shape.dim, array.shape, strict=True)
        ]
        return helper.make_tensor_value_info(name, kind.elem_type, sizes)

    def detours(self, part: ModelPart) -> Iterable[ModelPart]:
        """The part without one of its nodes, the last first: what it computes is replaced by one of
        its inputs of the same type and shape.
        """
        for place in reversed(part.nodes):
            node = self._node(place, part)
            if len([name for name in node.output if name]) != 1 or any(graphs_of(node)):
                continue
            (result,) = (name for name in node.output if name)
            rest = tuple(one for one in part.nodes if one != place)
            for name in dict.fromkeys(filter(None, node.input)):
                if rest and self._is_like(name, result):
                    bypassed = {
                        old: name if new == result else new for old, new in part.bypassed.items()
                    }
                    yield replace(
                        part, nodes=rest, outputs=None, bypassed={**bypassed, result: name}
                    )

    def _is_like(self, one: str, other: str) -> bool:
        a, b = self.arrays.get(one), self.arrays.get(other)
        if a is not None and b is not None:
            return a.shape == b.shape and a.dtype == b.dtype
        known, wanted = self.types.get(one), self.types.get(other)
        if known is None or wanted is None:
            return False
        return bool(known.type == wanted.type and known.type.tensor_type.HasField("shape"))

    def _node(self, place: int, part: ModelPart) -> NodeProto:
        """A node that reads what it is to read."""
        node: NodeProto = self.proto.graph.node[place]
        if not part.bypassed or not set(part.bypassed).intersection(node.input):
            return node
        made = NodeProto()
        made.CopyFrom(node)
        names = [part.bypassed.get(name, name) for name in node.input]
        del made.input[:]
        made.input.extend(names)
        return made


def _untyped(name: str) -> ValueInfoProto:
    """An output of which nobody knows the type, behind an unknown operator: onnx.checker wants some
    type and some shape, and nobody reads them.
    """
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ())


def _there(infos: Iterable[ValueInfoProto | None]) -> list[ValueInfoProto]:
    return [info for info in infos if info is not None]


def _drop_functions(model: ModelProto) -> None:
    """Remove the model's functions that no node calls."""
    bodies = {(one.domain, one.name): one for one in model.functions}
    todo, called = list(model.graph.node), set[tuple[str, str]]()
    while todo:
        node = todo.pop()
        todo += [inner for graph in graphs_of(node) for inner in graph.node]
        key = (node.domain, node.op_type)
        if key in bodies and key not in called:
            called.add(key)
            todo += bodies[key].node
    kept = [one for key, one in bodies.items() if key in called]
    del model.functions[:]
    model.functions.extend(kept)


def is_valid(model: ModelProto) -> bool:
    """Whether onnx.checker takes a model."""
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError):
        return False
    return True
