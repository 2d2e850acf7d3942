"""Import and compile mutants of small models in a process of their own, and count what comes out.

    python -m tests.graph.fuzz.run --imports 22500 --compiles 20000 --seed 1 --keep found

The same seed draws the same mutants of the same seed models (see seeds.py). What must not come out
(an exception that is not ours, a defect of ours, more than two gigabytes, more than ten seconds, a
process that died) is printed with its number and kept as a model. What was written by hand, and the
failures of earlier runs, which lie in corpus/, come first.
Exit code 1 where something failed.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .hostile import models
from .mutate import mutant
from .seeds import add_folder

CORPUS = Path(__file__).with_name("corpus")
ALLOWED = ("accepted", "refused")
_WALL_SECONDS = 180.0  # of a case, on a machine that is busy
_CASES = 2000  # of one process
_SEEDS = 1 << 32  # mutants between those of two runs
_ROOT = Path(__file__).resolve().parents[3]


class Worker:
    """A process that examines models, started anew when it dies."""

    def __init__(self, seeds: Path | None) -> None:
        folder = [] if seeds is None else [str(seeds.resolve())]
        self._command = [sys.executable, "-m", "tests.graph.fuzz.examine", *folder]
        self._process: subprocess.Popen[bytes] | None = None
        self._asked = 0

    def ask(self, request: dict[str, object]) -> dict[str, object]:
        """What became of one model."""
        if self._asked % _CASES == 0:  # what a case may take must not depend on many before it
            self.stop()
        self._asked += 1
        if self._process is None:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=_ROOT,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # it says nothing then, either
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not data.endswith(b"\n"):
                part = b""
                if selector.select(_WALL_SECONDS):
                    part = os.read(self._process.stdout.fileno(), 1 << 16)
                if not part:
                    return self._died()
                data += part
        answer: dict[str, object] = json.loads(data)
        return answer

    def stop(self) -> int:
        """End the process; its exit code."""
        if self._process is None:
            return 0
        self._process.kill()
        self._process.communicate()
        code, self._process = self._process.returncode, None
        return code

    def _died(self) -> dict[str, object]:
        assert self._process is not None
        code = self._process.poll()
        self.stop()
        reason = "no answer" if code is None else f"ended with code {code}"
        return {"outcome": "died", "message": reason, "where": "", "seconds": 0.0}


@dataclass(slots=True)
class Tally:
    """What became of the models of one kind."""

    title: str
    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    seconds: float = 0.0  # of the slowest

    def add(self, name: str, answer: dict[str, object]) -> bool:
        """Count a model; whether it failed."""
        outcome = str(answer["outcome"])
        self.outcomes[outcome] += 1
        self.seconds = max(self.seconds, float(str(answer["seconds"])))
        if outcome == "refused":
            self.codes[str(answer["code"])] += 1
        if outcome in ALLOWED:
            return False
        self.failures.append((name, answer))
        return True

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common())
        lines = [
            f"{self.title}: {self.outcomes.total()} models: {counts or 'none'}; "
            f"{len(self.codes)} codes; slowest {self.seconds:.1f} s"
        ]
        for name, answer in self.failures:
            lines.append(f"  {name}: {answer['outcome']}: {answer['message']} {answer['where']}")
        return "\n".join(lines)


def run(
    imports: int,
    compiles: int,
    seed: int = 0,
    *,
    keep: Path | None = None,
    seeds: Path | None = None,
) -> tuple[Tally, Tally, Tally]:
    """What became of the corpus, of the imported mutants and of the compiled ones.

    keep: where failures are written. seeds: a folder of further seeds.
    """
    worker = Worker(seeds)
    if seeds is not None:
        add_folder(seeds)
    tallies = Tally("corpus"), Tally("imports"), Tally("compiles")
    corpus, imported, compiled = tallies
    try:
        with corpus_files() as paths:
            for path in paths:
                corpus.add(path.name, worker.ask({"file": str(path), "compile": True}))
        first = seed * _SEEDS
        for tally, count, start in ((imported, imports, 0), (compiled, compiles, _SEEDS // 2)):
            for number in range(first + start, first + start + count):
                answer = worker.ask({"seed": number, "compile": tally is compiled})
                if tally.add(str(number), answer):
                    _keep(keep, number)
                    print(f"{number}: {answer}", flush=True)
    finally:
        worker.stop()
    return tallies


@contextmanager
def corpus_files() -> Iterator[list[Path]]:
    """The models of the corpus, and those that are written by hand, as files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models().items():
            Path(folder, f"{name}.onnx").write_bytes(model.SerializeToString())
        yield [*sorted(CORPUS.glob("*.onnx")), *sorted(Path(folder).glob("*.onnx"))]


def _keep(folder: Path | None, number: int) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.onnx").write_bytes(mutant(number).SerializeToString())


def main() -> int:
    """Run as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--imports", type=int, default=500)
    parser.add_argument("--compiles", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=Path, help="a folder of further seeds")
    parser.add_argument("--keep", type=Path, help="a folder for the models that fail")
    options = parser.parse_args()
    tallies = run(
        options.imports,
        options.compiles,
        options.seed,
        keep=options.keep,
        seeds=options.seeds,
    )
    print(*tallies, sep="\n")
    return int(any(tally.failures for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
