"""Transpositions on a grid, as the emulation of their own source sees them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir.reference.evaluate import evaluate

from ...schedule.programs import integers
from ...schedule.rules.gpu.test_rules import turned

pytestmark = pytest.mark.needs_cxx


def test_neighbours_read_neighbours_and_write_neighbours() -> None:
    func = turned(2, 64, 40)
    arrays = integers(func)
    emulated = tw.emulated(tw.build(func, "cuda:sm_80"), checked=True)
    np.testing.assert_array_equal(emulated(*arrays.values()), evaluate(func, arrays)["Y"])
    report = emulated.code.report
    assert report, str(report)
    assert {site.space for site in report.sites} == {"global", "shared"}
    assert {site.bank_conflict_degree for site in report.sites} == {1}
    assert {site.efficiency for site in report.sites} == {1}
    assert [bool(barrier.needed) for barrier in report.barriers] == [True]
