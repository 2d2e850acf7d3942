"""tw.quantize_weights: which weights become levels of few bits, what is said of the others, and
that the engine of the graph computes what onnxruntime computes of its own quantised model.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.block_matmul import BlockMatMul, dequantised, packed_words
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.precision.blocks.gptq import round_for_data
from tilewright.graph.precision.blocks.weights import QuantizeError, quantize_weights
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Splat, TensorType

from ..onnxruntime_blocks import quantised

RNG = np.random.default_rng(0)


def weights(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def model(steps: int = 70, columns: int = 48) -> onnx.ModelProto:
    """Two products, one with a bias, and an activation between them."""
    arrays = {"w0": weights(steps, columns), "w1": weights(24, columns), "b1": weights(24)}
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"], name="between"),
        helper.make_node("Gemm", ["r", "w1", "b1"], ["y"], name="second", transB=1),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "two",
        [value("x", TensorProto.FLOAT, [3, steps])],
        [value("y", TensorProto.FLOAT, [3, 24])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def operators(graph: Graph) -> list[str]:
    return [node.op.title for node in graph.nodes]


def test_products_with_constant_weights_read_levels() -> None:
    graph = quantize_weights(model(), bits=4, group=32)
    assert isinstance(graph, Graph)
    assert operators(graph) == ["BlockMatMul", "Relu", "BlockMatMul", "Add"]
    assert {name.split(".")[-1] for name in graph.constants} == {"levels", "scales", "b1"}
    kinds = {name: str(graph.types[name]) for name in graph.constants}
    assert kinds["w0.levels"] == "int32[12, 48]"
    assert kinds["w0.scales"] == "float32[3, 48]"
    first, second = graph.weights
    assert (first.node, first.value, first.bits, first.reason) == ("first", "w0", 4, "")
    assert (second.node, second.value, second.bits) == ("second", "w1", 4)
    assert 0.05 < first.error < 0.15
    assert first.bytes == 96 * 48 // 2 + 3 * 48 * 4


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_graph_is_the_model_with_the_weights_that_its_levels_stand_for(
    bits: int, symmetric: bool
) -> None:
    proto = model()
    graph = quantize_weights(proto, bits=bits, group=16, symmetric=symmetric)
    made = {}
    for node in graph.nodes:
        if isinstance(node.op, BlockMatMul):
            words, scales, *zeros = (graph.constants[v] for v in node.inputs[1:])
            assert len(zeros) == (not symmetric)
            made[node.inputs[1].split(".")[0]] = dequantised(bits, 16, words, scales, *zeros)
    x = weights(3, 70)
    bias = numpy_helper.to_array(proto.graph.initializer[2])
    hidden = np.maximum(x @ made["w0"][:70], 0)
    expected = hidden @ made["w1"][:48] + bias
    found = evaluate(graph, {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("bits", "group", "symmetric"),
    [(2, 32, True), (4, 32, False), (4, 128, True), (8, 16, False)],
)
def test_an_engine_computes_what_onnxruntime_computes_of_its_own_quantised_model(
    bits: int, group: int, symmetric: bool
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    w = weights(100, 40)
    theirs = quantised(w, bits, group, symmetric)
    session = onnxruntime.InferenceSession(
        theirs.model("rows").SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for rows in (1, 17):
        x = weights(rows, 100)
        (expected,) = session.run(None, {"x": x})
        node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
        value, kind = helper.make_tensor_value_info, TensorProto.FLOAT
        given = helper.make_graph(
            [node],
            "one",
            [value("x", kind, x.shape)],
            [value("y", kind, expected.shape)],
            [numpy_helper.from_array(w, "w")],
        )
        plain = helper.make_model(given, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        graph = quantize_weights(plain, bits=bits, group=group, symmetric=symmetric)
        imported = tw.compile(theirs.model(rows), cache=False)
        found = tw.compile(graph, cache=False).run({"x": x})["y"]
        assert (found == imported.run({"x": x})["y"]).all()
        bound = 2.0**-22 * (np.abs(x) @ np.abs(w)).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


@pytest.mark.needs_cc
@pytest.mark.parametrize(("steps", "columns"), [(64, 40), (64, 300), (1056, 130)])
def test_one_engine_serves_any_number_of_rows(steps: int, columns: int) -> None:
    given = quantised(weights(steps, columns), 4, 32, False)
    engine = tw.compile(given.model("rows"), shapes={"rows": (1, 8, 40)}, cache=False)
    assert "block panels (rule)" in str(engine.explain())
    graph = import_onnx(given.model("rows"), shapes={"rows": (1, 8, 40)})
    (node,) = graph.nodes
    words, scales, zeros = (graph.constants[name] for name in node.inputs[1:])
    for rows in (1, 7, 40):
        x = weights(rows, steps)
        (expected,) = node.op.reference(x.astype(float), words, scales.astype(float), zeros)
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-3)


def built(*nodes: tuple[str, object, tuple[str, ...]], **constants: object) -> Graph:
    """A graph of a [2, 8] input x."""
    builder = GraphBuilder("made")
    builder.input("x", TensorType("float32", (2, 8)))
    for name, array in constants.items():
        builder.constant(name, array)
    for name, op, inputs in nodes:
        builder.add(op, *inputs, output=name, name=name)
    return builder.finish((nodes[-1][0],))


def reason(op: object, inputs: tuple[str, ...], **constants: object) -> str:
    graph = quantize_weights(built(("y", op, inputs), **constants), group=8)
    assert operators(graph) == [op.title]
    (report,) = graph.weights
    assert report.bits == 0
    assert report.error == 0
    return report.reason


def test_what_stays_as_it_is_has_a_reason() -> None:
    w = weights(8, 8)
    assert reason(MatMul(), ("w", "x"), w=weights(4, 2)) == "its weights are the first operand"
    assert reason(MatMul(), ("x", "w"), w=weights(3, 8, 4)) == "its weights have 3 axes"
    assert reason(MatMul(), ("x", "w"), w=Splat(1.0, "float32", (8, 4))) == (
        "its weights are one number"
    )
    assert reason(Gemm(alpha=0.5), ("x", "w"), w=w) == "it scales or transposes its data"
    bias = weights(2, 8)
    assert reason(Gemm(beta=0.5), ("x", "w", "b"), w=w, b=bias) == (
        "it scales or transposes its data"
    )
    w[3, 3] = np.inf
    assert reason(MatMul(), ("x", "w"), w=w) == "its weights are not finite"


def test_products_of_data_are_not_weights() -> None:
    turned = ("t", Transpose((1, 0)), ("x",))
    graph = quantize_weights(built(turned, ("y", MatMul(), ("x", "t"))))
    assert graph.weights == ()
    assert operators(graph) == ["Transpose", "MatMul"]


def test_a_transpose_of_weights_goes_with_them() -> None:
    turned = ("t", Transpose((1, 0)), ("w",))
    graph = quantize_weights(built(turned, ("y", MatMul(), ("x", "t")), w=weights(5, 8)), group=8)
    assert operators(graph) == ["BlockMatMul"]
    assert str(graph.types["y"]) == "float32[2, 5]"


@pytest.mark.parametrize(("beta", "expected"), [(0.0, []), (1.0, ["Add"])])
def test_a_bias_is_added_behind_unless_it_counts_nothing(beta: float, expected: list[str]) -> None:
    constants = {"w": weights(8, 5), "b": weights(5)}
    graph = built(("y", Gemm(beta=beta), ("x", "w", "b")), **constants)
    assert operators(quantize_weights(graph, group=8)) == ["BlockMatMul", *expected]


def test_weights_of_several_products_are_rounded_once() -> None:
    nodes = (("a", MatMul(), ("x", "w")), ("b", MatMul(), ("a", "w")), ("y", Add(), ("a", "b")))
    graph = quantize_weights(built(*nodes, w=weights(8, 8)), group=8)
    assert operators(graph) == ["BlockMatMul", "BlockMatMul", "Add"]
    assert len(graph.constants) == 2


@pytest.mark.parametrize("name", ["first", "w0", "h"])
def test_only_what_is_named_is_quantised(name: str) -> None:
    graph = quantize_weights(model(), only=[name])
    assert operators(graph) == ["BlockMatMul", "Relu", "Gemm"]
    assert graph.report.splitlines()[1] == "'second' stays as it is: it is not among `only`"
    assert graph.report.startswith("'first': 4 bits, error ")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"bits": 3}, "quantize_weights: bits=3; expected 2, 4, 8. [quantize-bits]"),
        (
            {"bits": 4, "group": 12},
            "quantize_weights: group=12 of 4 bits is no number of whole words; expected a multiple "
            "of 8. [quantize-group]",
        ),
        (
            {"data_type": "int4"},
            "quantize_weights: data_type='int4'; expected 'float' or 'int8'. [quantize-data-type]",
        ),
        (
            {"method": "best"},
            "quantize_weights: method='best' has no meaning; expected 'rtn' or 'gptq' or "
            "'awq'. [quantize-method]",
        ),
        (
            {"method": "gptq"},
            "quantize_weights: method='gptq' needs data; expected data=None for 'rtn' and inputs "
            "of runs for 'gptq' and 'awq'. [quantize-data]\n"
            "  Hint: data=[{'x': array}, ...] has a dict for each run.",
        ),
        (
            {"data": []},
            "quantize_weights: method='rtn' takes no data; expected data=None for 'rtn' and inputs "
            "of runs for 'gptq' and 'awq'. [quantize-data]\n"
            "  Hint: data=[{'x': array}, ...] has a dict for each run.",
        ),
        (
            {"method": "gptq", "data": {"x": weights(3, 70)}},
            "quantize_weights: data is a dict, the inputs of one run; expected an iterable of "
            "such. [quantize-runs]\n  Hint: data=[item] has one run.",
        ),
        (
            {"method": "gptq", "data": [{"x": np.full((3, 70), np.nan, np.float32)}]},
            "quantize_weights: on a run of data 'x' is not finite; expected numbers that can be "
            "squared. [quantize-finite]",
        ),
        (
            {"method": "gptq", "data": []},
            "quantize_weights: data has no runs; expected at least one. [quantize-no-data]",
        ),
        (
            {"only": ["third"]},
            "quantize_weights: only names 'third', which is no product with constant weights, nor "
            "the weights of one; expected one of: first, second. [quantize-only]",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: dict[str, object], text: str) -> None:
    with pytest.raises(QuantizeError) as caught:
        quantize_weights(model(), **options)
    assert str(caught.value) == f"QuantizeError: {text}"


@pytest.mark.parametrize("symmetric", [True, False])
def test_levels_for_data_keep_more_of_what_a_model_computes(symmetric: bool) -> None:
    proto, mix = model(), RNG.standard_normal((70, 12)).astype(np.float32)
    runs = [
        {"x": (weights(3, 12) @ mix.T + 0.1 * weights(3, 70)).astype(np.float32)} for _ in range(60)
    ]
    errors = {}
    for method, data in (("rtn", None), ("gptq", iter(runs[:50]))):
        graph = quantize_weights(proto, method=method, data=data, symmetric=symmetric)
        wanted = [evaluate(quantize_weights(proto, only=()), run)["y"] for run in runs[50:]]
        found = [evaluate(graph, run)["y"] for run in runs[50:]]
        errors[method] = float(np.linalg.norm(np.subtract(found, wanted)) / np.linalg.norm(wanted))
    assert errors["gptq"] < 0.7 * errors["rtn"]


def test_weights_of_several_products_are_rounded_for_the_data_of_all() -> None:
    w = weights(8, 8)
    nodes = (("a", MatMul(), ("x", "w")), ("y", MatMul(), ("a", "w")))
    runs = [{"x": weights(2, 8)} for _ in range(20)]
    graph = quantize_weights(built(*nodes, w=w), group=8, method="gptq", data=runs)
    rows = np.concatenate([run["x"] for run in runs])
    both = np.concatenate([rows, rows @ w]).astype(np.float64)
    expected = round_for_data(w, both.T @ both, 4, 8, symmetric=True)
    (words,) = (array for name, array in graph.constants.items() if name.endswith("levels"))
    assert (words == packed_words(expected.levels, 4)).all()
    alone = round_for_data(w, rows.T @ rows.astype(np.float64), 4, 8, symmetric=True)
    assert (alone.levels != expected.levels).any()


@pytest.mark.needs_cc
def test_an_engine_is_saved_loaded_and_written_as_c(tmp_path: Path) -> None:
    graph = tw.quantize_weights(model(256, 256), bits=4)
    engine = tw.compile(graph, cache=False)
    x = weights(3, 256)
    expected = engine.run({"x": x})["y"]
    assert engine.verify({"x": x})
    engine.save(tmp_path / "two.twe")
    loaded = tw.load(tmp_path / "two.twe")
    assert (loaded.run({"x": x})["y"] == expected).all()
    plain = tw.compile(model(256, 256), cache=False)
    plain.save(tmp_path / "plain.twe")
    assert engine.memory_plan.weights_bytes * 4 < plain.memory_plan.weights_bytes
    exported = engine.export_c(tmp_path / "c")
    assert (exported / "weights.bin").stat().st_size < 256 * 256
    assert "levels_packed" in (exported / "model.c").read_text()
