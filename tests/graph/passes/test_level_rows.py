"""LevelRows: tables of levels whose rows Gather takes stay packed, with the bits of the table."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.ir import Graph
from tilewright.graph.passes.level_rows import LevelRows
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

TYPES = {
    "int4": TensorProto.INT4,
    "uint4": TensorProto.UINT4,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
}
ROWS = 40
INDICES = np.array([[0, -1, 7], [39, -40, 7]])


def model(
    kind: str,
    columns: int = 64,
    block: int = 16,
    *,
    has_zeros: bool = True,
    taken: Sequence[int] = INDICES.shape,
    axis: int = 0,
) -> onnx.ModelProto:
    """DequantizeLinear of a table in blocks of a row, or by row (block 0), and a Gather."""
    rng, ends = np.random.default_rng(0), ml_dtypes.iinfo(kind)
    low, high = int(ends.min), int(ends.max) + 1
    shape = (ROWS, -(-columns // block)) if block else (ROWS,)
    scales = rng.standard_normal(shape).astype(np.float32)
    scales.reshape(-1)[:2] = 0.0, -0.0
    levels, zeros = (rng.integers(low, high, of) for of in ((ROWS, columns), shape))
    tables = [
        helper.make_tensor("levels", TYPES[kind], (ROWS, columns), levels.reshape(-1)),
        numpy_helper.from_array(scales, "scales"),
    ]
    names = ["levels", "scales"]
    if has_zeros:
        tables.append(helper.make_tensor("zeros", TYPES[kind], shape, zeros.reshape(-1)))
        names.append("zeros")
    along = {"axis": 1, "block_size": block} if block else {"axis": 0}
    nodes = [
        helper.make_node("DequantizeLinear", names, ["table"], **along),
        helper.make_node("Gather", ["table", "i"], ["y"], axis=axis),
    ]
    result = (*taken, columns) if axis == 0 else (ROWS, *taken)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("i", TensorProto.INT64, taken)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, result)],
        tables,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def table_bytes(graph: Graph) -> int:
    """What its constants take."""
    return sum(int(graph.types[name].bytes) for name in graph.constants)


def bits(array: Array) -> Array:
    """0 and -0 are two."""
    return np.ascontiguousarray(array).view(np.int32)


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize(("columns", "block"), [(64, 16), (50, 16), (33, 0), (64, 0), (48, 3)])
@pytest.mark.parametrize("has_zeros", [True, False])
def test_rows_have_the_bits_of_the_table(
    has_zeros: bool, columns: int, block: int, kind: str
) -> None:
    said = model(kind, columns, block, has_zeros=has_zeros)
    before = import_onnx(said)
    after = LevelRows()(before)
    assert LevelRows()(after) is after
    assert after.types["y"] == before.types["y"]
    (wanted,) = ReferenceEvaluator(said).run(None, {"i": INDICES})
    found = evaluate(after, {"i": INDICES}, dtype=None)["y"]
    np.testing.assert_array_equal(bits(found), bits(wanted))


def test_blocks_that_differ_in_the_sign_of_0_alone_are_two() -> None:
    said = model("int8", 32, 16, has_zeros=False)
    (scales,) = (one for one in said.graph.initializer if one.name == "scales")
    wanted = np.tile(np.array([0.0, -0.0], np.float32), (ROWS, 1))
    scales.CopyFrom(numpy_helper.from_array(wanted, "scales"))
    after = LevelRows()(import_onnx(said))
    (expected,) = ReferenceEvaluator(said).run(None, {"i": INDICES})
    found = evaluate(after, {"i": INDICES}, dtype=None)["y"]
    np.testing.assert_array_equal(bits(found), bits(expected))


@pytest.mark.parametrize(
    ("kind", "packed"), [("int4", 32), ("uint4", 32), ("int8", 64), ("uint8", 64)]
)
def test_a_row_takes_the_bytes_of_its_levels_zeros_and_scales(kind: str, packed: int) -> None:
    """Beside the shifts, the mask and numbers of the levels of a byte."""
    after = LevelRows()(import_onnx(model(kind)))
    small = 3
    assert 0 <= table_bytes(after) - ROWS * (packed + 4 * 4 + 4 * 4) <= small


@pytest.mark.parametrize(
    "said",
    [
        model("int8", block=1),  # as large as floats
        model("int8", taken=(ROWS, 2)),  # more rows than the table has
        model("int8", taken=(3,), axis=1),  # columns
    ],
)
def test_other_tables_stay_as_they_are(said: onnx.ModelProto) -> None:
    graph = import_onnx(said)
    assert LevelRows()(graph) is graph


@pytest.mark.needs_cc
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", ["int4", "uint8"])
def test_an_engine_keeps_the_table_packed(kind: str, strict: bool) -> None:
    said = model(kind, 256, 32)
    engine = tw.compile(said, "c:scalar", strict=strict, verify="off", cache=False)
    (wanted,) = ReferenceEvaluator(said).run(None, {"i": INDICES})
    np.testing.assert_array_equal(bits(engine(INDICES)), bits(wanted))
    size = ROWS * (256 * (4 if kind == "int4" else 8) // 8 + 2 * 4 * 8)
    (weights,) = (note for note in engine.explain().notes if note.startswith("weights"))
    assert f"weights {size / 1024:.1f} KiB" in weights


def test_a_run_may_decide_how_many_rows_are_read() -> None:
    said = model("uint4", 50, 16)
    for value in (said.graph.input[0], said.graph.output[0]):
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    engine = tw.compile(said, "python", shapes={"n": (1, 2, 4)}, verify="off", cache=False)
    for count in (1, 4):
        rows = np.resize(INDICES, (count, 3))
        (wanted,) = ReferenceEvaluator(said).run(None, {"i": rows})
        np.testing.assert_array_equal(bits(engine(rows)), bits(wanted))
