"""Attention by tiles of keys on a grid, as the emulation of its own source sees it."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.target.target import Target

from ...schedule.rule_checks import Answered
from ...schedule.rules.gpu.test_rules import online_attention

A100 = Target.parse("cuda:sm_80")

pytestmark = pytest.mark.needs_cxx


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("rows", "places", "of_a_thread"), [(24, 24, 1), (40, 70, 4)])
def test_scores_stay_in_shared_memory(rows: int, places: int, of_a_thread: int) -> None:
    func = online_attention(rows, places, 16, tile=32)
    answers = Answered({"rows of a thread of Y_products": of_a_thread})
    kernel = tw.build(default_schedule(func, A100, answers), A100)
    assert kernel.proof.status == "proved"
    assert kernel.source.count("__global__") == 1
    rng = np.random.default_rng(0)
    arrays = {b.name: rng.standard_normal(b.shape, dtype=np.float32) for b in func.inputs}
    emulated = tw.emulated(kernel, checked=True)
    expected = evaluate(func, arrays)["Y"]
    np.testing.assert_allclose(emulated(*arrays.values()), expected, rtol=2e-5, atol=2e-6)
    report = emulated.code.report
    assert report, str(report)
    assert all(barrier.needed for barrier in report.barriers)
    # of a tile of several rows of a thread, a warp stores two at once, which begin in other banks
    # than those that it reads as many of
    most = 1 if of_a_thread == 1 else 2
    shared = [site for site in report.sites if site.space == "shared"]
    assert max(site.bank_conflict_degree for site in shared) == most
    assert {site.buffer for site in report.sites if site.space == "global"} <= {*arrays, "Y"}
