"""tilewright's own operators go through `check_operator`, too."""

from __future__ import annotations

import pytest

import tilewright as tw
from tests.graph.ops.operators import Sample, samples
from tilewright.graph.ops.base import Operator
from tilewright.graph.ops.resize import Resize, Stretch

# Beyond its ends, a tensor that is stretched to a size that a run decides has the element there
# twice; the reference has it and its neighbour, times 0, which is NaN where that is infinite.
_TIMES_ZERO = "on data with NaN and infinities"


def may_differ(op: Operator) -> bool:
    is_linear = isinstance(op, Resize) and op.sampling == "linear"
    return is_linear and any(isinstance(one, Stretch) for one in op.places)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("sample", samples(), ids=str)
def test_nothing_is_found(sample: Sample) -> None:
    report = tw.check_operator(sample.op, [sample.arrays])
    if may_differ(sample.op):
        (finding,) = report.findings
        assert _TIMES_ZERO in finding.problem
    else:
        assert report, report
