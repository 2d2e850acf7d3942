"""Importing ONNX: what is read, and every way in which a model is refused, word for word."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, ModelFileError, UnsupportedOperator
from tilewright.graph.importers.limits import ImportLimits, told
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.rules.table import RULES
from tilewright.graph.ir.verify import verify
from tilewright.graph.types import Splat
from tilewright.runtime.machine.memory import process_memory
from tilewright.tir.errors import InternalError

Shape = tuple[int | str | None, ...]
Golden = Callable[[str, str], None]


def model_of(
    *nodes: NodeProto,
    shape: Shape | None = (1, 2, 4, 4),
    constants: tuple[TensorProto, ...] = (),
    outputs: tuple[str, ...] = ("y",),
    opset: int = 17,
    elem_type: int = TensorProto.FLOAT,
) -> ModelProto:
    """A model with input "x"."""
    x = helper.make_tensor_value_info("x", elem_type, shape)
    ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph(list(nodes), "g", [x], ends, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(operator: str, inputs: str, output: str = "y", **attributes: object) -> NodeProto:
    return helper.make_node(operator, inputs.split(), [output], name=f"n_{output}", **attributes)


def tensor(name: str, values: object, dtype: str = "int64") -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=dtype), name)


RELU = node("Relu", "x")
WIDE = ImportLimits(value_bytes=1 << 35, constant_bytes=1 << 35)  # whatever this machine has


def refusal(model: object, error: type[ModelError] = ModelError, **options: object) -> str:
    with pytest.raises(error) as caught:
        import_onnx(model, **options)  # type: ignore[arg-type]
    assert type(caught.value) is error
    return str(caught.value)


def test_a_model_may_be_a_path_bytes_or_a_proto(tmp_path: Path) -> None:
    model = model_of(RELU)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    texts = {str(import_onnx(m)) for m in (model, model.SerializeToString(), path, str(path))}
    assert texts == {
        "graph g(x: float32[1, 2, 4, 4]):\n"
        "    # 1 nodes; 0 constants: 0 splats, 0 B in the others\n"
        "    y = Relu(x)  # float32[1, 2, 4, 4]\n"
        "    return y"
    }


def test_a_proto_is_not_written_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes twenty seconds for a hundred megabytes of weights."""

    def written(proto: ModelProto) -> str:
        raise AssertionError("written as text")

    model = model_of(RELU)
    monkeypatch.setattr(ModelProto, "__str__", written)
    with pytest.raises(AssertionError):
        str(model)
    assert import_onnx(model).outputs


def test_every_opset_from_7_to_the_newest_is_read() -> None:
    for opset in range(7, onnx.defs.onnx_opset_version() + 1):
        graph = import_onnx(model_of(node("Relu", "x", "r"), node("Add", "r x"), opset=opset))
        assert [n.op.title for n in graph.nodes] == ["Relu", "Add"]


def test_initialisers_that_are_also_inputs_are_constants() -> None:
    model = model_of(node("Add", "x b"), constants=(tensor("b", [1.0], "float32"),))
    model.graph.input.append(helper.make_tensor_value_info("b", TensorProto.FLOAT, [1]))
    graph = import_onnx(model)
    assert graph.inputs == ("x",)
    assert list(graph.constants) == ["b"]


def test_constants_of_shape_stay_splats() -> None:
    value = tensor("v", [0.5], "float32")
    make = node("ConstantOfShape", "s", "w", value=value)
    zero = node("ConstantOfShape", "s", "z")
    sizes = tensor("s", [1000, 1000, 1000])
    graph = import_onnx(model_of(make, zero, RELU, constants=(sizes,), outputs=("y", "w", "z")))
    assert graph.constants["w"] == Splat(0.5, "float32", (1000, 1000, 1000))
    assert graph.constants["z"] == Splat(0.0, "float32", (1000, 1000, 1000))
    assert graph.constant_bytes == 24


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value": tensor("v", [[1, 2]])}, np.array([[1, 2]])),
        ({"value_float": 0.5}, np.float32(0.5)),
        ({"value_int": 3}, np.int64(3)),
        ({"value_floats": [0.5, 1.5]}, np.array([0.5, 1.5], "float32")),
        ({"value_ints": [3, 4]}, np.array([3, 4])),
    ],
)
def test_constant_nodes_become_constants(attributes: dict[str, object], expected: object) -> None:
    graph = import_onnx(model_of(node("Constant", "", "c", **attributes), RELU, outputs=("y", "c")))
    np.testing.assert_array_equal(graph.constants["c"], expected)
    assert graph.constants["c"].dtype == np.asarray(expected).dtype


