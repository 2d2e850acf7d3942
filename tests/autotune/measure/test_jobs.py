from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from tilewright.autotune.log.record import OUTCOMES, Workload
from tilewright.autotune.measure.jobs import Job, Reply, Result
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.space.space import TuningSpace
from tilewright.tir.target.target import Target

from ..samples import scaled, trial

TARGET = Target.parse("c:avx2")
FUNC = scaled()


@pytest.mark.parametrize("bar", [None, inf, 1e-6])
def test_a_job_is_what_it_was_when_it_arrives(bar: float | None) -> None:
    subject = Subject(FUNC, TARGET, "elementwise", Workload.of(FUNC).key, seed=3)
    written = write(TuningSpace(FUNC, TARGET).candidate(), TARGET)
    job = subject.job([written, written], 7, bar=bar, is_final=True)
    data = job.encode()
    assert Job.decode(data) == job
    assert Job.decode(data).default == 0
    assert Job.decode(replace(job, default=None).encode()).default is None
    assert Job.decode(data).candidates[0].source == written.artifact.source
    with pytest.raises(EOFError):
        Job.decode(data[:-1])


def test_a_reply_is_what_it_was_when_it_arrives() -> None:
    results = [Result(outcome, f"what {outcome} means") for outcome in OUTCOMES]
    right = Result("ok", "", (1e-6, 2e-6), 512, 64 << 20, 110.5)
    reply = Reply(trial().conditions, (right, *results))
    assert Reply.decode(reply.encode()) == reply
    assert Reply.decode(replace(reply, results=()).encode()).results == ()
