"""Products of bytes whose operands both are inputs, as engines: QDQ, QLinearMatMul, MatMulInteger.

What ONNX says is its reference evaluator's; a fused QDQ product has the bits of QLinearMatMul.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.graph.types import Array
from tilewright.runtime.machine.host import host
from tilewright.tir.target.target import Target, covers

pytestmark = [pytest.mark.needs_cc, pytest.mark.sampled(5)]

TYPES = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int32": TensorProto.INT32}
R, S, T = (np.float32(value) for value in (0.02, 0.03, 8.0))
ZERO = 100  # of the result
LEFT, RIGHT = (2, 3, 9, 13), (2, 3, 13, 17)
TARGETS = ("c:avx512+vnni", "c:avx2+vnni", "c:avx2")
KINDS = ("MatMulInteger", "QLinearMatMul", "QDQ")
# c:scalar multiplies the floats of QDQ, in an order of its own
EACH = (
    *((kind, name) for kind in KINDS for name in TARGETS),
    *((k, "c:scalar") for k in KINDS[:2]),
)


def model(kind: str, types: tuple[str, str], zeros: tuple[int, int]) -> onnx.ModelProto:
    """Inputs a and b, a product, y."""
    a, b = types
    numbers = {
        "r": R,
        "s": S,
        "t": T,
        "p": np.array(zeros[0], a),
        "q": np.array(zeros[1], b),
        "z": np.array(ZERO, "uint8"),
    }
    operands = ["a", "r", "p", "b", "s", "q"]
    nodes = {
        "MatMulInteger": [helper.make_node("MatMulInteger", ["a", "b", "p", "q"], ["y"])],
        "QLinearMatMul": [helper.make_node("QLinearMatMul", [*operands, "t", "z"], ["y"])],
        "QDQ": [
            helper.make_node("DequantizeLinear", operands[:3], ["real_a"]),
            helper.make_node("DequantizeLinear", operands[3:], ["real_b"]),
            helper.make_node("MatMul", ["real_a", "real_b"], ["real_y"]),
            helper.make_node("QuantizeLinear", ["real_y", "t", "z"], ["y"]),
        ],
    }[kind]
    made = "int32" if kind == "MatMulInteger" else "uint8"
    graph = helper.make_graph(
        nodes,
        "net",
        [_value("a", a, LEFT), _value("b", b, RIGHT)],
        [_value("y", made, (*LEFT[:-1], RIGHT[-1]))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _value(name: str, kind: str, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TYPES[kind], shape)


def data(kind: str, shape: tuple[int, ...], which: str, seed: int) -> Array:
    """Bytes of the whole range, at its ends, or at one end alone."""
    ends = np.iinfo(kind)
    drawn = np.random.default_rng(seed).integers(ends.min, ends.max + 1, shape).astype(kind)
    if which == "most":
        return np.full(shape, ends.max, kind)
    middle = (int(ends.min) + ends.max) // 2
    return drawn if which == "random" else np.where(drawn > middle, ends.max, ends.min).astype(kind)


def target_here(name: str) -> str:
    """The target; skips where this machine lacks it."""
    if not covers(host().instructions, Target.parse(name).instructions):
        pytest.skip(f"this machine has no {name}")
    return name


@pytest.mark.sampled(11)
@pytest.mark.parametrize(("kind", "name"), EACH)
@pytest.mark.parametrize("left", ["int8", "uint8"])
@pytest.mark.parametrize("right", ["int8", "uint8"])
@pytest.mark.parametrize("zeros", [(0, 0), (3, 121), (127, 0)])
def test_a_product_has_the_bits_of_onnx(
    zeros: tuple[int, int], right: str, left: str, kind: str, name: str
) -> None:
    target = target_here(name)
    engine = tw.compile(model(kind, (left, right), zeros), target, verify="off", cache=False)
    said = "QLinearMatMul" if kind == "QDQ" else kind
    reference = ReferenceEvaluator(model(said, (left, right), zeros))
    for which in ("random", "ends", "most"):
        given = {"a": data(left, LEFT, which, 0), "b": data(right, RIGHT, which, 1)}
        (wanted,) = reference.run(None, given)
        np.testing.assert_array_equal(engine(given["a"], given["b"]), wanted, which)


@pytest.mark.parametrize(
    ("name", "unit"), [("c:avx512+vnni", "dpbusd"), ("c:avx2+vnni", "dpbusd"), ("c:avx2", "madd_")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_an_instruction_multiplies_bytes_and_no_float_is_stored(
    kind: str, name: str, unit: str
) -> None:
    engine = tw.compile(model(kind, ("uint8", "int8"), (0, 0)), name, verify="off", cache=False)
    assert unit in engine.source
    assert "float *restrict a" not in engine.source
    assert not any(line.startswith("cast_mul") for line in map(str, engine.explain().kernels))


def test_floats_are_multiplied_where_a_row_is_alone() -> None:
    one = model("QDQ", ("uint8", "int8"), (0, 0))
    for value in (one.graph.input[0], one.graph.output[0]):
        value.type.tensor_type.shape.dim[2].dim_value = 1
    engine = tw.compile(one, "c:avx512+vnni", verify="off", cache=False)
    assert "dpbusd" not in engine.source


@pytest.mark.parametrize("name", ["c:avx512+vnni", "c:avx2"])
def test_a_run_may_decide_how_many_matrices_there_are(name: str) -> None:
    target = target_here(name)
    types, zeros = ("uint8", "uint8"), (120, 131)
    one = model("QLinearMatMul", types, zeros)
    for value in (*one.graph.input, *one.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    engine = tw.compile(one, target, shapes={"batch": (1, 2, 5)}, verify="off", cache=False)
    assert any(unit in engine.source for unit in ("dpbusd", "madd_"))
    reference = ReferenceEvaluator(one)
    for count in (1, 2, 5):
        a, b = (data("uint8", (count, *s[1:]), "random", count) for s in (LEFT, RIGHT))
        (wanted,) = reference.run(None, {"a": a, "b": b})
        np.testing.assert_array_equal(engine(a, b), wanted)
