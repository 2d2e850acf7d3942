"""AWQ: what factors and ranges keep of what a model computes, and where the
factors go.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.block_matmul import unpacked_words
from tilewright.graph.ops.layer_norm import LayerNormalization
from tilewright.graph.ops.matmul import Gemm, MatMul
from tilewright.graph.ops.movement import Transpose
from tilewright.graph.precision.blocks.awq import (
    POWERS,
    DataMoments,
    awq_factors,
    round_in_ranges,
)
from tilewright.graph.precision.blocks.block_rounding import RoundedBlocks, round_to_nearest
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType

STEPS, OUTLIERS = 64, 8


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gains() -> np.ndarray:
    """Of channels, each eighth of which is 50 times as large."""
    gain = np.ones(STEPS, np.float32)
    gain[:: STEPS // OUTLIERS] = 50
    return gain


RUNS = [{"x": numbers(seed, 4, STEPS)} for seed in range(30)]


def model(how: str, kind: str = "float32") -> Graph:
    """A normalisation or a product, whose channels have gains, or none of these; then a product."""
    builder, gain = GraphBuilder(how), gains()
    builder.input("x", TensorType(kind, (4, STEPS)))
    w = (numbers(100, STEPS, 40) / gain[:, None]).astype(kind)
    builder.constant("w", w)
    value = "x"
    if how == "normalisation":
        builder.constant("gain", gain.astype(kind))
        builder.constant("shift", (numbers(101, STEPS) * gain).astype(kind))
        value = builder.add(LayerNormalization(1), "x", "gain", "shift", output="n", name="norm")
    elif how == "product":
        first = numbers(102, STEPS, STEPS) / 8 * gain
        builder.constant("first", first.astype(kind))
        builder.add(MatMul(), "x", "first", output="p", name="first")
        value = builder.add(Relu(), "p", output="n")
    elif how == "transposed":
        builder.constant("gain", gain.astype(kind))
        builder.constant("turned", np.ascontiguousarray(w.T))
        builder.add(Mul(), "x", "gain", output="n")
        builder.add(Transpose((1, 0)), "turned", output="back")
        builder.add(MatMul(), "n", "back", output="y", name="last")
        return builder.finish(("y",))
    elif how != "none":
        builder.constant("gain", gain.astype(kind))
        value = builder.add(Mul(), "x", "gain", output="n")
        if how == "read twice":
            builder.add(MatMul(), "n", "w", output="m", name="last")
            builder.constant("ones", np.full((STEPS, 40), 1e-3, kind))
            builder.add(Relu(), "n", output="r")
            builder.add(MatMul(), "r", "ones", output="s", name="other")
            builder.add(Add(), "m", "s", output="y")
            return builder.finish(("y",))
    builder.add(MatMul(), value, "w", output="y", name="last")
    return builder.finish(("y",))


def error(graph: Graph, plain: Graph) -> float:
    """Of the result over new data."""
    fresh = [{"x": numbers(seed, 4, STEPS)} for seed in range(200, 220)]
    wanted = [evaluate(plain, run)["y"].astype(float) for run in fresh]
    found = [evaluate(graph, run)["y"].astype(float) for run in fresh]
    return float(np.linalg.norm(np.subtract(found, wanted)) / np.linalg.norm(wanted))


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("how", ["normalisation", "product", "gain", "transposed", "read twice"])
def test_large_channels_keep_what_they_compute(how: str, symmetric: bool) -> None:
    plain = model(how)
    only = ["last"]
    nearest = tw.quantize_weights(plain, only=only, symmetric=symmetric)
    aware = tw.quantize_weights(plain, method="awq", data=RUNS, only=only, symmetric=symmetric)
    assert error(aware, plain) <= error(nearest, plain) / 3
    assert sum(report.bits == 4 for report in aware.weights) == 1


@pytest.mark.parametrize(
    ("how", "operators"),
    [
        ("normalisation", ["LayerNormalization", "BlockMatMul"]),
        ("product", ["MatMul", "Relu", "BlockMatMul"]),
        ("gain", ["Mul", "BlockMatMul"]),
        ("transposed", ["Mul", "BlockMatMul"]),
        ("read twice", ["Mul", "Relu", "Mul", "BlockMatMul", "MatMul", "Add"]),
    ],
)
def test_factors_are_taken_into_what_makes_the_data(how: str, operators: list[str]) -> None:
    only = ["last"]
    made = tw.quantize_weights(model(how), method="awq", data=RUNS, only=only)
    found = [type(node.op).__name__ for node in made.nodes]
    assert sorted(found) == sorted(operators)


def test_data_that_the_model_is_given_are_multiplied_in_front() -> None:
    plain = model("none")
    runs = [{"x": run["x"] * gains()} for run in RUNS]
    made = tw.quantize_weights(plain, method="awq", data=runs)
    assert [type(node.op).__name__ for node in made.nodes] == ["Mul", "BlockMatMul"]
    nearest = tw.quantize_weights(plain)
    found = [
        np.linalg.norm(evaluate(one, runs[0])["y"] - evaluate(plain, runs[0])["y"])
        for one in (made, nearest)
    ]
    assert found[0] <= found[1] / 3


def test_weights_of_16_bits_keep_their_type() -> None:
    plain = model("normalisation", "float16")
    runs = [{"x": run["x"].astype(np.float16)} for run in RUNS]
    made = tw.quantize_weights(plain, method="awq", data=runs)
    kinds = {str(made.types[name].dtype) for name in made.constants}
    assert kinds == {"float16", "int32"}
    assert any(name.startswith("gain.scaled") for name in made.constants)
    runs = [{"x": run["x"] * gains().astype(np.float16)} for run in runs]
    made = tw.quantize_weights(model("none", "float16"), method="awq", data=runs)
    assert [type(node.op).__name__ for node in made.nodes] == ["Mul", "BlockMatMul"]
    assert str(made.types["y"]) == "float16[4, 40]"


def test_weights_that_meet_several_values_have_no_factors() -> None:
    builder = GraphBuilder("shared")
    builder.input("x", TensorType("float32", (4, STEPS)))
    builder.constant("gain", gains())
    builder.constant("w", numbers(5, STEPS, STEPS) / gains()[:, None])
    builder.add(Mul(), "x", "gain", output="n")
    builder.add(MatMul(), "n", "w", output="a")
    builder.add(Gemm(), "a", "w", output="y")
    plain = builder.finish(("y",))
    made = tw.quantize_weights(plain, method="awq", data=RUNS)
    found = [type(node.op).__name__ for node in made.nodes]
    assert found == ["Mul", "BlockMatMul", "BlockMatMul"]
    assert {name.rsplit(".", 1)[-1] for name in made.constants} == {"gain", "levels", "scales"}
    assert (made.constants["gain"] == gains()).all()


def test_ranges_are_searched_on_the_data_that_a_product_reads() -> None:
    """Of two readers of a value, one has no factors, since a run computes its bias."""
    builder = GraphBuilder("two readers")
    builder.input("x", TensorType("float32", (4, STEPS)))
    builder.input("bias", TensorType("float32", (40,)))
    builder.constant("gain", gains())
    builder.constant("w", numbers(100, STEPS, 40) / gains()[:, None])
    builder.constant("v", numbers(101, STEPS, 40))
    builder.add(Mul(), "x", "gain", output="n")
    builder.add(MatMul(), "n", "w", output="a", name="last")
    builder.add(Gemm(), "n", "v", "bias", output="b", name="other")
    builder.add(Add(), "a", "b", output="y")
    runs = [{**run, "bias": numbers(7, 40)} for run in RUNS]
    made = tw.quantize_weights(builder.finish(("y",)), method="awq", data=runs)
    rows = np.concatenate([run["x"] * gains() for run in RUNS])
    expected = round_in_ranges(numbers(101, STEPS, 40), moments(rows).second, 4, 32, symmetric=True)
    (words,) = (array for name, array in made.constants.items() if name.startswith("v.levels"))
    assert (unpacked_words(words, 4) == expected.levels).all()


def moments(rows: np.ndarray) -> DataMoments:
    wide = rows.astype(np.float64)
    return DataMoments(wide.T @ wide, np.abs(wide).sum(axis=0))


def test_channels_of_one_size_have_no_factors() -> None:
    rows = np.where(numbers(1, 500, STEPS) > 0, 1.0, -1.0)
    found = factors(rows)
    assert found == {}
    assert 0.0 in POWERS


def factors(rows: np.ndarray) -> dict[str, np.ndarray]:
    plain = model("gain")
    own = {"n": moments(rows)}
    weights = {"y": plain.constants["w"]}
    return dict(awq_factors(plain, weights, own, 4, 32, symmetric=True))


def test_factors_grow_with_the_data_and_channels_of_zeros_have_the_least() -> None:
    rows = numbers(1, 500, STEPS) * gains()
    rows[:, 1] = 0
    (found,) = factors(rows).values()
    large = gains() > 1
    assert found[large].min() > 5 * found[~large].max()
    assert found[1] == found.min()
    np.testing.assert_allclose(found.max() * found.min(), 1, rtol=1e-4)


def test_moments_are_those_of_divided_data() -> None:
    rows, divisors = numbers(2, 9, 5), np.array([1.0, 2.0, 4.0, 0.5, 3.0])
    found, expected = moments(rows).divided(divisors), moments(rows / divisors)
    np.testing.assert_allclose(found.second, expected.second, rtol=1e-12)
    np.testing.assert_allclose(found.magnitudes, expected.magnitudes, rtol=1e-12)
    both = moments(rows) + moments(rows)
    np.testing.assert_allclose(both.second, 2 * moments(rows).second)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("steps", [64, 50])
def test_ranges_make_no_more_error_within_blocks(steps: int, symmetric: bool) -> None:
    weights = numbers(3, steps, 30)
    second = moments(numbers(4, 300, steps)).second
    nearest = round_to_nearest(weights, 4, 32, symmetric=symmetric)
    ranged = round_in_ranges(weights, second, 4, 32, symmetric=symmetric)

    def of_blocks(rounded: RoundedBlocks) -> np.ndarray:
        change = rounded.weights(steps).astype(float) - weights
        parts = [slice(at, min(at + 32, steps)) for at in range(0, steps, 32)]
        return np.array(
            [np.einsum("in,ij,jn->n", change[p], second[p, p], change[p]) for p in parts]
        )

    before, after = of_blocks(nearest), of_blocks(ranged)
    assert (after <= before * 1.0001).all()
    assert (after < 0.99 * before).mean() > 0.2
    assert (ranged.levels[steps:] == ranged.zeros[-1]).all()
    assert ranged.scales.dtype == np.float32
