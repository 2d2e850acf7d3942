"""Estimates that are kept: a second plan estimates nothing, and chooses the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.plan import kept_prices, pricing
from tilewright.graph.plan.choose import choose
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.kept_prices import PRICES, KeptPrices
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.plan.pricing import Pricer
from tilewright.graph.types import TensorType
from tilewright.runtime.toolchain.cache import FOLDER_VARIABLE, user_cache
from tilewright.schedule.errors import ScheduleError
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

TARGET = Target.parse("c:avx2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path / "entries" / PRICES


@pytest.fixture
def estimated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the functions that are estimated."""
    names: list[str] = []
    estimate = pricing.estimate

    def listen(func: PrimFunc, target: Target, **how: object) -> float:
        names.append(func.name)
        return estimate(func, target, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(pricing, "estimate", listen)
    return names


def network() -> Graph:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (4, 8)))
    y = builder.input("y", TensorType("float32", (8,)))
    value = builder.add(Relu(), builder.add(Add(), x, y))
    return builder.finish((builder.add(Mul(), value, y, output="z"),))


def prices() -> list[float]:
    graph = network()
    kept = KeptPrices(TARGET)
    decisions = choose(graph, fuse(graph).groups, Pricer(TARGET, kept=kept))
    return [one.seconds for decision in decisions for one in decision.alternatives]


def test_a_second_plan_estimates_nothing_and_has_the_same_prices(estimated: list[str]) -> None:
    first, count = prices(), len(estimated)
    assert count == len(first) == 1
    assert prices() == first
    assert len(estimated) == count


def test_a_model_is_planned_by_prices_that_are_kept_where_that_is_asked_for(
    estimated: list[str], folder: Path
) -> None:
    plan_model(network(), TARGET)
    assert not folder.exists()
    first = plan_model(network(), TARGET, keep=True)
    estimated.clear()
    second = plan_model(network(), TARGET, keep=True)
    assert not estimated
    assert [str(d.chosen) for d in second.decisions] == [str(d.chosen) for d in first.decisions]
    plan_model(network(), TARGET)
    assert estimated


@pytest.mark.parametrize("payload", [None, b"another", b""])
def test_a_damaged_price_is_estimated_anew(
    payload: bytes | None, folder: Path, estimated: list[str]
) -> None:
    first = prices()
    (path,) = folder.glob("*")
    if payload is None:
        path.write_bytes(path.read_bytes()[:-1])
    else:
        user_cache().put(PRICES, path.name, payload)
    estimated.clear()
    assert prices() == first
    assert len(estimated) == 1


def test_what_is_refused_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(func: PrimFunc, target: Target, **how: object) -> float:
        raise ScheduleError("no schedule", code="no-loop")

    monkeypatch.setattr(pricing, "estimate", refuse)
    assert prices() == [float("inf")]
    assert not folder.exists()


def test_the_key_has_all_that_decides_a_price(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KeptPrices(TARGET).put("key", 1.0)
    assert KeptPrices(TARGET).get("key") == 1.0
    others = [
        KeptPrices(Target.parse("c:avx512")),
        KeptPrices(replace(TARGET, threads=7)),
        KeptPrices(TARGET, strict=True),
        KeptPrices(TARGET, allow=("vpdpbusd",)),
    ]
    monkeypatch.setattr(kept_prices, "code_digest", lambda: "other")
    others.append(KeptPrices(TARGET))
    assert [one.get("key") for one in others] == [None] * 5
    assert KeptPrices(TARGET).get("other") is None
