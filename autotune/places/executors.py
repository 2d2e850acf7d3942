"""An executor as a place: its workers, threads or processes here or elsewhere, run the jobs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass, field
from functools import partial

from ...codegen.artifact import Written
from ...driver.check.clock import Clock
from ...driver.tuning.errors import TuneError
from ...tir.target.target import Target
from ..log.record import Conditions
from ..measure.jobs import Job, Reply
from .executor_worker import measured, reply_of

_TRIES = 3  # for a job whose worker is lost
_SLOTS = 4  # jobs at a time, for an executor whose number of workers is unknown

Slots = Callable[[], int]


@dataclass
class _Sent:
    """A job that was submitted."""

    target: Target
    data: bytes
    reply: Future[Reply] = field(default_factory=Future)
    tries: int = 0


class Elsewhere:
    """The workers of an executor as a place. The executor stays open.

    slots: the number of jobs in flight; None: twice the number of workers, so that none of them
    waits for the search.
    """

    def __init__(self, executor: Executor, slots: Slots | None = None) -> None:
        self.clock = Clock()
        self._executor = executor
        self._slots = slots or partial(_slots, executor)
        self._open: set[Future[bytes]] = set()
        self._first: dict[Target, Conditions] = {}  # of the first reply

    @property
    def slots(self) -> int:
        """The number of jobs in flight."""
        return max(1, self._slots())

    def conditions(self, target: Target) -> Conditions:
        """The conditions of the first worker that replies. Raises: TuneError."""
        known = self._first.get(target)
        return known or self.submit(Job("", 0, target, 0, 0, ())).result().conditions

    def compile_ahead(self, artifact: Written) -> None:
        """Do nothing: the machine that measures also compiles."""

    def submit(self, job: Job) -> Future[Reply]:
        """Submit a job, again where its worker is lost. The future raises: TuneError."""
        sent = _Sent(job.target, job.encode())
        self._send(sent)
        return sent.reply

    def close(self) -> None:
        """Cancel the open jobs."""
        for sent in tuple(self._open):
            sent.cancel()

    def _send(self, sent: _Sent) -> None:
        sent.tries += 1
        try:
            future = self._executor.submit(measured, sent.data)
        except Exception as error:  # any class: executors are third-party code
            sent.reply.set_exception(_lost(error))
            return
        self._open.add(future)
        future.add_done_callback(partial(self._take, sent))

    def _take(self, sent: _Sent, future: Future[bytes]) -> None:
        """Pass on the reply of a worker."""
        self._open.discard(future)
        try:
            reply = reply_of(future.result())
            self._check_conditions(sent.target, reply.conditions)
            sent.reply.set_result(reply)
        except TuneError as error:
            sent.reply.set_exception(error)
        except CancelledError:
            sent.reply.cancel()
        except Exception as error:  # any class: executors are third-party code
            if sent.tries < _TRIES:
                self._send(sent)
            else:
                sent.reply.set_exception(_lost(error))

    def _check_conditions(self, target: Target, found: Conditions) -> None:
        """Refuse a machine whose times cannot be compared with those of the first one."""
        first = self._first.setdefault(target, found)
        if found != first:
            raise TuneError(
                "tune: the workers of the executor are machines of several kinds; expected one, "
                "so that times can be compared.",
                code="tune-machines",
                notes=(_described(first), _described(found)),
                hints=("tune on one kind at a time, each with a log of its own.",),
            )


def _slots(executor: Executor) -> int:
    """Twice the number of workers, an attribute of the executors of concurrent.futures."""
    return 2 * int(getattr(executor, "_max_workers", _SLOTS // 2))


def _lost(error: Exception) -> TuneError:
    return TuneError(
        f"tune: the executor lost a job: {type(error).__name__}: {error}.", code="tune-executor"
    )


def _described(at: Conditions) -> str:
    driver = f", {at.driver}" if at.driver else ""
    return f"{at.cpu}{driver}, {at.compiler}, {' '.join(at.flags)}, tilewright {at.tool}."
