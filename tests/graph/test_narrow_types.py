"""Models with element types that are only stored: float8, float4, integers of less than a byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference.ops.op_cast import cast_to

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.tensors import DTYPES
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array, is_only_stored, numpy_type
from tilewright.tir.dtype import dtype
from tilewright.tir.number import integer_range

KINDS = {name: kind for kind, name in DTYPES.items()}  # ONNX's numbers, by our names
NARROW = tuple(name for name in KINDS if is_only_stored(name))
FLOATS = tuple(name for name in NARROW if dtype(name).is_float)
WIDE = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool")


def every_value(name: str) -> Array:
    """All that a type holds."""
    return np.arange(1 << dtype(name).bits).astype(f"u{dtype(name).bytes}").view(numpy_type(name))


def to_round(name: str) -> Array:
    """float32 values: each number of a float type, each tie, their neighbours, what lies beyond."""
    numbers = np.unique(every_value(name).astype(np.float32))
    finite = numbers[np.isfinite(numbers)]
    ties = (finite[1:] + finite[:-1]) / 2
    near = [np.nextafter(ties, np.float32(end)) for end in (-np.inf, np.inf)]
    beyond = finite[-1] * np.array([1.01, 1.03, 1.04, 1.07, 1.2, 2, 1e9], np.float32)
    odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)
    return np.concatenate([finite, ties, *near, beyond, -beyond, odd]).astype(np.float32)


def model(
    nodes: list[onnx.NodeProto],
    feeds: dict[str, Array],
    constants: dict[str, Array] | None = None,
    opset: int = 25,
) -> onnx.ModelProto:
    """What nodes make of these inputs; each last output of a node that none reads is one of the
    model.
    """
    read = {name for node in nodes for name in node.input}
    outputs = [name for node in nodes for name in node.output if name not in read]
    graph = helper.make_graph(
        nodes,
        "narrow",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in feeds.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def same(got: Array, expected: Array, what: str) -> None:
    """Equal bits, but that any NaN is as good as another, and any zero that one becomes."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
    with np.errstate(all="ignore"):
        one, other = (array.astype(np.float64) for array in (got, expected))
    np.testing.assert_array_equal(one, other, err_msg=what)
    np.testing.assert_array_equal(
        np.signbit(one)[one != 0], np.signbit(other)[one != 0], err_msg=what
    )


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_every_value_becomes_what_onnx_makes_of_it() -> None:
    feeds = {name: every_value(name) for name in NARROW}
    pairs = [(a, b) for a in NARROW for b in (*WIDE, *NARROW)]
    nodes = [helper.make_node("Cast", [a], [f"{a}_{b}"], to=KINDS[b]) for a, b in pairs]
    graph = import_onnx(model(nodes, feeds))
    results = evaluate(graph, feeds, dtype=None)
    for a, b in pairs:
        given, got = feeds[a], results[f"{a}_{b}"]
        wide = given.astype(np.float32)
        if dtype(b).is_integer:  # what an integer does not hold has no meaning in ONNX
            low, high = integer_range(dtype(b))
            held = (wide >= low) & (wide <= high)
            same(got[held], wide[held].astype(np.int64).astype(numpy_type(b)), f"{a} {b}")
        else:
            same(got, cast_to(wide, KINDS[b], True), f"{a} {b}")


@pytest.mark.needs_cc
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_every_rounding_is_what_onnx_makes_of_it() -> None:
    """Saturated and not, by NumPy and compiled; from float64 and integers, too."""
    feeds: dict[str, Array] = {name: to_round(name) for name in FLOATS}
    feeds["long"] = np.array([0, 1, -1, 447, 464, 465, 1 << 40, -(1 << 50)])
    feeds["double"] = np.array([464.0, 464.00000001, 1e300, -1e300, np.nan, np.inf, 0.1])
    tried = [(name, to) for name in FLOATS for to in (name,)]
    tried += [("long", "float8_e4m3fn"), ("double", "float8_e4m3fn"), ("double", "float8_e5m2fnuz")]
    nodes = [
        helper.make_node("Cast", [a], [f"{a}_{b}_{s}"], to=KINDS[b], saturate=s)
        for a, b in tried
        for s in (0, 1)
    ]
    proto = model(nodes, feeds)
    results = evaluate(import_onnx(proto), feeds, dtype=None)
    engine = compile(proto, cache=False)
    assert engine.verify()
    compiled = engine.run(feeds)
    for a, b in tried:
        for saturates in (0, 1):
            wide = feeds[a] if b == "float4_e2m1fn" else feeds[a].astype(np.float32)
            expected = cast_to(wide, KINDS[b], bool(saturates))
            name = f"{a}_{b}_{saturates}"
            same(results[name], expected, name)
            same(compiled[name], expected, name)


