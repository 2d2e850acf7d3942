from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx import importer
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.large_tensors import LARGE, split_model
from tilewright.graph.types import array_of

SIDE = 160
SIZE, LESS = b"\x80\x80\x04", b"\xfb\xff\x03"  # LARGE and five less, as they are encoded
WEIGHTS = np.random.default_rng(0).standard_normal((SIDE, SIDE)).astype(np.float32)
OTHERS = np.random.default_rng(1).standard_normal((SIDE, SIDE)).astype(np.float32)
BIAS = np.random.default_rng(2).standard_normal(SIDE).astype(np.float32)


def model(opset: int = 17) -> onnx.ModelProto:
    """Two products by large weights, and a small bias between them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("MatMul", ["c", "v"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "products",
        [info("x", TensorProto.FLOAT, [4, SIDE])],
        [info("y", TensorProto.FLOAT, [4, SIDE])],
        [numpy_helper.from_array(a, n) for n, a in (("w", WEIGHTS), ("b", BIAS), ("v", OTHERS))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def split_of(data: bytes) -> object:
    return split_model(BytesIO(data), len(data))


def test_the_elements_of_large_tensors_are_read_apart() -> None:
    assert WEIGHTS.nbytes >= LARGE > BIAS.nbytes
    data = model().SerializeToString()
    found = split_model(BytesIO(data), len(data))
    assert found is not None
    kept = [array.tobytes() for array in found.elements.values()]
    assert kept == [WEIGHTS.tobytes(), OTHERS.tobytes()]
    assert len(found.message) < len(data) - WEIGHTS.nbytes - OTHERS.nbytes + 100
    proto = onnx.load_from_string(found.message)
    assert [t.raw_data in found.elements for t in proto.graph.initializer] == [True, False, True]
    for tensor in proto.graph.initializer:
        if tensor.raw_data in found.elements:
            tensor.raw_data = found.elements[tensor.raw_data].tobytes()
    assert proto == model()


@pytest.mark.parametrize("from_file", [False, True])
def test_a_model_is_the_same_as_protobuf_reads_it(tmp_path: Path, from_file: bool) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    graph = import_onnx(path if from_file else path.read_bytes())
    whole = import_onnx(model())
    assert str(graph) == str(whole)
    assert list(graph.constants) == list(whole.constants)
    for name, constant in whole.constants.items():
        found = array_of(graph.constants[name])
        assert not found.flags.writeable
        assert found.flags.aligned
        np.testing.assert_array_equal(found, array_of(constant), strict=True)


def test_protobuf_sees_no_large_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError

    monkeypatch.setattr(importer, "parsed_model", never)
    assert import_onnx(model().SerializeToString()).constants


def test_a_model_that_is_converted_is_read_as_a_whole() -> None:
    graph = import_onnx(model(opset=6).SerializeToString())
    assert any(np.array_equal(array_of(c), WEIGHTS) for c in graph.constants.values())


def test_elements_of_the_wrong_number_are_refused() -> None:
    proto = model()
    proto.graph.initializer[0].raw_data += bytes(4)
    with pytest.raises(ModelError, match=rf"has {WEIGHTS.nbytes + 4} bytes; expected"):
        import_onnx(proto.SerializeToString())


@pytest.mark.parametrize("left", [1, 100, WEIGHTS.nbytes, 2 * WEIGHTS.nbytes])
def test_a_message_that_ends_early_is_left_to_protobuf(left: int) -> None:
    data = model().SerializeToString()
    assert split_of(data[:-left]) is None
    with pytest.raises(ModelError):
        import_onnx(data[:-left])


@pytest.mark.parametrize(
    "data",
    [
        b"\x80",  # a key without an end
        b"\xff" * 11,  # longer than a number may be
        b"\x3a\x05ab",  # a field that ends behind the message
        b"\x3b\x3c",  # a group
        b"\x3a" + SIZE + b"\x2a" + SIZE + bytes(LARGE),  # a tensor that ends behind its graph
        b"\x3a" + SIZE + b"\x12" + LESS + bytes(LARGE - 5) + b"\x28\x01",  # a number that does
    ],
)
def test_what_is_no_such_message_is_left_to_protobuf(data: bytes) -> None:
    assert split_of(data) is None


def test_fields_of_every_wire_type_are_kept() -> None:
    data = b"\x08\x96\x01" + b"\x11" + bytes(range(8)) + b"\x1d" + bytes(4) + b"\x22\x03abc"
    found = split_model(BytesIO(data), len(data))
    assert found is not None
    assert (found.message, found.elements) == (data, {})
