"""Choices by price: what a schedule source knows flips a fusion and an algorithm, and the results
stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add, Mul
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.ops.functions import Cast, Round
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.graph.ops.movement import Concat
from tilewright.graph.options import OptionError
from tilewright.graph.plan.choose import GroupDecision, choose
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.plan import Planned, closer, plan_model, rounding_more
from tilewright.graph.plan.pricing import Price, Pricer
from tilewright.graph.plan.tasks import tasks
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import TensorType, owned
from tilewright.schedule.estimate import estimate
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.evaluate import evaluate_program
from tilewright.tir.target.target import Target
from tilewright.tir.text.canonical import workload_key

TARGET = Target.parse("c:avx512")


@dataclass
class Log:
    """A source that knows the times of some functions, by workload key, and remembers who asked."""

    known: Mapping[str, float] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        self.asked.append(func.name)
        return self.known.get(workload_key(func))


def network(kernel: int = 1) -> Graph:
    """relu(conv(x) + r), with NHWC weights."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("float32", (1, 12, 12, 16)))
    r = builder.input("r", TensorType("float32", (1, 12, 12, 32)))
    w = rng.standard_normal((kernel, kernel, 16, 32)).astype("float32")
    b = rng.standard_normal(32).astype("float32")
    pads = (kernel // 2,) * 4
    conv = Conv((1, 1), pads, layout="NHWC")
    a = builder.add(conv, x, builder.constant("w", w), builder.constant("b", b), output="a")
    y = builder.add(Relu(), builder.add(Add(), a, r, output="s"), output="y")
    return builder.finish((y,))


def decide(graph: Graph, log: Log | None = None) -> GroupDecision:
    (decision,) = choose(graph, fuse(graph).groups, Pricer(TARGET, log))
    return decision


def key_of(graph: Graph, title: str, part: int = 0) -> str:
    """The workload key of a kernel of the alternative called `title`."""
    (found,) = [one for one in decide(graph).alternatives if one.title == title]
    return found.parts[part].kernel.key


def result(planned: Planned) -> np.ndarray:
    rng = np.random.default_rng(1)
    types = planned.imported.types
    feeds = {n: rng.standard_normal(types[n].shape).astype("float32") for n in "xr"}
    lowered = planned.lowered
    (y,) = evaluate_program(lowered.program, feeds, lowered.constants).values()
    expected = evaluate(planned.imported, feeds)["y"]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    return y


def test_every_split_and_every_algorithm_is_priced() -> None:
    assert [one.title for one in decide(network()).alternatives] == [
        "Conv+Add+Relu",
        "Conv+Add+Relu as matmul",
        "Conv+Add | Relu",
        "Conv+Add as matmul | Relu",
        "Conv | Add+Relu",
        "Conv as matmul | Add+Relu",
    ]
    assert [one.title for one in decide(network(3)).alternatives] == [
        "Conv+Add+Relu",
        "Conv+Add+Relu by Winograd",
        "Conv+Add | Relu",
        "Conv+Add by Winograd | Relu",
        "Conv | Add+Relu",
        "Conv by Winograd | Add+Relu",
    ]
    assert [one.title for one in decide(network(5)).alternatives] == [
        "Conv+Add+Relu",
        "Conv+Add | Relu",
        "Conv | Add+Relu",
    ]


def test_of_splits_that_store_wider_elements_than_the_group_the_longest_alone_is_priced() -> None:
    builder = GraphBuilder("net")
    x = builder.input("x", TensorType("uint8", (64, 32)))
    w = builder.constant("w", owned(np.ones((32, 16), np.int8)))
    sums = builder.add(IntegerMatMul(), x, w)
    factor = builder.constant("factor", owned(np.linspace(0.01, 0.02, 16, dtype=np.float32)))
    real = builder.add(Mul(), builder.add(Cast("float32"), sums), factor)
    builder.add(Cast("uint8"), builder.add(Round(), real), output="y")
    found = decide(builder.finish(("y",)))
    assert [one.title for one in found.alternatives] == [
        "IntegerMatMul+Cast+Mul+Round+Cast",
        "IntegerMatMul+Cast+Mul+Round | Cast",
    ]
    assert found.chosen is found.alternatives[0]


def test_without_measurements_the_estimate_fuses_everything() -> None:
    assert decide(network(5)).chosen.title == "Conv+Add+Relu"
    assert len(decide(network()).chosen.parts) == 1


@pytest.mark.parametrize(("gain", "parts"), [(0.0, 1), (0.015, 1), (0.025, 2)])
def test_of_estimates_that_are_as_good_as_equal_the_fewest_kernels_are_taken(
    gain: float, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was measured is compared as it is."""
    graph = network(5)
    whole = key_of(graph, "Conv+Add+Relu")
    halves = [key_of(graph, "Conv+Add | Relu", n) for n in (0, 1)]
    others = [key_of(graph, "Conv | Add+Relu", n) for n in (0, 1)]
    prices = {whole: 1.0, **dict.fromkeys(others, 1.0), **dict.fromkeys(halves, 0.5 * (1 - gain))}
    found = decide(graph, Log(prices))
    assert len(found.chosen.parts) == (2 if gain else 1)

    def estimated(func: PrimFunc, *_: object, **__: object) -> float:
        return prices.get(workload_key(func), 1.0)

    monkeypatch.setattr("tilewright.graph.plan.pricing.estimate", estimated)
    assert len(decide(graph).chosen.parts) == parts


def test_a_measured_time_flips_a_fusion_and_the_results_stay() -> None:
    graph = network(5)
    slow = Log({key_of(graph, "Conv+Add+Relu"): 1.0, key_of(graph, "Conv+Add | Relu"): 1.0})
    before, after = plan_model(graph, TARGET), plan_model(graph, TARGET, slow)
    titles = [[p.group.title for d in x.decisions for p in d.chosen.parts] for x in (before, after)]
    assert titles == [["Conv+Add+Relu"], ["Conv", "Add+Relu"]]
    assert [len(x.lowered.program.launches) for x in (before, after)] == [1, 2]
    np.testing.assert_allclose(result(before), result(after), rtol=1e-6, atol=1e-6)


def test_a_measured_time_flips_the_algorithm_and_the_results_stay() -> None:
    graph = network()
    direct, product = (key_of(graph, f"Conv+Add+Relu{end}") for end in ("", " as matmul"))
    plans = [
        plan_model(graph, TARGET, Log({direct: a, product: b}))
        for a, b in ((1e-9, 1e-6), (1e-6, 1e-9))
    ]
    names = [[func.name for func in plan.lowered.program.functions] for plan in plans]
    assert names == [["conv_add_relu"], ["matmul_add_add_relu"]]
    first, second = plans[1].lowered.program.launches[0].arguments[:2]
    assert (first.shape, second.shape) == ((144, 16), (16, 32))
    np.testing.assert_allclose(result(plans[0]), result(plans[1]), rtol=1e-6, atol=1e-6)


def test_groups_that_only_move_or_combine_have_no_alternatives() -> None:
    builder = GraphBuilder("g")
    x = builder.input("x", TensorType("float32", (4, 8)))
    y = builder.add(Relu(), builder.add(Concat(1), x, x), output="y")
    graph = builder.finish((y,))
    assert [one.title for one in decide(graph).alternatives] == ["Concat+Relu"]


def test_equal_groups_are_asked_for_once() -> None:
    builder = GraphBuilder("g")
    value = builder.input("x", TensorType("float32", (1, 8, 8, 16)))
    for n in range(3):
        w = builder.constant(f"w{n}", np.full((5, 5, 16, 16), n, np.float32))
        value = builder.add(Conv(pads=(2, 2, 2, 2), layout="NHWC"), value, w)
    graph, log = builder.finish((value,)), Log()
    choose(graph, fuse(graph).groups, Pricer(TARGET, log))
    assert log.asked == ["conv"]


def test_tasks_are_what_a_compile_asks_for_with_their_counts() -> None:
    graph, log = network(), Log()
    plan_model(graph, TARGET, log)
    found = tasks(graph, TARGET)
    assert sorted(func.name for func, _ in found) == sorted(log.asked)
    counts = {func.name: count for func, count in found}
    assert counts["conv_add_relu"] == counts["matmul_add_add_relu"] == counts["add_relu"] == 1
    builder = GraphBuilder("g")
    value = builder.input("x", TensorType("float32", (1, 8, 8, 16)))
    w = builder.constant("w", np.ones((5, 5, 16, 16), np.float32))
    for _ in range(3):
        value = builder.add(Conv(pads=(2, 2, 2, 2), layout="NHWC"), value, w)
    ((func, count),) = tasks(builder.finish((value,)), TARGET)
    assert (func.name, count) == ("conv", 3)


def test_a_tolerance_adds_the_tasks_that_it_allows() -> None:
    few, more = tasks(network(3), TARGET), tasks(network(3), TARGET, tolerance=1e-4)
    assert len(more) == len(few) + 3  # of each split
    with pytest.raises(OptionError):
        tasks(network(3), TARGET, tolerance=2)


def test_a_plan_without_what_rounds_more_is_the_one_that_no_tolerance_gives() -> None:
    plain = plan_model(network(3), TARGET)
    found = plan_model(network(3), TARGET, tolerance=1e-4)
    assert [part.group.algorithm for part in rounding_more(found)] == ["winograd-4x4"]
    assert rounding_more(plain) == ()
    near = closer(found)
    assert near.decisions[0].chosen.title == plain.decisions[0].chosen.title
    assert str(near.lowered.program) == str(plain.lowered.program)
    assert closer(plain).decisions == plain.decisions


def test_a_price_is_the_measured_time_where_there_is_one() -> None:
    graph = network(3)
    kernel = decide(graph).chosen.parts[0].kernel
    assert kernel.price == Price(estimate(kernel.func, TARGET))
    log = Log({kernel.key: 1e-6})
    assert decide(graph, log).chosen.parts[0].kernel.price.seconds == 1e-6
    assert str(Price(2e-6, 1e-6)) == "estimated 2.0 us, measured 1.0 us"


def test_an_alternative_tells_what_was_measured() -> None:
    graph = network(3)
    log = Log({key_of(graph, "Conv | Add+Relu", 1): 5e-6})
    texts = {one.title: str(one) for one in decide(graph, log).alternatives}
    assert texts["Conv | Add+Relu"].endswith("us, measured 5.0 us in 1 of 2 kernels")
    assert "measured" not in texts["Conv+Add+Relu"]
