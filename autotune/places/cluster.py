"""A Dask scheduler as a place, with the package `distributed` (the extra `cluster`)."""

from __future__ import annotations

from typing import Any

from ...driver.tuning.errors import TuneError
from .executors import Elsewhere

DASK = "dask://"
_CONNECT = "10s"


class Cluster(Elsewhere):
    """The workers of a Dask scheduler: each measures one job at a time and has one queued."""

    def __init__(self, client: Any) -> None:  # distributed has no types of its own
        super().__init__(client.get_executor(pure=False), lambda: 2 * len(client.nthreads()))
        self._client = client

    def close(self) -> None:
        """Cancel the open jobs, and disconnect from the scheduler."""
        super().close()
        self._client.close()


def cluster(text: str) -> Cluster:
    """The place with an address "dask://HOST:PORT". Raises: TuneError."""
    address = text.removeprefix(DASK)
    if address == text or not address:
        raise TuneError(
            f"tune: there is no executor '{text}'; expected {DASK}HOST:PORT.", code="tune-place"
        )
    try:
        from distributed import Client  # optional: the extra `cluster`
    except ImportError:
        raise TuneError(
            "tune: the package 'distributed', which speaks to Dask, is not there.",
            code="tune-cluster",
            hints=('pip install "tilewright[cluster]"',),
        ) from None
    try:
        return Cluster(Client(f"tcp://{address}", timeout=_CONNECT, set_as_default=False))
    except OSError as error:
        raise TuneError(
            f"tune: no scheduler of Dask answers at '{address}' within {_CONNECT}.",
            code="tune-scheduler",
            hints=("dask scheduler --port 8786 starts one.",),
        ) from error
