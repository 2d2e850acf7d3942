"""The function that a worker of an executor runs: measure one job on its own machine.

An executor is given the function `measured` by its name and a job as bytes; it answers with bytes.
A process has one machine for each device, which lives on between jobs.
"""

from __future__ import annotations

from functools import cache

from ...driver.backends.table import tuner_of
from ...driver.tuning.errors import TuneError
from ...driver.tuning.tuner import Device
from ...tir.errors import TilewrightError
from ..measure.frames import encode
from ..measure.jobs import Job, Reply, whole
from ..measure.machine import Machine


def measured(data: bytes) -> bytes:
    """Measure a job; the reply, or the error text, as bytes."""
    try:
        job = Job.decode(data)
        return _machine(tuner_of(job.target).device).measure(job).encode()
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
def _machine(device: Device) -> Machine:
    return Machine()
