"""Models of onnxruntime's contributed operators: all nodes of a test are one model, which is
imported and evaluated, and compiled where the test wants it. The judge is onnxruntime; of a node
for which it has no kernel on a CPU, what the node's `expected` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.passes.pipeline import optimise
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

Attribute = int | float | str | list[int] | list[float]
DOMAIN = "com.microsoft"


@dataclass(frozen=True, eq=False)
class Contributed:
    """One node. inputs: None where one is left out; constants: positions of the inputs that are
    initialisers; outputs: how many, or which of them; expected: what they are, where onnxruntime
    cannot say it; domain: of the operator; untyped: an
    output whose type onnxruntime does not infer, float32.
    """

    operator: str
    inputs: Sequence[Array | None]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    constants: tuple[int, ...] = ()
    outputs: int | tuple[int, ...] = 1
    expected: tuple[Array, ...] | None = None
    domain: str = DOMAIN
    untyped: int = -1

    def output_names(self, number: int) -> list[str]:
        """What the model calls the outputs; "" for those that are left out."""
        kept = tuple(range(self.outputs)) if isinstance(self.outputs, int) else self.outputs
        return [f"n{number}_y{n}" if n in kept else "" for n in range(max(kept) + 1)]

    def input_names(self, number: int) -> list[str]:
        """What the model calls the inputs; "" for those that are left out."""
        return ["" if x is None else f"n{number}_x{n}" for n, x in enumerate(self.inputs)]


def random(seed: int, *shape: int, dtype: str = "float32") -> Array:
    """Numbers of a normal distribution."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def drawn(seed: int, dtype: str, *shape: int) -> Array:
    """Integers of the whole range of a type."""
    kind = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(kind.min, kind.max + 1, shape).astype(dtype)


def model_of(
    nodes: Sequence[Contributed], *, opset: int = 17, symbols: Mapping[str, Sequence[str]] = {}
) -> onnx.ModelProto:
    """A model of nodes, whose outputs are all of theirs. symbols: the shapes of some inputs."""
    made, declared, initialisers, outputs = [], [], [], []
    for number, node in enumerate(nodes):
        names, results = node.input_names(number), node.output_names(number)
        made.append(
            helper.make_node(
                node.operator,
                names,
                results,
                f"node{number}",
                domain=node.domain,
                **node.attributes,
            )
        )
        for name in filter(None, results):
            outputs.append(onnx.ValueInfoProto(name=name))
            if name.endswith(f"y{node.untyped}"):
                outputs[-1].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        for position, (name, array) in enumerate(zip(names, node.inputs, strict=True)):
            if array is None:
                continue
            if position in node.constants:
                initialisers.append(numpy_helper.from_array(array, name))
                continue
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            shape = symbols.get(name, array.shape)
            declared.append(helper.make_tensor_value_info(name, kind, shape))
    graph = helper.make_graph(made, "contributed", declared, outputs, initialisers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """What onnxruntime computes, without fusing anything."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [item.name for item in session.get_outputs()]
    given = {item.name: feeds[item.name] for item in session.get_inputs()}
    return dict(zip(names, session.run(names, given), strict=True))


def expected_of(nodes: Sequence[Contributed], opset: int) -> dict[str, Array]:
    """What each output of a model of nodes is."""
    found: dict[str, Array] = {}
    judged = [node for node in nodes if node.expected is None]
    results = run_onnxruntime(model_of(judged, opset=opset), feeds_of(judged)) if judged else {}
    for number, node in enumerate(nodes):
        names = list(filter(None, node.output_names(number)))
        if node.expected is not None:
            found |= dict(zip(names, node.expected, strict=True))
        else:
            own = filter(None, node.output_names(judged.index(node)))
            found |= {name: results[other] for name, other in zip(names, own, strict=True)}
    return found


def feeds_of(nodes: Sequence[Contributed]) -> dict[str, Array]:
    """What the inputs of a model of nodes are."""
    return {
        name: array
        for number, node in enumerate(nodes)
        for name, array in zip(node.input_names(number), node.inputs, strict=True)
        if array is not None
    }


def check_contributed(
    *nodes: Contributed,
    opset: int = 17,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    engine: bool = False,
) -> None:
    """Hold what the graph and the optimised graph compute against the judge, and what the engine
    does where it is wanted.
    """
    model, expected, feeds = (
        model_of(nodes, opset=opset),
        expected_of(nodes, opset),
        feeds_of(nodes),
    )
    graph = import_onnx(model)
    given = {name: feeds[name] for name in graph.inputs}
    computed = [evaluate(version, given, dtype=None) for version in (graph, optimise(graph)[0])]
    if engine:
        built = compile(graph, cache=False)
        assert built.verify()
        computed.append(built.run(given))
    for results in computed:
        for name, wanted in expected.items():
            node, got = nodes[int(name[1:].partition("_")[0])], results[name]
            what = f"{name} of {node.operator} {dict(node.attributes)}"
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), what
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=what)


def refusal(node: Contributed, *, opset: int = 17) -> str:
    """The message with which a model of one node is refused."""
    try:
        import_onnx(model_of((node,), opset=opset))
    except ModelError as error:
        return str(error)
    raise AssertionError(f"{node.operator} is not refused")
