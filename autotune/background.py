"""A search in a thread of its own, and the handle of it."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread

from .result import TuneResult
from .session import Session

_RUNNING = "it is still running"


class Tuning:
    """A search that runs: ask for what it found so far, stop it, wait for its result."""

    def __init__(self, session: Session) -> None:
        """Start it."""
        self._session = session
        self._result: Future[TuneResult] = Future()
        Thread(target=self._search, name="tilewright-tune", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return not self._result.done()

    @property
    def so_far(self) -> TuneResult:
        """What was found until now."""
        return self._session.found(_RUNNING) if self.is_running else self.result()

    def stop(self) -> None:
        """Have it end behind the trials that are being measured."""
        self._session.stop.set()

    def result(self, timeout: float | None = None) -> TuneResult:
        """What it found, when it has ended. timeout: seconds.

        Raises: TimeoutError; what `tune` raises.
        """
        return self._result.result(timeout)

    def _search(self) -> None:
        try:
            self._result.set_result(self._session.search())
        except BaseException as error:  # it is the caller's, who waits in another thread
            self._result.set_exception(error)
