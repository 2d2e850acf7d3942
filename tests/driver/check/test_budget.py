"""Kernels that are too large to be checked: they are built, and said not to be checked."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest

import tilewright as tw
from tests.tiny_engine import tiny
from tests.tiny_program import constants
from tilewright import te
from tilewright.driver.build_program import build_program
from tilewright.driver.check import budget as check_budget

HUGE = 2_400_000_000
UNCHECKED = "unchecked: too large: the check would take 143.1 GiB, more than 8"


def relu(count: int) -> tw.PrimFunc:
    x = te.placeholder((count,), "int8", name="X")
    y = te.compute((count,), lambda i: te.maximum(x[i], 0), name="Y")
    return te.func(x, y, name="relu")


def free_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_kernel_of_billions_of_elements_is_built_and_said_to_be_unchecked() -> None:
    kernel = tw.build(relu(HUGE), "c")
    assert kernel.work is not None
    assert kernel.work.bytes == 2 * HUGE
    assert kernel.notes == (UNCHECKED,)
    assert repr(kernel).endswith(f"\n  note: {UNCHECKED}")
    assert pickle.loads(pickle.dumps(kernel)).notes == kernel.notes


@pytest.mark.slow
@pytest.mark.skipif(free_bytes() < 6e9, reason="takes 4.8 GB of free memory")
def test_a_kernel_of_billions_of_elements_is_right_to_its_last_one() -> None:
    values = np.resize(np.arange(-128, 128, dtype=np.int8), HUGE)
    result = tw.build(relu(HUGE), "c")(values)
    np.maximum(values, 0, out=values)
    assert np.array_equal(result, values)


def test_a_check_takes_half_of_the_memory_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    func = relu(1 << 20)
    assert check_budget.unchecked_because(func) is None
    monkeypatch.setattr(check_budget, "process_memory", lambda: 1 << 30)
    assert check_budget.unchecked_because(func) is None
    monkeypatch.setattr(check_budget, "process_memory", lambda: 1 << 20)
    assert check_budget.unchecked_because(func) == (
        "unchecked: too large: the check would take 0.1 GiB, more than 0.000488"
    )


def test_a_kernel_within_the_budget_has_no_note() -> None:
    assert tw.build(relu(100), "c").notes == ()


def test_the_report_of_an_engine_names_each_kernel_that_was_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = {f.name: sum(p.buffer.bytes for p in f.parameters) for f in tiny().functions}
    monkeypatch.setattr(check_budget, "MOST_BYTES", 4 * max(sizes.values()))
    checks = {k.name: k.check for k in build_program(tiny(), constants()).explain().kernels}
    found = {name for name, check in checks.items() if check.startswith("unchecked: too large")}
    assert found
    assert {checks[name] for name in checks.keys() - found} == {"ok"}
    assert max(sizes, key=sizes.__getitem__) in found