@pytest.mark.parametrize(
    ("dtype", "typed"),
    [("float32", True), ("float64", True), ("int32", True), ("uint8", True), ("bool", True)]
    + [(name, False) for name in ("float32", "int16", "uint64", "bool")],
)
def test_tensors_are_read_from_raw_bytes_and_from_typed_fields(dtype: str, typed: bool) -> None:
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    stored = numpy_helper.from_array(values, "c")
    if typed:
        kind = helper.np_dtype_to_tensor_dtype(values.dtype)
        stored = helper.make_tensor("c", kind, values.shape, values.reshape(-1).tolist())
    graph = import_onnx(model_of(RELU, constants=(stored,)))
    np.testing.assert_array_equal(graph.constants["c"], values)
    assert graph.constants["c"].dtype == values.dtype
    assert not graph.constants["c"].flags.writeable


def test_nodes_in_any_order_are_sorted() -> None:
    graph = import_onnx(model_of(node("Relu", "b"), node("Relu", "x", "a"), node("Relu", "a", "b")))
    verify(graph)
    assert [n.outputs for n in graph.nodes] == [("a",), ("b",), ("y",)]


def test_open_sizes_are_closed_by_input_or_by_symbol() -> None:
    model = model_of(RELU, shape=("batch", 3, "side", "side"))
    for shapes in (
        {"x": (2, 3, 8, 8)},
        {"batch": 2, "side": 8},
        {"x": [2, 3, 8, 8], "batch": 2},
    ):
        assert import_onnx(model, shapes=shapes).types["y"].shape == (2, 3, 8, 8)
    assert import_onnx(model_of(RELU, shape=None), shapes={"x": (2, 5)}).types["y"].shape == (2, 5)


def test_all_nodes_that_cannot_be_imported_are_listed_at_once(golden: Golden) -> None:
    odd = helper.make_node("Thing", ["x"], ["a"], name="first", domain="com.example")
    pool = node("AveragePool", "x", "p", kernel_shape=[1, 1])
    pool.output.append("where")
    model = model_of(
        odd,
        node("Frobnicate", "a", "b"),
        node("Conv", "b b", "c", colour=3),
        node("Constant", "", "d", value_string="text"),
        node("Reshape", "x x", "e"),
        node("Dropout", "c", "q"),
        pool,
        node("Concat", "p where", axis=0),
        node("ConstantOfShape", "x", "old"),
        outputs=("b", "d", "e", "q", "y", "old"),
        opset=8,
    )
    golden("errors/onnx_unsupported.txt", refusal(model, UnsupportedOperator))
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model)
    assert [item.operator for item in caught.value.nodes] == [
        "Thing",
        "Frobnicate",
        "Conv",
        "Constant",
        "Reshape",
        "AveragePool",
        "ConstantOfShape",
    ]


def test_types_sizes_versions_and_operators_are_refused_together(golden: Golden) -> None:
    """Each once, with what would help, and nodes of one operator that have one reason as one."""
    inner = helper.make_graph(
        [node("Frobnicate", "x", "f")], "inner", [], [helper.make_empty_tensor_value_info("f")]
    )
    chosen = helper.make_node("If", ["c"], ["d"], name="if", then_branch=inner, else_branch=inner)
    model = model_of(
        *(node("Gargle", "x", f"g{n}") for n in range(5)),
        chosen,
        node("Tile", "x u", "t"),
        node("Add", "z w", "a"),
        node("Gurgle", "x", "unread"),
        shape=("batch", 2, 4, 4),
        constants=(TensorProto(name="w", data_type=TensorProto.FLOAT6E3M2, dims=[2]),),
        outputs=(*(f"g{n}" for n in range(5)), "d", "t", "a"),
        opset=99,
    )
    model.ir_version = 77
    model.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT8E8M0, [2]))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    odd = helper.make_tensor_value_info("u", TensorProto.INT64, [4])
    model.graph.input.append(odd)
    sequence = onnx.ValueInfoProto(name="s")
    sequence.type.sequence_type.SetInParent()
    model.graph.input.append(sequence)
    text = refusal(model, UnsupportedOperator)
    newest, ir = onnx.defs.onnx_opset_version(), int(onnx.IR_VERSION)
    told = text.replace(f"most {newest}\n", "most NEWEST\n").replace(f"most {ir}\n", "most IR\n")
    golden("errors/onnx_together.txt", told)


