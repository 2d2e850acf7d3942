"""Models in float16 and bfloat16: stored in it, computed in float32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.graph.compile import compile
from tilewright.graph.samples.samples import tiny_model

from .transformer import encoder

pytestmark = pytest.mark.needs_cc

HALF, BRAIN, FLOAT = TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT


def halved(model: onnx.ModelProto, old: int = FLOAT, new: int = HALF) -> onnx.ModelProto:
    """The model with all that is of one type in another."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    kind = helper.tensor_dtype_to_np_dtype(new)
    for tensor in copy.graph.initializer:
        if tensor.data_type == old:
            array = numpy_helper.to_array(tensor).astype(kind)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for value in (*copy.graph.input, *copy.graph.output, *copy.graph.value_info):
        if value.type.tensor_type.elem_type == old:
            value.type.tensor_type.elem_type = new
    for node in copy.graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == old:
                attribute.i = new
    return copy


def model(*nodes: onnx.NodeProto, shape: tuple[int, ...] = (4, 6)) -> onnx.ModelProto:
    """Nodes from x to y; w: 6 x 8, b: 8 numbers, pads, and two indices."""
    random = np.random.default_rng(0)
    w, b = (random.standard_normal(s).astype(np.float16) for s in ((6, 8), (8,)))
    arrays = {"w": w, "b": b, "pads": np.array([1, 0, 0, 2]), "at": np.array([2, 0])}
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    x = helper.make_tensor_value_info("x", HALF, shape)
    y = helper.make_tensor_value_info("y", TensorProto.UNDEFINED, None)
    used = {name for node in nodes for name in node.input}
    graph = helper.make_graph(nodes, "half", [x], [y], [one for one in weights if one.name in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def node(operator: str, *values: str, **attributes: object) -> onnx.NodeProto:
    *inputs, output = values
    return helper.make_node(operator, inputs, [output], **attributes)


CASES = {
    "product": model(node("MatMul", *"xwa"), node("Add", *"abc"), node("Relu", *"cy")),
    "softmax": model(node("Softmax", *"xy", axis=-1)),
    "pad": model(node("Pad", "x", "pads", "y")),
    "rows": model(node("Gather", "x", "at", "y", axis=0)),
    "turned": model(node("Transpose", *"xy")),
    "sum": model(node("ReduceSum", *"xy")),
    "to float": model(node("Cast", *"xa", to=FLOAT), node("Exp", *"ay")),
    "and back": model(
        node("Cast", *"xa", to=FLOAT),
        node("Exp", *"ac"),
        node("Cast", *"cd", to=HALF),
        node("Mul", *"xde"),
        node("Sigmoid", *"ey"),
    ),
    "compared": model(node("Less", *"xxa"), node("Where", *"axxy")),
    "network": halved(tiny_model().model),
    "encoder": halved(encoder(1, 7)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_a_model_in_halves_is_what_float64_gives(name: str) -> None:
    engine = compile(CASES[name], cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.verify()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["product", "softmax", "and back", "compared", "encoder"])
def test_a_model_in_bfloat16_is_what_float64_gives(name: str) -> None:
    engine = compile(halved(CASES[name], HALF, BRAIN), cache=False)
    assert {kernel.check for kernel in engine.explain().kernels} == {"ok"}
    assert engine.verify()


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("name", ["product", "network"])
def test_a_model_in_halves_runs_on_a_gpu(name: str) -> None:
    engine = compile(CASES[name], "cuda:sm_90a", cache=False, verify="off")
    assert tw.emulated(engine, checked=True).verify()


def test_what_is_read_is_widened_in_place_and_what_is_stored_is_rounded_once() -> None:
    engine = compile(CASES["product"], "python", cache=False, verify="off")
    assert engine.parts.plain is not None
    (func,) = engine.parts.plain.model().program.functions
    text = str(func)
    assert text.startswith(
        "def matmul_add_relu(a: float16[4, 6], b: constant(float16[6, 8]), "
        "c: constant(float16[8]), stored: output(float16[4, 8])):\n"
    )
    assert 'cast(a[vi0, vk], "float32") * cast(b[vk, vi1], "float32")' in text
    assert text.count('"float16")') == 1


def test_a_kernel_that_only_moves_halves_converts_none() -> None:
    engine = compile(CASES["pad"], "python", cache=False, verify="off")
    assert engine.parts.plain is not None
    assert '"float32"' not in engine.parts.plain.text


def deep(kind: int, layers: int = 60) -> onnx.ModelProto:
    """Each layer has what is left of the one before it beside its own product."""
    random, names = np.random.default_rng(1), ["x"]
    dtype = np.float16 if kind == HALF else np.float32
    weights = [random.standard_normal((16, 16)) / 4 for _ in range(layers)]
    tensors = [numpy_helper.from_array(w.astype(dtype), f"w{n}") for n, w in enumerate(weights)]
    nodes = []
    for n in range(layers):
        nodes += [node("MatMul", names[-1], f"w{n}", f"m{n}"), node("Relu", f"m{n}", f"r{n}")]
        nodes += [node("Sub", f"r{n}", names[-1], f"x{n}")]
        names.append(f"x{n}")
    x = helper.make_tensor_value_info("x", kind, (5, 16))
    y = helper.make_tensor_value_info(names[-1], kind, None)
    graph = helper.make_graph(nodes, "deep", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_a_deep_model_in_halves_is_off_by_what_its_types_explain() -> None:
    engine = compile(deep(HALF), cache=False)
    (output,) = engine.verify().outputs
    assert output.rounding is not None
    assert 0 < output.share < 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [HALF, FLOAT])
def test_a_fault_of_a_deep_model_is_seen(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = compile(deep(kind), cache=False)
    given = engine.random_inputs()
    assert engine.verify(given)
    right, size = engine.run(given), 1e-4 if kind == FLOAT else 0.1
    faulty = {name: (array * (1 + size)).astype(array.dtype) for name, array in right.items()}
    monkeypatch.setattr(engine, "run", lambda inputs: faulty)
    (output,) = engine.verify(given).outputs
    assert output.share > 1
    assert output.rounding is not None
