"""A search in a thread of its own, and the handle of it."""

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
    """What IPython gives for something that it shows."""

    def update(self, shown: object) -> None: ...


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

    def __repr__(self) -> str:
        state = "Tuning, running" if self.is_running else "Tuning, ended"
        return f"{state}:\n{self._known()}"

    def _repr_html_(self) -> str:
        return self._known()._repr_html_()

    def _ipython_display_(self) -> None:
        """Show it in a notebook, where the picture follows the search until it has ended."""
        from IPython.display import HTML, display  # whoever calls this has it

        shown = display(HTML(self._repr_html_()), display_id=True)  # type: ignore[no-untyped-call]
        Thread(target=self._follow, args=(shown, HTML), daemon=True).start()

    def _follow(self, shown: _Display, html: Callable[[str], object]) -> None:
        """Show it anew every while, the last time when it has ended."""
        goes_on = True
        while goes_on:
            wait([self._result], _SHOWN_EVERY)
            goes_on = self.is_running
            shown.update(html(self._repr_html_()))

    def _known(self) -> TuneResult:
        """What was found until now, also by a search that failed."""
        failed = None if self.is_running else self._result.exception()
        if failed is None:
            return self.so_far
        return self._session.found(f"{type(failed).__name__}: {failed}")

    def _search(self) -> None:
        try:
            self._result.set_result(self._session.search())
        except BaseException as error:  # it is the caller's, who waits in another thread
            self._result.set_exception(error)
