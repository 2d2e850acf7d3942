from __future__ import annotations

import re

import pytest

from tilewright.runtime.machine.timing import summarise
from tilewright.runtime.measure.roofline import Roofline, Work


def roofline(operations: int, size: int) -> Roofline:
    return Roofline(summarise([1e-3]), 2, Work(operations, size), 200.0, 50.0)


def test_much_arithmetic_is_bound_by_computing() -> None:
    found = roofline(100_000_000, 1_000_000)
    assert (found.bound, found.share) == ("compute", pytest.approx(0.5))
    assert str(found) == (
        "1 ms on 2 thread(s): 100.0 of 200.0 GFLOP/s, 1.0 of 50.0 GB/s; "
        "50% of the compute limit, 500 us"
    )


def test_little_arithmetic_is_bound_by_memory() -> None:
    found = roofline(1_000_000, 40_000_000)
    assert (found.bound, found.share) == ("memory", pytest.approx(0.8))


def test_operations_on_integers_are_named_and_no_limit_is_claimed() -> None:
    timing = summarise([1e-3])
    found = Roofline(timing, 1, Work(30_000_000, 40_000_000, integers=30_000_000), 200.0, 50.0)
    assert (found.bound, found.share) == ("memory", pytest.approx(0.8))
    assert str(found) == (
        "1 ms on 1 thread(s): 30.0 G integer operations/s (limit not known), 40.0 of 50.0 GB/s; "
        "80% of the memory limit, 800 us"
    )
    both = Roofline(timing, 1, Work(130_000_000, 1000, integers=30_000_000), 200.0, 50.0)
    assert (both.gflops, both.integer_gops) == (pytest.approx(100), pytest.approx(30))
    assert both.share == pytest.approx(0.5)
    assert "100.0 of 200.0 GFLOP/s, 30.0 G integer operations/s" in str(both)


def test_the_picture_has_the_kernel_under_the_roof() -> None:
    found = roofline(100_000_000, 1_000_000)
    picture = found.picture("<new>", beside={"old": roofline(50_000_000, 1_000_000)})
    assert picture.svg.count("<circle") == 2
    assert ">&lt;new&gt;: 50.0%</text>" in picture.svg
    assert ">200 GFLOP/s, 50 GB/s</text>" in picture.svg
    height = {
        label: float(re.search(f' y="([^"]*)"[^>]*>{label}<', picture.svg)[1])  # type: ignore[index]
        for label in ("200 GFLOP/s, 50 GB/s", "GFLOP/s")
    }
    assert len(set(height.values())) == 1  # both above the frame, where there is no grid
    assert str(picture).splitlines()[1:] == [
        "old: 50 GFLOP/s, 25% of its limit",
        "<new>: 100 GFLOP/s, 50% of its limit",
    ]


def test_a_roofline_shows_its_text_and_its_picture() -> None:
    found = roofline(100_000_000, 1_000_000)
    assert found._repr_html_() == f"<p>{found}</p>{found.picture().svg}"
    nothing_counted = roofline(0, 1_000_000)
    assert nothing_counted._repr_html_() == f"<p>{nothing_counted}</p>"
    assert "<circle" not in nothing_counted.picture().svg