def test_what_an_operator_cannot_say_is_refused_with_its_reason() -> None:
    vector = tensor("v", [1.0, 2.0], "float32")
    cases = {
        "spatial is 0": node("BatchNormalization", "x v v v v", spatial=0),
        "auto_pad is 'SIDEWAYS'": node("MaxPool", "x", kernel_shape=[1, 1], auto_pad="SIDEWAYS"),
        "input 'x' is not a constant": node("Reshape", "x x"),
    }
    for reason, one in cases.items():
        text = refusal(model_of(one, constants=(vector,), opset=7), UnsupportedOperator)
        assert reason in text
    norm = node("BatchNormalization", "x v v v v")
    norm.output.append("mean")
    read = model_of(norm, constants=(vector,), outputs=("y", "mean"))
    reason = "its output 'mean' is used, which training_mode 1 alone gives"
    assert reason in refusal(read, UnsupportedOperator)


def test_a_version_that_nobody_has_read_yet_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Newer:
        since_version = 99
        has_function = has_context_dependent_function = False

    monkeypatch.setattr(onnx.defs, "get_schema", lambda *_: Newer)
    text = refusal(model_of(RELU), UnsupportedOperator)
    assert "Relu of ai.onnx opset 17: its version 99 is not known; known are 6, 13, 14" in text


def _models() -> dict[str, ModelProto]:
    """A model for each code of the importer."""
    return {**_odd_graphs(), **_odd_numbers()}


def _odd_graphs() -> dict[str, ModelProto]:
    """What is wrong with values, nodes and types."""
    scalar = tensor("s", 1.0, "float32")
    conv = node("Conv", "x w", kernel_shape=[3, 3])
    weights = tensor("w", np.ones((2, 2, 1, 1)), "float32")
    twice = model_of(node("Relu", "x"), node("Relu", "x"))
    sparse = model_of(RELU)
    sparse.graph.sparse_initializer.add()
    no_output = model_of(helper.make_node("Relu", ["x"], [], name="mute"), RELU)
    short = tensor("c", [1, 2, 3])
    short.dims[0] = 4
    negative = tensor("c", [1, 2])
    negative.dims[0] = -2
    typed = helper.make_tensor("c", TensorProto.FLOAT, [2], [1.0, 2.0])
    typed.float_data.append(3.0)
    long_list = tensor("c", np.zeros((1 << 10) + 1))
    deep = tensor("c", np.zeros((1,) * 17))
    return {
        "onnx-attribute-kind": model_of(node("LRN", "x", size=[5])),
        "onnx-attribute-missing": model_of(node("LRN", "x")),
        "onnx-axes": model_of(node("Unsqueeze", "x c"), constants=(tensor("c", [1, 1]),)),
        "onnx-constant-of-shape": model_of(
            node("ConstantOfShape", "c", value=tensor("v", [1, 2])), constants=(tensor("c", [3]),)
        ),
        "onnx-cycle": model_of(node("Add", "x b", "a"), node("Relu", "a", "b"), RELU),
        "onnx-graph": ModelProto(ir_version=8),
        "onnx-input-list": model_of(node("Reshape", "x s"), constants=(scalar,)),
        "onnx-input-missing": model_of(helper.make_node("Add", ["", "x"], ["y"], name="sum")),
        "onnx-input-size": model_of(node("Reshape", "x c"), constants=(long_list,)),
        "onnx-kernel-shape": model_of(conv, constants=(weights,)),
        "onnx-no-output": no_output,
        "onnx-opset": model_of(RELU, opset=0),
        "onnx-output": model_of(RELU, outputs=("z",)),
        "onnx-outputs": model_of(RELU, outputs=("y", "y")),
        "onnx-reshape": model_of(node("Reshape", "x c"), constants=(tensor("c", [-1, 5]),)),
        "onnx-sparse": sparse,
        "onnx-squeeze": model_of(node("Squeeze", "x c"), constants=(tensor("c", [1]),)),
        "onnx-undefined": model_of(node("Add", "x ghost")),
        "build-duplicate": twice,
        "model-rank": model_of(RELU, constants=(deep,)),
        "model-shape": model_of(RELU, constants=(negative,)),
        "model-tensor-size": model_of(RELU, constants=(short,)),
        "model-bytes": model_of(
            node("ConstantOfShape", "c"), constants=(tensor("c", [1 << 40, 1 << 40]),)
        ),
        "conv-channels": model_of(
            node("Conv", "x w"), constants=(tensor("w", np.ones((2, 3, 1, 1)), "float32"),)
        ),
    }


