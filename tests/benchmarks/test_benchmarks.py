"""The benchmarks start: each reads its default arguments, and each chain has as many passes over
memory as its row says.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright as tw
from benchmarks import block_products, callers, models, pointwise
from benchmarks.low_precision import arrays, check
from benchmarks.subjects import exported
from benchmarks.subjects.exported import one_of

FOLDER = Path(pointwise.__file__).parent
RUN = sorted(
    ".".join(p.relative_to(FOLDER).with_suffix("").parts)
    for p in FOLDER.rglob("*.py")
    if "\ndef main(" in p.read_text("utf-8")
)
TORCH = ("torch", "transformers")
NEEDS = {  # beside dev
    **dict.fromkeys(("export", "model_families", "torch_models"), TORCH),
    "fixtures.characters": ("torch", "onnxscript"),
    "fixtures.digits": ("torch", "sklearn"),
    **dict.fromkeys(("narrow_models", "quantise"), ("onnxruntime",)),
    "roofline": ("matplotlib",),
}
GIVEN = {  # what has no default
    "export": ["a_folder"],
    "fixtures.characters": ["a_folder"],
    "fixtures.digits": ["a_folder"],
    "narrow_models": ["a_folder", "a_model"],
    "quantise": ["a_folder", "a_model"],
    "trained_models": ["a_folder"],
}


class Parsed(Exception):
    """Arguments were read, and nothing more is wanted."""


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., argparse.Namespace]:
    """Runs a benchmark's main with these arguments until it has read them; gives what it read."""
    parse = argparse.ArgumentParser.parse_args

    def parse_only(parser: argparse.ArgumentParser) -> None:
        raise Parsed(parse(parser))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)

    def read(name: str, *arguments: str) -> argparse.Namespace:
        for package in NEEDS.get(name, ()):
            pytest.importorskip(package)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        with pytest.raises(Parsed) as stopped:
            importlib.import_module(f"benchmarks.{name}").main()
        return stopped.value.args[0]

    return read


@pytest.mark.parametrize("name", RUN)
def test_a_benchmark_takes_no_arguments(
    name: str, reads: Callable[..., argparse.Namespace]
) -> None:
    reads(name, *GIVEN.get(name, ()))


@pytest.mark.parametrize(
    "name",
    [
        *("block_products", "convolutions", "examples", "low_precision", "matmul", "models"),
        *("pointwise", "tracer"),
    ],
)
def test_numbers_of_threads_stand_between_commas(
    name: str, reads: Callable[..., argparse.Namespace]
) -> None:
    assert reads(name).threads == (1, 2)
    assert reads(name, "--threads", "1,4").threads == (1, 4)


def test_a_name_that_no_model_has_is_refused_with_those_that_are() -> None:
    assert one_of(("resnet50", "squeezenet"))("squeezenet") == "squeezenet"
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        one_of(("squeezenet", "resnet50"))("resnet")
    assert str(refused.value) == "there is no 'resnet'; the names are: 'resnet50', 'squeezenet'"


def open_model() -> onnx.ModelProto:
    """y = x + z of [batch, length, 3], which say it twice."""
    sizes = ["batch", "length", 3]
    x, z, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n in "xzy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "z"], ["y"])], "open", [x, z], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_sizes_behind_a_name_close_an_open_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx.save(open_model(), tmp_path / "sum_open.onnx")
    monkeypatch.setattr(exported, "FOLDER", tmp_path)
    monkeypatch.setattr(exported, "EXPORTED", ("sum_open",))
    assert exported.model_name("sum@2x5") == "sum@2x5"
    assert (exported.is_closed("sum@2x5"), exported.is_closed("sum_open")) == (True, False)
    assert exported.batch_of("sum@32x5") == 32
    sample = exported.sample_of("sum@2x5")
    assert {name: array.shape for name, array in sample.inputs.items()} == dict.fromkeys(
        "xz", (2, 5, 3)
    )
    x, z = sample.inputs["x"], sample.inputs["z"]
    np.testing.assert_array_equal(tw.compile(sample.model).run({"x": x, "z": z})["y"], x + z)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("squeezenet@8", "there is no 'squeezenet'; the names are: 'sum'"),
        ("sum@8x", "'8x' of 'sum@8x' are no sizes; expected numbers with 'x' between them, as in "),
        ("sum@0", "'0' of 'sum@0' are no sizes; "),
    ],
)
def test_names_with_sizes_are_those_of_open_models(
    name: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exported, "EXPORTED", ("sum_open", "resnet50"))
    with pytest.raises(argparse.ArgumentTypeError) as refused:
        exported.model_name(name)
    assert str(refused.value).startswith(told)


