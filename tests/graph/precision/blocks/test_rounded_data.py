"""Rounded data: which products multiply bytes, on which targets and why not,
and that an engine computes what onnxruntime computes at accuracy level 4.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tests.isas import HERE
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.block_matmul import BlockMatMul, packed_words
from tilewright.graph.ops.functions import Cast
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.rounded_blocks import RoundBlocks
from tilewright.graph.precision.blocks.rounded_data import round_data
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType
from tilewright.tir.target.target import Target

from ..onnxruntime_blocks import quantised

VNNI = Target.parse("c:avx512+vnni")
RNG = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def at_level(model: onnx.ModelProto, level: int) -> onnx.ModelProto:
    """A model of MatMulNBits at another accuracy level."""
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("accuracy_level", level))
    return model


def two_products(data: str = "int8", kind: str = "float32", group: int = 32) -> Graph:
    """Two products of one value, whose results are added."""
    builder = GraphBuilder("two")
    builder.input("x", TensorType(kind, (3, 70)))
    for name, dtype in (("a", "uint8"), ("b", kind)):
        levels = RNG.integers(0, 16, (96, 40), np.uint8)
        builder.constant(f"{name}.levels", packed_words(levels, 4))
        builder.constant(f"{name}.scales", (numbers(3, 40) / 10).astype(kind))
        builder.constant(f"{name}.zeros", RNG.integers(0, 16, (3, 40)).astype(dtype))
        tables = (f"{name}.{what}" for what in ("levels", "scales", "zeros"))
        builder.add(BlockMatMul(4, group, data), "x", *tables, output=name, name=f"product {name}")
    builder.add(Add(), "a", "b", output="y")
    return builder.finish(("y",))


def test_products_of_one_value_round_it_once() -> None:
    made = round_data(two_products(), VNNI, strict=False)
    operators = [type(node.op).__name__ for node in made.graph.nodes]
    assert operators == ["RoundBlocks", "RoundedBlockMatMul", "RoundedBlockMatMul", "Add"]
    assert made.graph.nodes[0].op == RoundBlocks(32, "int8")
    assert made.notes == (
        "data of 2 product(s) with weights of few bits are rounded to bytes, each block with a "
        "scale, as the model permits; the engine is compared with that",
    )
    pairs = round_data(two_products(), Target.parse("c:avx2"), strict=False)
    assert pairs.graph.nodes[0].op == RoundBlocks(32, "int16")


@pytest.mark.parametrize("target", ["c:avx512+vnni", "c:avx2"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_what_is_computed_is_near_the_product_of_floats(kind: str, target: str) -> None:
    graph = two_products(kind=kind)
    made = round_data(graph, Target.parse(target), strict=False).graph
    assert str(made.types["y"]) == f"{kind}[3, 40]"
    assert sum(isinstance(node.op, Cast) for node in made.nodes) == (3 if kind != "float32" else 0)
    x = numbers(3, 70).astype(kind)
    found, wanted = (evaluate(one, {"x": x})["y"] for one in (made, graph))
    error = np.linalg.norm(found - wanted) / np.linalg.norm(wanted)
    assert 1e-4 < error < 0.01


@pytest.mark.parametrize(
    ("graph", "target", "strict", "reason"),
    [
        (two_products(), "c:avx512+vnni", True, "the build is strict"),
        (
            two_products(),
            "c:avx512",
            False,
            "'c:avx512' has no instruction that multiplies bytes in groups",
        ),
        (
            two_products(),
            "c:neon",
            False,
            "'c:neon' has no instruction that multiplies bytes in groups",
        ),
    ],
)
def test_others_multiply_floats_for_a_reason(
    graph: Graph, target: str, strict: bool, reason: str
) -> None:
    made = round_data(graph, Target.parse(target), strict=strict)
    assert made.graph is graph
    assert made.notes == (
        "data of 2 product(s) with weights of few bits may be rounded to bytes, and stay floats: "
        f"{reason}",
    )


def test_products_that_do_not_permit_it_stay_as_they_are() -> None:
    graph = two_products(data="")
    made = round_data(graph, VNNI, strict=False)
    assert made.graph is graph
    assert made.notes == ()


def test_weights_of_a_run_stay_as_they_are() -> None:
    builder = GraphBuilder("given")
    builder.input("x", TensorType("float32", (3, 32)))
    builder.input("scales", TensorType("float32", (1, 5)))
    builder.constant("levels", packed_words(RNG.integers(0, 16, (32, 5), np.uint8), 4))
    builder.add(BlockMatMul(4, 32, "int8"), "x", "levels", "scales", output="y")
    graph = builder.finish(("y",))
    made = round_data(graph, VNNI, strict=False)
    assert made.graph is graph
    assert made.notes[0].endswith("stay floats: a run computes the weights")


def test_values_and_words_are_told_apart_by_blocks_and_bits() -> None:
    builder = GraphBuilder("several")
    builder.input("x", TensorType("float32", (3, 96)))
    builder.input("z", TensorType("float32", (3, 48)))
    builder.constant("levels", packed_words(RNG.integers(0, 16, (96, 40), np.uint8), 4))
    builder.constant("scales", numbers(3, 40))
    builder.constant("others", numbers(6, 40))
    builder.add(BlockMatMul(4, 32, "int8"), "x", "levels", "scales", output="a")
    builder.add(BlockMatMul(4, 16, "int8"), "x", "levels", "others", output="b")
    builder.add(BlockMatMul(8, 16, "int8"), "z", "levels", "scales", output="c")
    builder.add(Add(), "a", "b", output="ab")
    builder.add(Add(), "ab", "c", output="y")
    graph = builder.finish(("y",))
    made = round_data(graph, VNNI, strict=False).graph
    rounded = [node.op for node in made.nodes if isinstance(node.op, RoundBlocks)]
    assert rounded == [RoundBlocks(32), RoundBlocks(16), RoundBlocks(16)]
    x, z = numbers(3, 96), numbers(3, 48)
    found, wanted = (evaluate(one, {"x": x, "z": z})["y"] for one in (made, graph))
    assert np.linalg.norm(found - wanted) < 0.02 * np.linalg.norm(wanted)


@pytest.mark.parametrize(
    ("kind", "group", "reason"),
    [("float64", 32, "they are float64"), ("float32", 65544, "a block has more than 65536 steps")],
)
def test_data_that_bytes_cannot_stand_for_stay_floats(kind: str, group: int, reason: str) -> None:
    builder = GraphBuilder("one")
    builder.input("x", TensorType(kind, (1, group)))
    builder.constant("levels", packed_words(np.zeros((group, 2), np.uint8), 4))
    builder.constant("scales", np.ones((1, 2), kind))
    builder.add(BlockMatMul(4, group, "int8"), "x", "levels", "scales", output="y")
    graph = builder.finish(("y",))
    made = round_data(graph, VNNI, strict=False)
    assert made.graph is graph
    assert made.notes[0].endswith(f"stay floats: {reason}")


def test_accuracy_level_4_alone_permits_it() -> None:
    given = quantised(numbers(64, 40), 4, 32, False)
    for level, data in ((0, ""), (1, ""), (4, "int8")):
        (node,) = import_onnx(at_level(given.model(3), level)).nodes
        assert node.op == BlockMatMul(4, 32, data)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.sampled(3)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("bits", "group"), [(4, 32), (4, 16), (4, 128), (8, 32)])
def test_an_engine_computes_what_onnxruntime_does_at_level_4(
    bits: int, group: int, symmetric: bool
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    given = quantised(numbers(100, 70), bits, group, symmetric)
    for rows in (1, 17):
        model = at_level(given.model(rows), 4)
        engine = tw.compile(model, cache=False)
        x = numbers(rows, 100)
        found = engine.run({"x": x})["y"]
        assert engine.verify({"x": x})
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        (theirs,) = session.run(None, {"x": x})
        exact = evaluate(import_onnx(given.model(rows)), {"x": x})["y"]
        largest = float(np.abs(exact).max())
        # of two systems that round data alike; where onnxruntime does not, both are this near
        assert np.abs(found - theirs).max() <= 0.02 * largest
        assert np.abs(found - exact).max() <= 0.01 * largest


@pytest.mark.needs_cc
@pytest.mark.parametrize("target", [one for one in HERE if one in ("c:avx2", "c:avx512+vnni")])
def test_an_engine_says_what_it_rounds_and_is_saved(target: str, tmp_path: Path) -> None:
    graph = tw.quantize_weights(plain(), data_type="int8")
    engine = tw.compile(graph, target=target, cache=False)
    assert "data of 1 product(s)" in str(engine.explain())
    assert "block dots (rule)" in str(engine.explain())
    x = numbers(3, 64)
    found = engine.run({"x": x})["y"]
    assert engine.verify({"x": x})
    strict = tw.compile(graph, target=target, strict=True, cache=False)
    assert "stay floats: the build is strict" in str(strict.explain())
    wanted = evaluate(graph, {"x": x})["y"]
    apart = [np.abs(own.run({"x": x})["y"] - wanted).max() for own in (engine, strict)]
    assert apart[1] < 1e-5 < apart[0]
    engine.save(tmp_path / "plain.twe")
    assert (tw.load(tmp_path / "plain.twe").run({"x": x})["y"] == found).all()


def plain() -> Graph:
    """y = x W."""
    builder = GraphBuilder("plain")
    builder.input("x", TensorType("float32", (3, 64)))
    builder.constant("w", numbers(64, 40))
    builder.add(MatMul(), "x", "w", output="y", name="product")
    return builder.finish(("y",))


@pytest.mark.needs_cc
def test_one_engine_serves_any_number_of_rows() -> None:
    given = quantised(numbers(64, 130), 4, 32, False)
    model = at_level(given.model("rows"), 4)
    engine = tw.compile(model, shapes={"rows": (1, 8, 40)}, cache=False)
    assert "block dots (rule)" in str(engine.explain())
    for rows in (1, 7, 8, 40):
        x = numbers(rows, 64)
        alone = tw.compile(at_level(given.model(rows), 4), cache=False).run({"x": x})["y"]
        np.testing.assert_allclose(engine.run({"x": x})["y"], alone, rtol=1e-5, atol=1e-4)
