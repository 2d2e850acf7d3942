"""Sums over windows on a grid, as the emulation of their own source sees them: values, what warps
ask of memory, barriers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
from tilewright.runtime.cuda.emulator.report import EmulationReport
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target

from ...schedule.programs import conv, image_conv, integers, pool
from ...schedule.rule_checks import Answered

A100 = Target.parse("cuda:sm_80")

pytestmark = pytest.mark.needs_cxx

# with the share of the sectors read of X that are needed; the image has every second pixel read
CONVOLUTIONS: dict[str, tuple[Callable[[], PrimFunc], float]] = {
    "strided, of several images": (lambda: conv(9, 7, 16, 24, stride=2, batch=2), 0.9),
    "grouped": (lambda: conv(6, 5, 8, 32, groups=2), 0.9),
    "of an image": (lambda: image_conv(9, 37, 40), 0.5),
}


# with the tile of a thread, and the loads of X that it makes for each result
TILES: dict[str, tuple[Callable[[], PrimFunc], str, tuple[int, ...], float]] = {
    "depthwise": (lambda: conv(12, 15, 1, 32, groups=32), "conv", (4, 5), 6 * 7 / 20),
    "depthwise, strided": (
        lambda: conv(12, 16, 1, 32, groups=32, stride=2),
        "conv",
        (3, 4),
        7 * 9 / 12,
    ),
    "pooling": (lambda: pool(13, 9, 32), "Y_cache", (3, 4), 7 * 9 / 12),
}


def seen(func: PrimFunc, answers: dict[str, object] | None = None) -> EmulationReport:
    """What the emulation saw of a kernel, whose result is right to the bit."""
    arrays = integers(func)
    constants = {b.name: arrays[b.name] for b in func.constants}
    schedule = default_schedule(func, A100, Answered(answers or {}))
    kernel = tw.build(schedule, A100, constants=constants)
    assert kernel.proof.status == "proved"
    emulated = tw.emulated(kernel, checked=True)
    given = [arrays[b.name] for b in func.inputs if b not in func.constants]
    (output,) = func.outputs
    np.testing.assert_array_equal(emulated(*given), evaluate(func, arrays)[output.name])
    report = emulated.code.report
    assert report, str(report)
    return report


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_fetch_their_windows_once_for_a_tile(name: str) -> None:
    make, share = CONVOLUTIONS[name]
    report = seen(make())
    shared = [site for site in report.sites if site.space == "shared"]
    assert shared
    assert {site.bank_conflict_degree for site in shared} == {1}
    read = [site for site in report.sites if site.buffer == "X"]
    assert min(site.efficiency for site in read) > share
    stored = [site for site in report.sites if site.space == "global" and site.action == "writes"]
    assert min(site.efficiency for site in stored) == 1
    assert all(barrier.needed for barrier in report.barriers)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TILES)
def test_a_thread_loads_what_the_windows_of_its_tile_share_once(name: str) -> None:
    make, block, tile, most = TILES[name]
    report = seen(make(), {f"tile of {block}": tile})
    read = [site.requests for site in report.sites if site.buffer == "X"]
    stored = [site.requests for site in report.sites if site.action == "writes"]
    assert sum(read) <= most * sum(stored)
    assert all(site.efficiency == 1 for site in report.sites)
