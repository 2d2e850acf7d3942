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
import pytest

import tilewright as tw
from benchmarks import block_products, callers, models, pointwise
from benchmarks.low_precision import arrays, check
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
