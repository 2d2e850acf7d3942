"""A run of the fuzzer: cases until the time is over; failures are made small and kept."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...runtime.machine.host import host
from .case import ISAS, Case, draw
from .examine import CaseFailure
from .shrink import shrink
from .steps import Tally, refusals_by_kind

BATCH = 12  # cases that are compiled together
CASE_SECONDS = 60.0  # that one case may take
SHRINK_SECONDS = 60.0
SEEDS = 1_000_000  # seeds of cases between those of two runs

COMMAND = ("-m", "tilewright.driver.fuzz.worker")  # what Python runs as a worker

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Found:
    """A failure: the seed of its case, what is wrong with the small case, and where that is kept.

    path: None where an earlier failure of the run is alike, or nothing is kept.
    """

    seed: int
    failure: CaseFailure
    case: Case
    path: Path | None


@dataclass(slots=True)
class Summary:
    """What a run saw."""

    seed: int
    isas: tuple[str, ...]
    seconds: float = 0.0
    cases: int = 0
    interrupted: bool = False
    applied: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, Counter[str]] = field(default_factory=refusals_by_kind)  # then by code
    present: Counter[str] = field(default_factory=Counter)  # cases in which a primitive applied
    depths: Counter[int] = field(default_factory=Counter)
    proofs: Counter[str] = field(default_factory=Counter)
    target_refused: Counter[str] = field(default_factory=Counter)
    failures: list[Found] = field(default_factory=list)

    def add(self, entry: Json) -> None:
        """Count a case."""
        self.cases += 1
        self.depths[int(str(entry["steps"]))] += 1
        if entry["proof"]:
            self.proofs[str(entry["proof"])] += 1
        for name, counter in (("applied", self.applied), ("refused", self.refused)):
            counted = entry[name]
            assert isinstance(counted, dict)
            counter.update(counted)
            if name == "applied":
                self.present.update(counted.keys())
        kinds = entry["kinds"]
        assert isinstance(kinds, dict)
        for kind, codes in kinds.items():
            self.kinds[kind].update(codes)
        refused = entry["target_refused"]
        assert isinstance(refused, dict)
        self.target_refused.update(refused.values())


class FuzzWorker:
    """A process that examines cases, started anew when it dies. command: what Python runs."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: Json, seconds: float) -> list[Json] | str:
        """The answer, or why there is none: the process crashed or took too long."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._ended()
        deadline = time.monotonic() + seconds
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    self.stop()
                    return f"no answer within {seconds:.0f} s"
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    return self._ended()
                data += part
        answer: list[Json] = json.loads(data)
        return answer

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, *(self._command or COMMAND)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for the run, which ends its worker
                bufsize=0,
            )
        return self._process

    def _ended(self) -> str:
        assert self._process is not None
        self._process.communicate()
        code = self._process.returncode
        self._process = None
        return f"crashed: {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def fuzz(
    seconds: float,
    *,
    seed: int = 0,
    corpus: Path | None = None,
    isas: Sequence[str] | None = None,
    progress: Callable[[Summary], object] = lambda summary: None,
) -> Summary:
    """Draw and examine cases for `seconds`; Ctrl-C ends it early. The same seed draws the same
    cases.

    corpus: the folder that small failing cases are written to. isas: what C runs on; by default
    all that this machine has, none where it is empty.
    """
    chosen = tuple(isa for isa in ISAS if isa in host().isas) if isas is None else tuple(isas)
    run = _Run(Summary(seed, chosen), corpus, FuzzWorker())
    began = time.monotonic()
    try:
        while time.monotonic() - began < seconds:
            run.batch()
            run.summary.seconds = time.monotonic() - began
            progress(run.summary)
    except KeyboardInterrupt:
        run.summary.interrupted = True
    finally:
        run.worker.stop()
    run.summary.seconds = time.monotonic() - began
    return run.summary


@dataclass(slots=True)
class _Run:
    summary: Summary
    corpus: Path | None
    worker: FuzzWorker

    def batch(self) -> None:
        """Some cases; where the worker dies over them, each alone."""
        first = self.summary.seed * SEEDS + self.summary.cases
        seeds = list(range(first, first + BATCH))
        answer = self.ask({"seeds": seeds}, BATCH * CASE_SECONDS)
        if isinstance(answer, str):
            for seed in seeds:
                alone = self.ask({"seeds": [seed]}, CASE_SECONDS)
                self.count(seed, self.died(seed, alone) if isinstance(alone, str) else alone[0])
            return
        for seed, entry in zip(seeds, answer, strict=True):
            self.count(seed, entry)

    def ask(self, request: Json, seconds: float) -> list[Json] | str:
        """The worker's answer."""
        return self.worker.ask({**request, "isas": list(self.summary.isas)}, seconds)

    def died(self, seed: int, reason: str) -> Json:
        """The entry of a case that ended its worker."""
        tally = Tally()
        case = draw(seed, tally).case
        return {
            "steps": len(case.trace.steps),
            "applied": dict(tally.applied),
            "refused": dict(tally.refused),
            "kinds": {kind: dict(codes) for kind, codes in tally.kinds.items()},
            "proof": "",
            "target_refused": {},
            "failure": {"stage": "process", "kind": reason, "message": f"the worker {reason}"},
            "case": case.to_json(),
        }

    def count(self, seed: int, entry: Json) -> None:
        """Count a case and look into its failure."""
        self.summary.add(entry)
        failure = _failure(entry)
        if failure is None:
            return
        held = entry["case"]
        assert isinstance(held, dict)
        case = Case.of(held["function"], held["steps"])
        if any(failure.is_like(found.failure) for found in self.summary.failures):
            self.summary.failures.append(Found(seed, failure, case, None))
            return
        small = shrink(case, lambda smaller: self.fails(smaller, failure), SHRINK_SECONDS)
        path = None if self.corpus is None else keep(self.corpus, seed, small, failure)
        self.summary.failures.append(Found(seed, failure, small, path))

    def fails(self, case: Case, like: CaseFailure) -> bool:
        """Whether a smaller case fails in the same way."""
        answer = self.ask({"case": case.to_json()}, CASE_SECONDS)
        if isinstance(answer, str):
            return like.is_like(CaseFailure("process", answer, answer))
        return like.is_like(_failure(answer[0]))


def _failure(entry: Json) -> CaseFailure | None:
    found = entry["failure"]
    return CaseFailure(**found) if isinstance(found, dict) else None


def keep(folder: Path, seed: int, case: Case, failure: CaseFailure) -> Path:
    """Write a case into the corpus, in one step; the file's path. Raises: OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"seed_{seed}.py"
    text = case.script(f"Found by `tilewright fuzz`, case {seed}.", str(failure))
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=folder, prefix=".", suffix=".tmp", delete=False
    ) as file:
        file.write(text)
    os.replace(file.name, path)
    return path