def _odd_numbers() -> dict[str, ModelProto]:
    """What is wrong with how many there are of something, and with how large it is."""
    weights = tensor("w", np.ones((2, 2, 1, 1)), "float32")
    two_inputs = model_of(RELU)
    two_inputs.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]))
    transposed = node("ConvTranspose", "x w", strides=[1, 1, 1])
    ends = tuple(tensor(name, n, "float32") for name, n in (("a", 0), ("b", 2.0**31), ("s", 1)))
    scales = tensor("w", np.array([1, 1, 1.0000001, 3e-38]), "float32")
    return {
        "onnx-attribute-count": model_of(transposed, constants=(weights,)),
        "onnx-input-missing of two": model_of(
            helper.make_node("Mean", ["x", "", "x"], ["y"], name="mean")
        ),
        "onnx-input-whole": model_of(node("CumSum", "x c"), constants=(tensor("c", [], "int64"),)),
        "onnx-inputs": two_inputs,
        "onnx-number": model_of(node("Clip", "x", min=0.5), elem_type=TensorProto.INT32, opset=7),
        "onnx-pads-cut": model_of(
            node("Pad", "x c"), constants=(tensor("c", [0, 0, 0, -(2**63), 0, 0, 0, 0]),)
        ),
        "onnx-pads-reflect": model_of(
            node("Pad", "x c", mode="reflect"), constants=(tensor("c", [0, 100, *[0] * 6]),)
        ),
        "onnx-resize-places": model_of(
            helper.make_node("Resize", ["x", "", "w"], ["y"], name="n_y"), constants=(scales,)
        ),
        "model-computed-bytes": model_of(node("Range", "a b s"), RELU, constants=ends),
    }


def test_malformed_models_are_refused_word_for_word(golden: Golden) -> None:
    texts = []
    for code, model in _models().items():
        text = refusal(model, limits=WIDE).replace(
            f"to {onnx.defs.onnx_opset_version()}.", "to NEWEST."
        )
        assert f"[{code.split()[0]}]" in text
        texts.append(text)
    golden("errors/onnx_malformed.txt", "\n\n".join(texts))


def test_a_node_may_leave_out_any_of_several_outputs() -> None:
    nodes = (helper.make_node("TopK", ["x", "k"], ["", "places"]), node("Cast", "places", to=1))
    graph = import_onnx(model_of(*nodes, constants=(tensor("k", [2]),)))
    assert graph.types["y"].shape[-1] == 2


def test_a_typed_field_of_another_length_is_refused() -> None:
    typed = helper.make_tensor("c", TensorProto.FLOAT, [2], [1.0, 2.0])
    typed.float_data.append(3.0)
    assert "float32[2] has 3 elements; expected 2. [model-tensor-size]" in refusal(
        model_of(RELU, constants=(typed,))
    )


def test_limits_hold_before_memory_is_taken(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of(RELU), path)
    two = (tensor("a", [1.0], "float32"), tensor("b", [1.0], "float32"))
    texts = [
        refusal(model_of(RELU), limits=ImportLimits(nodes=0)),
        refusal(model_of(RELU, constants=two), limits=ImportLimits(constant_bytes=7)),
        refusal(model_of(RELU), limits=ImportLimits(value_bytes=100)),
        refusal(path, ModelFileError, limits=ImportLimits(file_bytes=20)).replace(
            str(tmp_path), "DIR"
        ),
    ]
    size = str(path.stat().st_size)
    golden("errors/onnx_limits.txt", "\n\n".join(texts).replace(size, "SIZE"))
    huge = model_of(
        node("Unsqueeze", "x c", "a"),
        node("Unsqueeze", "x d", "b"),
        node("Mul", "a b"),
        shape=(1 << 10, 1 << 10, 1 << 10),
        constants=(tensor("c", [0, 1, 2]), tensor("d", [3, 4, 5])),
    )
    assert "value 'y'" in refusal(huge)


