"""A search in a background thread, and its handle."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import Protocol

from .result import TuneResult
from .session import Session

_RUNNING = "it is still running"
_SHOWN_EVERY = 1.0  # seconds, in a notebook


class _Display(Protocol):
    """The handle that IPython returns for a displayed object."""

    def update(self, shown: object) -> None: ...


class Tuning:
    """The handle of a search in the background: its result so far, stopping it, waiting for it."""

    def __init__(self, session: Session) -> None:
        """Start the search."""
        self._session = session
        self._result: Future[TuneResult] = Future()
        Thread(target=self._search, name="tilewright-tune", daemon=True).start()

    @property
    def is_running(self) -> bool:
        """Whether the search has not ended."""
        return not self._result.done()

    @property
    def so_far(self) -> TuneResult:
        """The result so far."""
        return self._session.result(_RUNNING) if self.is_running else self.result()

    def stop(self) -> None:
        """End the search after the trials that are being measured."""
        self._session.stop()

    def result(self, timeout: float | None = None) -> TuneResult:
        """Wait for the search to end, and return its result. timeout: seconds.

        Raises: TimeoutError; what `tune` raises.
        """
        return self._result.result(timeout)

    def __repr__(self) -> str:
        state = "Tuning, running" if self.is_running else "Tuning, ended"
        return f"{state}:\n{self._latest()}"

    def _repr_html_(self) -> str:
        return self._latest()._repr_html_()

    def _ipython_display_(self) -> None:
        """Display the result in a notebook, and update it until the search has ended."""
        from IPython.display import HTML, display  # the caller is IPython

        shown = display(HTML(self._repr_html_()), display_id=True)  # type: ignore[no-untyped-call]
        Thread(target=self._follow, args=(shown, HTML), daemon=True).start()

    def _follow(self, shown: _Display, html: Callable[[str], object]) -> None:
        """Update a display every second, the last time when the search has ended."""
        goes_on = True
        while goes_on:
            wait([self._result], _SHOWN_EVERY)
            goes_on = self.is_running
            shown.update(html(self._repr_html_()))

    def _latest(self) -> TuneResult:
        """The result so far, also of a search that failed."""
        failed = None if self.is_running else self._result.exception()
        if failed is None:
            return self.so_far
        return self._session.result(f"{type(failed).__name__}: {failed}")

    def _search(self) -> None:
        try:
            self._result.set_result(self._session.search())
        except BaseException as error:  # raised where the result is asked for
            self._result.set_exception(error)
