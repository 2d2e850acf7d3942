"""What the emulation shows, on a GPU: `pytest -m gpu tests/codegen/cuda/test_gpu.py`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.check.check import check_kernel
from tilewright.driver.check.data import random_array
from tilewright.runtime.cuda.device.availability import Unavailable, availability
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...schedule.rules.gpu.test_rules import PRODUCTS, ROWS
from .test_dims import MADE as SIZED
from .test_emit import PROGRAMS
from .test_warps_rule import CASES as WARPS

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def target() -> Target:
    found = availability()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}: {found.hint}")
    return Target.parse(f"cuda:{found.devices[0].arch}")


def check_on(target: Target, func: PrimFunc) -> None:
    """Compare the kernel of the rules with the reference, on the device."""
    random = np.random.default_rng(0)
    constants = {b.name: random_array(random, b.type, b.shape) for b in func.constants}
    check_kernel(tw.build(func, target, constants=constants), func, constants)


@pytest.mark.parametrize("name", PROGRAMS)
def test_scheduled_programs(name: str, target: Target) -> None:
    func, steps, expected, arrays = PROGRAMS[name]
    kernel = tw.build(Schedule(func, target).apply(steps), target)
    assert np.array_equal(kernel(*arrays), expected(*arrays))


@pytest.mark.parametrize("name", [*PRODUCTS, *ROWS, *WARPS])
def test_functions_by_rule(name: str, target: Target) -> None:
    check_on(target, {**PRODUCTS, **ROWS, **WARPS}[name]())


def test_a_time_is_that_of_the_device(target: Target) -> None:
    func = PRODUCTS["product"]()
    arrays = [np.ones(b.shape, np.float32) for b in func.inputs]
    assert 0 < tw.build(func, target).time(*arrays, seconds=0.05).median < 1e-2


@pytest.mark.parametrize("make", SIZED)
def test_sizes_that_a_call_decides(make: Callable[[], PrimFunc], target: Target) -> None:
    check_on(target, make())