def test_files_that_are_no_models_are_refused(tmp_path: Path, golden: Golden) -> None:
    missing = refusal(tmp_path / "none.onnx", ModelFileError).replace(str(tmp_path), "DIR")
    garbage = refusal(b"\xff\xfe this is no model")
    bad_name = model_of(RELU).SerializeToString().replace(b"n_y", b"n\xff\xfe")
    golden("errors/onnx_files.txt", "\n\n".join([missing, garbage, refusal(bad_name)]))
    with pytest.raises(OSError, match="cannot be read"):
        import_onnx(tmp_path)


def test_what_is_no_regular_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        for read in (import_onnx, compile):
            with pytest.raises(ModelFileError) as caught:
                read(path)
            assert str(caught.value) == (
                f"ModelFileError: model: file '{path}' cannot be read: it is not a regular file. "
                "[onnx-file-kind]"
            )


def test_a_file_that_is_larger_than_a_model_can_be_is_not_read(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse.onnx"
    with sparse.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ModelFileError, match=r"expected at most 2147483647. \[onnx-file-size\]"):
        compile(sparse)


def test_a_path_that_no_file_can_have_is_refused() -> None:
    for read in (import_onnx, compile):
        with pytest.raises(ModelFileError, match=r"embedded null byte. \[onnx-file\]"):
            read("model\0.onnx")


def test_a_rule_that_fails_is_our_defect_and_names_its_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def build(node: object) -> object:
        raise ValueError("two and two are five")

    monkeypatch.setitem(RULES, "Relu", replace(RULES["Relu"], build=build))
    with pytest.raises(InternalError) as caught:
        import_onnx(model_of(RELU))
    assert str(caught.value).splitlines()[0] == (
        "InternalError: import: the rule of node 'n_y' (Relu) failed: ValueError: two and two are "
        "five. [onnx-rule]"
    )


def test_limits_are_those_of_the_memory_of_this_process() -> None:
    limits = ImportLimits()
    assert limits.value_bytes == limits.constant_bytes == min(1 << 35, process_memory())


def test_shapes_that_do_not_fit_the_model_are_refused(golden: Golden) -> None:
    named = model_of(RELU, shape=("batch", 3, "side", "side"))
    texts = [
        refusal(model_of(RELU, shape=None)),
        refusal(named, shapes={"bach": 2}),
        refusal(named, shapes={"z": (1, 2)}),
        refusal(named, shapes={"batch": -1}),
        refusal(named, shapes={"x": (1, 3, 8)}),
        refusal(named, shapes={"x": (1, 4, 8, 8)}),
        refusal(named, shapes={"x": (1, 3, 8, 9)}),
        refusal(named, shapes={"x": (2, 3, 8, 8), "batch": 1}),
    ]
    golden("errors/onnx_shapes.txt", "\n\n".join(texts))


@pytest.mark.parametrize("name", ["COMPLEX64", "FLOAT6E2M3", "FLOAT8E8M0", "STRING"])
def test_types_that_are_not_read_are_refused(name: str) -> None:
    model = model_of(RELU, elem_type=TensorProto.DataType.Value(name))
    found = refusal(model, UnsupportedOperator)
    assert (
        f"    input 'x': it has element type {told(name.lower())}; expected one of bool, " in found
    )
    assert f" {name.lower()}" not in found.split("expected one of")[1]


def test_outputs_that_nobody_reads_are_not_computed() -> None:
    pool = helper.make_node("MaxPool", ["x"], ["y", "where"], kernel_shape=[2, 2])
    assert [n.op.title for n in import_onnx(model_of(pool)).nodes] == ["MaxPool"]
    both = model_of(pool, outputs=("y", "where"))
    assert [n.op.title for n in import_onnx(both).nodes] == ["MaxPoolPlaces"]