def passing_on(name: str) -> onnx.GraphProto:
    """The body of a loop that gives what it takes."""
    return helper.make_graph(
        [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [
            helper.make_tensor_value_info("n", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", KINDS[name], [6, 6]),
        ],
        [onnx.ValueInfoProto(name=key) for key in ("on", "t")],
    )


@pytest.mark.sampled(2)
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", ["float8_e4m3fn", "float4_e2m1fn", "int4", "uint2", "bfloat16"])
def test_what_moves_elements_takes_them_as_they_are(name: str) -> None:
    x = np.resize(every_value(name)[::-1], 36).reshape(6, 6)
    branches = {
        key: helper.make_graph(
            [helper.make_node(operator, ["x"], ["z"])], key, [], [onnx.ValueInfoProto(name="z")]
        )
        for key, operator in (("then_branch", "Transpose"), ("else_branch", "Identity"))
    }
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Reshape", ["x", "shape"], ["shaped"]),
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Concat", ["x", "w"], ["joined"], axis=0),
        helper.make_node("Gather", ["x", "at"], ["taken"], axis=0),
        helper.make_node("Slice", ["x", "from", "to"], ["cut"]),
        helper.make_node("Expand", ["row", "large"], ["spread"]),
        helper.make_node("If", ["c"], ["chosen"], **branches),
        helper.make_node("Loop", ["turns", "", "x"], ["kept"], body=passing_on(name)),
    ]
    constants = {
        "shape": np.array([4, 9]),
        "w": x[:2],
        "at": np.array([2, 0]),
        "from": np.array([1, 2]),
        "to": np.array([3, 5]),
        "row": x[0],
        "large": np.array([2, 6]),
    }
    given = {"x": x, "c": np.array(True), "turns": np.array(3)}
    wanted = {
        "same": x,
        "shaped": x.reshape(4, 9),
        "turned": x.T,
        "joined": np.concatenate([x, x[:2]]),
        "taken": x[[2, 0]],
        "cut": x[1:3, 2:5],
        "spread": np.stack([x[0], x[0]]),
        "chosen": x.T,
        "kept": x,
    }
    proto = model(nodes, given, constants)
    engine = compile(proto, cache=False)
    assert engine.verify()
    for results in (evaluate(import_onnx(proto), given, dtype=None), engine.run(given)):
        for key, got in results.items():
            assert got.dtype == x.dtype
            bits = f"u{x.dtype.itemsize}"
            np.testing.assert_array_equal(got.view(bits), wanted[key].copy().view(bits), key)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("way", ["raw", "items", "file"])
def test_a_tensor_is_read_however_it_is_stored(name: str, way: str, tmp_path: Path) -> None:
    for count in (0, 1, 5, len(every_value(name))):
        array = np.resize(every_value(name), count)
        tensor = numpy_helper.from_array(array, "w")
        if way == "items":
            data = np.frombuffer(tensor.raw_data, np.uint8)
            tensor.ClearField("raw_data")
            tensor.int32_data.extend(data.tolist())
        proto = model([helper.make_node("Identity", ["w"], ["y"])], {})
        proto.graph.initializer.append(tensor)
        if way == "file":
            at = tmp_path / f"{count}.onnx"
            onnx.save(
                proto,
                at,
                save_as_external_data=True,
                location=f"{count}.bin",
                size_threshold=0,
            )
            graph = import_onnx(at)
        else:
            graph = import_onnx(proto)
        (got,) = evaluate(graph, {}, dtype=None).values()
        assert got.dtype == array.dtype
        np.testing.assert_array_equal(got.view(np.uint8), array.view(np.uint8))


def test_a_tensor_of_too_few_bytes_is_refused() -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.INT4, dims=[5], raw_data=b"\x10\x32")
    proto = model([helper.make_node("Identity", ["w"], ["y"])], {})
    proto.graph.initializer.append(tensor)
    with pytest.raises(ModelError, match=r"of type int4\[5\] has 2 bytes; expected 3"):
        import_onnx(proto)


def test_nothing_computes_with_what_is_only_stored() -> None:
    feeds = {"x": every_value("int4")}
    for operator, what in (("Add", "expected numbers"), ("And", "expected bool")):
        nodes = [helper.make_node(operator, ["x", "x"], ["y"])]
        with pytest.raises(ModelError, match=f"{what}, got int4"):
            import_onnx(model(nodes, feeds))
    with pytest.raises(ModelError, match="got int4, which is only stored"):
        import_onnx(model([helper.make_node("Exp", ["x"], ["y"])], feeds))


def test_a_value_of_an_input_may_be_told() -> None:
    x = every_value("float8_e5m2fnuz")
    proto = model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": x})
    (got,) = evaluate(import_onnx(proto, constants={"x": x}), {}, dtype=None).values()
    np.testing.assert_array_equal(got, x.astype(np.float32))
