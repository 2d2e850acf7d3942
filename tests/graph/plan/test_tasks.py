"""Whatever times a log knows, a compile takes functions that `tasks` yields, so that one tuning run
prices them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.graph.plan.test_choose import TARGET, network
from tests.graph.precision.levels.test_level_form import Net
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.options import OptionError, kinds_of
from tilewright.graph.plan.plan import plan_model
from tilewright.graph.plan.tasks import model_tasks, taken, tasks
from tilewright.graph.precision.calibration.calibrate import calibrate
from tilewright.graph.precision.calibration.calibration import Calibration
from tilewright.graph.samples.samples import tiny_model
from tilewright.graph.types import TensorType
from tilewright.runtime.machine.host import host_target
from tilewright.schedule.rules.default import rule_for
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.text.canonical import workload_key

pytestmark = pytest.mark.sampled(6)


@dataclass
class Drawn:
    """A source whose times follow from the key of a function and a number alone."""

    number: int

    def schedule(self, func: PrimFunc, target: Target) -> Schedule | None:
        return None

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return 1e-6 * (1 + (int(workload_key(func)[:8], 16) >> self.number) % 97)


@dataclass
class FloatsAreFast(Drawn):
    """A source to which products without operands of 16 bits take nothing."""

    def seconds(self, func: PrimFunc, target: Target) -> float | None:
        return 1.0 if "float16" in func.signature else 1e-9


def tiny() -> object:
    return tiny_model().model


@pytest.mark.parametrize("made", [tiny, network, lambda: network(3)], ids=["tiny", "1x1", "3x3"])
@pytest.mark.parametrize("tolerance", [None, 1e-4])
def test_every_function_that_may_be_taken_is_a_task(
    made: Callable[[], Graph], tolerance: float | None
) -> None:
    model = made()
    known = {workload_key(func): n for func, n in tasks(model, TARGET, tolerance=tolerance)}
    choices = set()
    for number in range(8):
        functions = taken(model, TARGET, tolerance=tolerance, schedules=Drawn(number))
        keys = {workload_key(func): places for func, places in functions}
        assert set(keys) <= set(known)
        assert all(places <= known[key] for key, places in keys.items())
        choices.add(frozenset(keys))
    assert len(choices) > 1 or (made is tiny and tolerance is None)  # times do decide


NARROW = Target.parse("c:avx512+bf16+vnni")


@cache
def classifier() -> Graph:
    """Three products of one row, of which each reads what the one before made."""
    net, shape = Net(1, 256), (256, 64, 8)
    value = net.x
    for number, width in enumerate(shape):
        value = net.add(Relu(), net.linear(value, width, f"fc{number}"), output=f"r{number}")
    return net.finish((value,))


@cache
def calibration() -> Calibration:
    data = [np.random.default_rng(1).standard_normal((1, 256), np.float32) for _ in range(2)]
    return calibrate(classifier(), data)


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "precision",
    ["int8", {"fc0": "int8", "fc2": "float16"}, "float16", {"fc1": "bfloat16"}],
    ids=str,
)
def test_what_a_precision_takes_is_a_task_whatever_times_are_known(
    precision: str | Mapping[str, str],
) -> None:
    """Also where a log makes a float32 product look fast: it does not decide what rounds."""
    how: dict[str, Any] = {"precision": precision}
    if "int8" in kinds_of(precision):
        how["calibration"] = calibration()
    known = {workload_key(func): n for func, n in tasks(classifier(), NARROW, **how)}
    plain = {workload_key(func) for func, _ in tasks(classifier(), NARROW)}
    assert known.keys() - plain
    for source in (None, FloatsAreFast(0), *map(Drawn, range(4))):
        functions = taken(classifier(), NARROW, schedules=source, **how)
        assert {workload_key(func) for func, _ in functions} <= known.keys()


@pytest.mark.needs_cc
def test_products_by_an_instruction_with_a_liberty_are_told_and_not_tuned() -> None:
    builder = GraphBuilder("rows")
    x = builder.input("x", TensorType("float32", (128, 512)))
    weights = np.random.default_rng(0).standard_normal((512, 512)).astype("float32")
    y = builder.add(MatMul(), x, builder.constant("w", weights), output="y", name="fc")
    graph = builder.finish((y,))
    model = model_tasks(graph, NARROW, precision={"fc": "bfloat16"})
    (one,) = model.untuned
    assert one.nodes == "fc"
    assert rule_for(one.func, NARROW, allow=("vdpbf16ps",)).name == "dots"
    assert one.key not in {task.key for task in model.tasks}
    assert any(one.key in way for ways in model.alternatives for way in ways)
    assert model_tasks(graph, NARROW, precision={"fc": "float16"}).untuned == ()


def test_what_measuring_decides_has_no_tasks() -> None:
    with pytest.raises(OptionError) as caught:
        tasks(classifier(), NARROW, precision="auto")
    assert str(caught.value) == (
        "OptionError: tasks: precision='auto' is decided in each compile, by measuring the engine "
        "that it makes; expected the types of products. [tasks-auto]\n"
        "  Hint: compile it once with its accuracy=...; engine.explain().precision says what each "
        'product has, and precision={"fc1": "int8", ...} names that.'
    )
    with pytest.raises(OptionError, match=r"\[compile-calibration\]"):
        tasks(classifier(), NARROW, precision="int8")
    with pytest.raises(OptionError, match=r"\[compile-option\]"):
        taken(classifier(), NARROW, precision="int7")


def test_the_functions_for_an_open_target_are_this_machine_s() -> None:
    model, target = tiny_model().model, Target("c", threads=2)
    here = replace(host_target(), threads=2)
    for functions in (tasks, taken):
        found, usual = functions(model, target), functions(model, here)
        assert [workload_key(f) for f, _ in found] == [workload_key(f) for f, _ in usual]
        assert [count for _, count in found] == [count for _, count in usual]


def test_what_is_taken_is_what_a_plan_launches() -> None:
    graph = network(3)
    program = plan_model(graph, TARGET, None, check=False).lowered.program
    wanted = {
        workload_key(func): sum(launch.function == func.name for launch in program.launches)
        for func in program.functions
    }
    assert {workload_key(func): places for func, places in taken(graph, TARGET)} == wanted


def test_a_function_that_serves_twice_is_one_task_of_two_places() -> None:
    builder = GraphBuilder("twice")
    x = builder.input("x", TensorType("float32", (4, 8)))
    weights = np.random.default_rng(0).standard_normal((2, 8, 8)).astype("float32")
    one = builder.add(MatMul(), x, builder.constant("v", weights[0]), output="one")
    two = builder.add(MatMul(), one, builder.constant("w", weights[1]), output="two")
    found = tasks(builder.finish((two,)), TARGET)
    assert [places for _, places in found] == [2]


def test_the_latency_is_that_of_the_fastest_alternatives_that_are_known() -> None:
    model = model_tasks(tiny(), host_target())
    assert [(task.func.name, task.places) for task in model.tasks] == [
        (func.name, places) for func, places in tasks(tiny(), host_target())
    ]
    assert model.tasks[0].nodes == "conv, relu"
    seconds = {task.key: 1.0 for task in model.tasks}
    assert model.latency({}) is None
    assert model.latency(seconds) == len(model.alternatives)  # each in one kernel
    (whole,), *_ = (ways for ways in model.alternatives[0])
    assert model.latency({**seconds, whole: 9.0}) == len(model.alternatives) + 1  # two kernels
    del seconds[whole]
    assert model.latency(seconds) == len(model.alternatives) + 1
