"""WordProducts: products of bytes that a run decides, as those of words, with the same sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.graph.passes.pipeline import PIPELINE, run_by
from tilewright.graph.passes.word_products import WordProducts
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned
from tilewright.tir.target.target import Target

Lines = Callable[[Graph], list[str]]
ROWS, STEPS, COLUMNS = 3, 6, 9
ENDS = {"int8": (-128, 127), "uint8": (0, 255)}


def product(
    left: str,
    right: str,
    rows: int = ROWS,
    steps: int = STEPS,
    zeros: tuple[int, int] = (0, 0),
) -> Graph:
    """A product of two inputs."""
    builder = GraphBuilder("net")
    a = builder.input("a", TensorType(left, (2, rows, steps)))
    b = builder.input("b", TensorType(right, (2, steps, COLUMNS)))
    return builder.finish((builder.add(IntegerMatMul(zeros), a, b, output="y"),))


def pass_for(kind: str) -> WordProducts:
    """The pass of the pipeline that makes data of this type."""
    (found,) = (one for one in PIPELINE if isinstance(one, WordProducts) and one.data == kind)
    return found


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("left", list(ENDS))
@pytest.mark.parametrize("right", list(ENDS))
@pytest.mark.parametrize("zeros", [(0, 0), (128, 0), (5, -7), (-128, 128)])
def test_sums_are_those_of_the_bytes(
    zeros: tuple[int, int], right: str, left: str, kind: str
) -> None:
    graph = product(left, right, zeros=zeros)
    one = pass_for(kind)
    after = one(graph)
    (node,) = (node for node in after.nodes if isinstance(node.op, IntegerMatMul))
    assert node.op.in_words
    assert [after.types[value].dtype for value in node.inputs] == [kind, "uint8"]
    assert one(after) is after
    for a in ENDS[left]:
        for b in ENDS[right]:
            given = {
                "a": np.full((2, ROWS, STEPS), a, left),
                "b": np.full((2, STEPS, COLUMNS), b, right),
            }
            found = evaluate(after, given, dtype=None)
            for name, wanted in evaluate(graph, given, dtype=None).items():
                np.testing.assert_array_equal(found[name], wanted)
            assert found["y"][0, 0, 0] == STEPS * (a - zeros[0]) * (b - zeros[1])


def test_sums_are_of_what_is_multiplied(lines: Lines) -> None:
    """And a zero of 128 is gone with the step to a type with a sign."""
    assert lines(pass_for("int8")(product("uint8", "uint8", zeros=(130, 131)))) == [
        "y.cast = Cast[to='int32'](a)",
        "y.add = Add(y.cast, splat(-128))",
        "y.cast_1 = Cast[to='int8'](y.add)",
        "y.integersum = IntegerSum[axes=(2,)](y.cast_1)",
        "y.mul = Mul(y.integersum, splat(131))",
        "y.integersum_1 = IntegerSum[axes=(1,)](b)",
        "y.mul_1 = Mul(y.integersum_1, splat(2))",
        "y.sub = Sub(y.mul_1, splat(1572))",
        "y.integermatmul = IntegerMatMul[in_words=True](y.cast_1, b)",
        "y.sub_1 = Sub(y.integermatmul, y.mul)",
        "y = Sub(y.sub_1, y.sub)",
    ]
    assert lines(pass_for("int8")(product("uint8", "uint8", zeros=(128, 0))))[-1] == (
        "y = IntegerMatMul[in_words=True](y.cast_1, b)"
    )


def test_words_of_16_bits_hold_what_is_left_of_data(lines: Lines) -> None:
    """So that no columns are summed; the other zero takes sums of rows."""
    assert lines(pass_for("int16")(product("uint8", "uint8", zeros=(130, 131)))) == [
        "y.cast = Cast[to='int16'](a)",
        "y.sub = Sub(y.cast, splat(130))",
        "y.integersum = IntegerSum[axes=(2,)](y.sub)",
        "y.mul = Mul(y.integersum, splat(131))",
        "y.integermatmul = IntegerMatMul[in_words=True](y.sub, b)",
        "y = Sub(y.integermatmul, y.mul)",
    ]
    assert lines(pass_for("int16")(product("int8", "uint8", zeros=(-128, 0))))[-1] == (
        "y = IntegerMatMul[in_words=True](y.sub, b)"
    )


def test_bytes_that_processors_multiply_stay_as_they_are(lines: Lines) -> None:
    after = pass_for("int8")(product("int8", "uint8"))
    assert lines(after)[0] == "y = IntegerMatMul[in_words=True](a, b)"


@pytest.mark.parametrize("graph", [product("int8", "uint8", rows=1), product("int8", "int8", 4, 3)])
def test_one_row_and_a_step_or_two_stay(graph: Graph) -> None:
    assert pass_for("int8")(graph) is graph


def test_constants_are_packed_when_a_kernel_is_built() -> None:
    """As they are, or moved by a node."""
    builder = GraphBuilder("net")
    a = builder.input("a", TensorType("uint8", (8, STEPS)))
    w = builder.constant("w", owned(np.ones((STEPS, COLUMNS), np.int8)))
    x = builder.input("x", TensorType("uint8", (8, STEPS)))
    builder.add(IntegerMatMul(), a, w, output="y")
    builder.add(IntegerMatMul(), x, w, output="z")
    graph = builder.finish(("y", "z"))
    assert pass_for("int8")(graph) is graph


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("c:avx512+vnni", "int8"),
        ("c:avx2+vnni", "int8"),
        ("c:avx2", "int16"),
        ("c:neon+i8mm", "int8"),
        ("c:neon+dotprod", "uint8"),
        ("c:avx512", ""),
        ("c:scalar", ""),
    ],
)
def test_each_target_has_the_form_that_its_instruction_takes(target: str, kind: str) -> None:
    found = [
        one.data for one in run_by(PIPELINE, Target.parse(target)) if isinstance(one, WordProducts)
    ]
    assert found == ([kind] if kind else [])