def test_as_many_sizes_are_closed_as_are_open() -> None:
    with pytest.raises(ValueError, match=r"leaves 2 sizes open \(batch, length\); got 1"):
        exported.close_sizes(open_model(), [8])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", pointwise.CASES, ids=lambda case: case.name)
def test_a_chain_has_a_kernel_for_each_repeat(case: pointwise.Case) -> None:
    pointwise.chain_of(case, (4, 32))  # which raises where it has not


def test_a_product_of_bytes_that_is_off_by_one_is_refused() -> None:
    a, b = arrays("vpdpbusd", 4, 8, 16)
    right = a.astype(np.int32) @ b.astype(np.int32)
    check("vpdpbusd", "ours", right, a, b)
    right[2, 3] += 1
    with pytest.raises(ArithmeticError, match="ours is wrong"):
        check("vpdpbusd", "ours", right, a, b)


@pytest.mark.needs_cc
@pytest.mark.parametrize("bits", [4, 8])
def test_a_product_of_blocks_is_one_product_in_all_systems(bits: int) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    weights = block_products.Weights.drawn(bits, 64, 40)
    x = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    constants = {"levels": weights.words, "scales": weights.scales}
    kernel = tw.build(block_products.block_product(3, weights), constants=constants)
    block_products.check("tilewright", kernel(x), x, weights.numbers)
    model = block_products.onnx_product(3, weights, 0)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": x})
    block_products.check("onnxruntime, level 0", found, x, weights.numbers)
    found[1, 2] += 0.1
    with pytest.raises(ArithmeticError, match="level 0 is wrong"):
        block_products.check("onnxruntime, level 0", found, x, weights.numbers)


def test_a_table_tells_no_ratio_of_disturbed_rounds_and_no_percentile_of_few_calls() -> None:
    def row(system: str, over: tuple[float, float, float], p95: float | None) -> models.Row:
        return models.Row("net", 2, system, 8.17, *over, 8.17, p95, p95, 0.0, 0.14, None)

    few, many = row("first", (3.47, 0.78, 3.81), None), row("second", (1.2, 1.1, 1.3), 9.0)
    lines = [line.split(" | ") for line in models._table([few, many]).splitlines()[2:]]
    assert [line[4] for line in lines] == ["disturbed", "1.20"]
    assert [line[6] for line in lines] == ["8.17", "8.17 / 9.00 / 9.00"]


def test_a_batch_is_ahead_of_the_better_peer_of_each_model() -> None:
    def row(model: str, system: str, over: float, low: float) -> models.Row:
        return models.Row(model, 1, system, 1.0, over, low, 2.0, 1.0, None, None, 0.0, 0.1, None)

    rows = [
        *(row(model, models.OURS, 1.0, 1.0) for model in ("a@8", "b@8x128", "a@32")),
        *(row("a@8", "first", 1.2, 1.1), row("a@8", "second", 2.0, 1.9)),
        *(row("b@8x128", "first", 4.0, 0.9), row("b@8x128", "second", 1.875, 1.8)),
        row("a@32", "first", 0.97, 0.95),
    ]
    assert models.batches_table(rows).splitlines()[2:] == [
        "| 1 | 8 | 2 | 1.50 | 0.90 |",
        "| 1 | 32 | 1 | 0.97 | 0.95 |",
    ]


def test_calls_in_turn_are_as_many_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callers, "_REST", 0)
    order: list[str] = []
    calls = [lambda name=name: order.append(name) for name in ("ours", "theirs")]
    times = callers.mean_times(calls, 1e-4)
    assert order == ["ours", "theirs"] * (len(order) // 2)
    assert len(times) == 2
    shares = callers.in_turn(
        {"ours": lambda: calls[0], "theirs": lambda: calls[1]}, ("ours", "theirs"), 1e-4, 3
    )
    assert all(share > 0 for share in shares)
