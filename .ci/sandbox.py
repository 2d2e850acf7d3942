"""A clone of a commit, in which one file is changed for a while and programs run with limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds after which a program that took no time of a processor waits for ever


@dataclass(frozen=True, slots=True)
class Finished:
    """How a program ended. status: of its exit, or minus a signal; None: it ran out of time."""

    status: int | None
    output: str
    errors: str


class Sandbox:
    """The clone. path: its root, which is the package."""

    def __init__(self, folder: Path, commit: str = "HEAD") -> None:
        """Clone a commit of this repository below a folder."""
        self.path = folder / "tilewright"
        subprocess.run(["git", "clone", "-q", "-n", str(ROOT), str(self.path)], check=True)
        at = ["git", "-C", str(self.path), "checkout", "-q", "--detach"]
        subprocess.run([*at, full_hash(commit)], check=True)

    def read(self, file: str) -> str:
        """The text of a file."""
        return (self.path / file).read_text(encoding="utf-8")

    @contextmanager
    def changed(self, file: str, text: str) -> Iterator[None]:
        """Let a file hold a text."""
        original = self.read(file)
        (self.path / file).write_text(text, encoding="utf-8")
        try:
            yield
        finally:
            (self.path / file).write_text(original, encoding="utf-8")

    def run(self, arguments: Sequence[str], seconds: int) -> Finished:
        """Run Python in the clone, for so many seconds of a processor."""
        limited = ["/bin/sh", "-c", f'ulimit -S -t {seconds}; exec "$@"', "sh", sys.executable]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.path.parent),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = subprocess.Popen(
            [*limited, *arguments],
            cwd=self.path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        spent = -1
        while True:
            try:
                output, errors = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                before, spent = spent, ticks(process.pid)
                if spent == before:
                    os.killpg(process.pid, signal.SIGKILL)
                    return Finished(None, *process.communicate())
            else:
                status = process.returncode
                return Finished(None if status == -signal.SIGXCPU else status, output, errors)

    def test(self, files: Sequence[str], seconds: int, without: Sequence[str] = ()) -> Finished:
        """Run tests until the first one fails, but for those `without`."""
        options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        options += [f"--deselect={name}" for name in without]
        return self.run(["-m", "pytest", *options, *files], seconds)


def how_it_died(done: Finished) -> str:
    """A signal, the last line of a traceback, or that it took too long."""
    if done.status is None:
        return "out of time"
    if done.status < 0:
        return signal.Signals(-done.status).name
    said = done.errors.strip() or done.output.strip() or f"status {done.status}"
    return said.splitlines()[-1][:200]


def first_failure(done: Finished) -> str:
    """The name of the first test that failed."""
    if done.status is None:
        return "out of time"
    found = [line for line in done.output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return found[0].split(" ")[1] if found else "" if done.status == 0 else how_it_died(done)


def ticks(session: int) -> int:
    """The time of a processor that the living programs of a session took, as the kernel counts."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[11]) + int(fields[12])
    return total


def full_hash(commit: str) -> str:
    """The whole hash of a commit of this repository."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{commit}^{{commit}}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
