"""The function that a worker of an executor runs: measure one job on its own machine.

The executor gets the function `measured` by name and a job as bytes; the reply is bytes too. A
worker process keeps one Machine for each kind of target between jobs.
"""

from __future__ import annotations

from functools import cache

from ...tir.errors import TilewrightError
from ..errors import TuneError
from ..measure.frames import encode
from ..measure.jobs import Job, Reply, whole
from ..measure.machine import Machine


def measured(data: bytes) -> bytes:
    """Measure a job; the reply, or the error text, as bytes."""
    try:
        job = Job.decode(data)
        return _machine(job.target.kind).measure(job).encode()
    except TilewrightError as error:
        return encode({"failed": str(error)})


def reply_of(data: bytes) -> Reply:
    """Decode the result of `measured`. Raises: TuneError where the worker cannot measure."""
    failed = whole(data).body.get("failed")
    if failed is not None:
        raise TuneError(
            "tune: a worker of the executor cannot measure.",
            code="tune-worker",
            notes=tuple(str(failed).splitlines()),
        )
    return Reply.decode(data)


@cache
def _machine(kind: str) -> Machine:
    return Machine()
