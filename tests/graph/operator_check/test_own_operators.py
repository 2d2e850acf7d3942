"""tilewright's own operators go through `check_operator`, too."""

from __future__ import annotations

import pytest

import tilewright as tw
from tests.graph.ops.operators import Sample, samples


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sample", samples(), ids=str)
def test_nothing_is_found(sample: Sample) -> None:
    report = tw.check_operator(sample.op, [sample.arrays])
    assert report, report
