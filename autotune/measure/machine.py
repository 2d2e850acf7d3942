"""Measuring on this machine: compiles candidates, and lets a worker process check and time them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Lock
from time import perf_counter, sleep

from ...codegen.artifact import Written
from ...driver.backends.table import tuner_of
from ...driver.check.clock import Clock
from ...driver.tuning.errors import TuneError
from ...driver.tuning.tuner import Compiled
from ...runtime.machine.host import allowed_cpus
from ...runtime.toolchain.compile import CompileTimedOut
from ...tir.errors import TilewrightError
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from ..log.conditions import conditions
from ..log.disturbance import note_of, repeated
from .device_lock import cpu_lock, gpu_lock
from .drift import DRIFT, DriftMonitor
from .jobs import Job, Reply, Result, bar_to_json
from .worker_process import Deadlines, Worker, WorkerFault

_LONG = 1.0  # seconds; a longer pause is reported

Ready = dict[int, tuple[Written, Compiled]]  # what is compiled, by its number in the job
Readings = tuple[float, float]


class Machine:
    """Compiles, checks and times candidates here. A context manager; one job at a time.

    tell: called with a text that says what it waits for. clock: the seconds of its stages.
    """

    def __init__(
        self, deadlines: Deadlines | None = None, tell: Callable[[str], None] | None = None
    ) -> None:
        self.deadlines = deadlines or Deadlines()
        self.lock = cpu_lock(tell)
        self._gpu_lock = gpu_lock(tell)
        self._tell = tell
        self.clock = Clock()
        self._worker = Worker(self.deadlines, self.clock)
        self._compilers = ThreadPoolExecutor(allowed_cpus(), "tilewright-compile")
        self._compiled: dict[str, Future[Compiled]] = {}
        self._least_local: dict[str, int] = {}  # bytes of a thread, by function
        self._drift = DriftMonitor()
        self._one_at_a_time = Lock()
        self._is_closed = False
        self._timed = 0.0  # seconds of the last timing

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, and with it a running job."""
        self._is_closed = True
        self._compilers.shutdown(wait=False, cancel_futures=True)
        self._worker.kill()
        with self._one_at_a_time:
            self._worker.close()

    def compile_ahead(self, artifact: Written) -> None:
        """Start to compile a candidate of a later job."""
        if artifact.source not in self._compiled:
            self._compiled[artifact.source] = self._compilers.submit(self._compile, artifact)

    def measure(self, job: Job) -> Reply:
        """Run a job. Raises: TuneError where no worker starts; CompilerNotFound."""
        with self._one_at_a_time:
            for artifact in job.candidates:
                self.compile_ahead(artifact)
            found: dict[int, Result] = {}
            ready: Ready = {}
            for number, artifact in enumerate(job.candidates):
                try:
                    ready[number] = artifact, self._compiled[artifact.source].result()
                except CompileTimedOut as error:
                    found[number] = Result("timed-out", error.message)
                except TilewrightError as error:
                    found[number] = Result("build-failed", str(error))
            for artifact in job.candidates:
                self._compiled.pop(artifact.source, None)
            if job.is_final:
                self._worker.close()
            else:
                found.update(self._spilled(job, ready))
                ready = {number: one for number, one in ready.items() if number not in found}
            found.update(self._fates(job, ready))
            results = tuple(found[number] for number in range(len(job.candidates)))
            return Reply(conditions(job.target), results)

    def _compile(self, artifact: Written) -> Compiled:
        with self.lock.building():
            found = tuner_of(artifact.target).compile(artifact, self.deadlines.compile)
        self.clock.add("compile", found.seconds)
        return found

    def _spilled(self, job: Job, ready: Ready) -> dict[int, Result]:
        """Refuse candidates that spill more bytes per thread than the best candidate of the
        function, the default excepted, since all others are compared with it.
        """
        found = {number: one.local_bytes for number, (_, one) in ready.items()}
        known = [self._least_local[job.func]] if job.func in self._least_local else []
        least = min((*known, *found.values()), default=0)
        self._least_local[job.func] = least
        return {
            number: Result(
                "build-failed",
                f"spills {local} bytes per thread to local memory; the best candidate spills "
                f"{least}",
            )
            for number, local in found.items()
            if local > least and number != job.default
        }

    def _fates(self, job: Job, ready: Ready) -> dict[int, Result]:
        """The result of each candidate.

        One that times out or is wrong is dropped, and a new worker continues with the others. A
        crash may be caused by an earlier candidate that wrote out of bounds, so after a crash each
        candidate gets its own worker. Raises: TuneError where no worker starts.
        """
        found: dict[int, Result] = {}
        todo, alone = list(ready), False
        while todo:
            group = todo[:1] if alone else todo
            default = group.index(job.default) if job.default in group else None
            got = self._at_rest(replace(job, default=default), [ready[n] for n in group])
            if isinstance(got, WorkerFault) and (self._is_closed or got.stage == "start"):
                raise _no_worker(got)
            if not isinstance(got, WorkerFault):
                found.update(zip(group, got, strict=True))
            elif len(group) > 1 and (got.candidate is None or got.may_be_another):
                alone = True
            else:
                guilty = group[got.candidate if len(group) > 1 and got.candidate is not None else 0]
                found[guilty] = Result(got.outcome, got.text)
            if alone or isinstance(got, WorkerFault):
                self._worker.close()
            todo = [n for n in todo if n not in found]
        return found

    def _at_rest(
        self, job: Job, ready: Sequence[tuple[Written, Compiled]]
    ) -> WorkerFault | list[Result]:
        """The results of candidates that take turns, from a time when the machine was at rest; what
        it was otherwise stands in their texts.
        """
        notes: list[str] = []
        while True:
            got = self._once(job, ready)
            if isinstance(got, WorkerFault):
                return got
            results, readings = got
            drift = self._drift.drift(readings)
            if drift > DRIFT:
                notes.append(note_of(drift))
            if self._drift.accepts(readings, self._timed):
                return [replace(one, text="; ".join(notes)) for one in results]
            pause = self._drift.pause()
            notes[-1] = repeated(notes[-1])
            if self._tell is not None and pause >= _LONG:
                self._tell(f"{notes[-1]} after {pause:.1f} s")
            sleep(pause)

    def _once(
        self, job: Job, ready: Sequence[tuple[Written, Compiled]]
    ) -> WorkerFault | tuple[list[Result], Readings]:
        """One run of the worker."""
        tuner = tuner_of(job.target)
        body: dict[str, Json] = {
            "func": job.func,
            "seed": job.seed,
            "threads": job.target.threads,
            "memory": job.memory,
            "rounds": job.rounds,
            "is_final": job.is_final,
            "bar": bar_to_json(job.bar),
            "default": job.default,
            "sizes": [list(values) for values in job.sizes],
            "candidates": [{**tuner.to_json(code), **one.origin} for code, one in ready],
        }
        timing = partial(self._timing, job.target)
        got = self._worker.run(body, [one.binary for _, one in ready], timing)
        if isinstance(got, WorkerFault):
            return got
        done = Reader(dict(got.body), "reply")["done"]
        results = [Result.from_json(one) for one in done["results"].items()]
        return results, (done["before"].number(), done["after"].number())

    @contextmanager
    def _timing(self, target: Target) -> Iterator[None]:
        """The device is ours alone."""
        asked, locks = perf_counter(), {"CPU": self.lock, "GPU": self._gpu_lock}
        with locks[tuner_of(target).device].timing():
            began = perf_counter()
            self.clock.add("wait", began - asked)
            yield
            self._timed = perf_counter() - began


def _no_worker(fault: WorkerFault) -> TuneError:
    return TuneError(
        "tune: no process that measures can be started here.",
        code="tune-start",
        notes=(f"{fault.text}.",),
    )
