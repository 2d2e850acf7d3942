"""Faults planted in the compiler: does the build find them, do the tests?

    python .ci/faults.py --net-only --jobs 2     every fault of the compiler: build, run, compare
    python .ci/faults.py --suite-only            every fault: the test files that should find it
    python .ci/faults.py --only L6,L7            both, for some

One fault of faults.toml at a time stands in a clone of a commit (HEAD, never the files of this
tree). Each of its programs is built there, and what was built runs beside NumPy on one, two, three
and five threads, on arrays between pages that nobody may touch. So a fault is

    refused    the build ended with an error of ours
    undone     the report of the build says what it did not trust, and the results are right
    crashed    the build died, or ended with an error that is none of ours
    right      the build passed, and so did every comparison: the fault has no effect there
    WRONG      the build passed, and the results are wrong, or it read where it may not

A fault that several programs meet counts as the worst that became of it. Results stand under the
commit, in benchmarks/results/faults.json, and in a table beside it; what has a result is left alone
unless --only names it. A fault that is outdated, so that its text does not stand in its file once,
ends everything.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from sandbox import ROOT, Finished, Sandbox, first_failure, full_hash, how_it_died

from tilewright.runtime.machine.host import host

FAULTS = ROOT / ".ci" / "faults.toml"
RESULTS = ROOT / "benchmarks" / "results" / "faults.json"
TRY = ROOT / ".ci" / "fault_try.py"
PROGRAM_SECONDS = 60
SUITE_SECONDS = 300
RANKS = ("right", "refused", "undone", "crashed", "WRONG")  # the last one counts
CAUGHT = ("refused", "undone")
DOUBTS = ("undone", "taken apart", "wrong", "differs", "failed", "without")


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake; faults.toml says what each field is."""

    id: str
    area: str
    wrong: str
    file: str
    old: str
    new: str
    programs: tuple[str, ...]
    tests: tuple[str, ...]
    note: str = ""

    def planted(self, text: str) -> str:
        """The file's text with the mistake in it."""
        if text.count(self.old) != 1:
            raise SystemExit(
                f"faults: the text of {self.id} stands {text.count(self.old)} times in "
                f"{self.file}, not once; the fault is outdated."
            )
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a fault: a verdict, and what shows it."""

    verdict: str
    detail: str
    seconds: float


def read_faults() -> dict[str, Fault]:
    """The faults by id, in order."""
    tables = tomllib.loads(FAULTS.read_text(encoding="utf-8"))
    lists = ("programs", "tests")
    return {
        id_: Fault(id_, **{k: tuple(v) if k in lists else v for k, v in table.items()})
        for id_, table in tables.items()
    }


class Runner:
    """Plants faults of one commit and keeps what becomes of them."""

    def __init__(self, commit: str, folder: Path, jobs: int) -> None:
        self.results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        fresh = {"processor": host().model, "programs": {}, "net": {}, "suite": {}}
        self.column = self.results.setdefault(commit[:7], fresh)
        self._lock = Lock()
        self._idle: SimpleQueue[Sandbox] = SimpleQueue()
        for number in range(jobs):
            self._idle.put(Sandbox(folder / str(number), commit))

    def check_all(self, faults: Sequence[Fault]) -> None:
        """Refuse faults that are outdated, before anything is run."""
        box = self._idle.get()
        for fault in faults:
            fault.planted(box.read(fault.file))
        self._idle.put(box)

    def program(self, name: str) -> None:
        """Try a program where nothing is planted: it must be right, or be refused by intent."""
        box = self._idle.get()
        try:
            done = box.run([str(TRY), name], PROGRAM_SECONDS)
        finally:
            self._idle.put(box)
        report = reported(done.output)
        found = judged(done, 0.0, report, name)
        if found.verdict not in ("right", "refused"):
            raise SystemExit(f"faults: without any fault {found.detail} is {found.verdict}")
        self._keep("programs", name, {"verdict": found.verdict, "report": report})

    def net(self, fault: Fault) -> None:
        """What a build makes of a fault."""
        box = self._idle.get()
        try:
            with box.changed(fault.file, fault.planted(box.read(fault.file))):
                found = [self._tried(box, name) for name in fault.programs]
        finally:
            self._idle.put(box)
        worst = max(found, key=lambda outcome: RANKS.index(outcome.verdict))
        self._keep("net", fault.id, asdict(worst))

    def suite(self, fault: Fault) -> None:
        """What the tests make of a fault."""
        box, began = self._idle.get(), time.monotonic()
        try:
            with box.changed(fault.file, fault.planted(box.read(fault.file))):
                done = box.test(fault.tests, SUITE_SECONDS)
        finally:
            self._idle.put(box)
        if done.status not in (None, 0, 1, 2) and done.status > 0:
            raise SystemExit(f"faults: the tests of {fault.id} did not run: {done.errors}")
        verdict = "alive" if done.status == 0 else "killed"
        seconds = round(time.monotonic() - began, 1)
        self._keep("suite", fault.id, asdict(Outcome(verdict, first_failure(done), seconds)))

    def _tried(self, box: Sandbox, name: str) -> Outcome:
        began = time.monotonic()
        done = box.run([str(TRY), name], PROGRAM_SECONDS)
        usual = self.column["programs"][name]["report"]
        return judged(done, time.monotonic() - began, usual, name)

    def _keep(self, kind: str, name: str, entry: Mapping[str, object]) -> None:
        with self._lock:
            self.column[kind][name] = entry
            RESULTS.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
            RESULTS.with_suffix(".md").write_text(table(self.results), encoding="utf-8")
            print(f"{kind} {name}: {entry['verdict']}", flush=True)


def lines(output: str) -> dict[str, dict[str, object]]:
    """What a try said, by stage."""
    return {entry["stage"]: entry for entry in map(json.loads, output.splitlines())}


def reported(output: str) -> list[object]:
    """What the build said in its report."""
    return list(lines(output).get("built", {}).get("report", ()))  # type: ignore[call-overload]


def judged(done: Finished, seconds: float, usual: Sequence[object], name: str = "") -> Outcome:
    """What a try shows. usual: the report of the same build without a fault."""
    said, took = lines(done.output), round(seconds, 1)
    if "refused" in said:
        return Outcome("refused", str(said["refused"]["text"]), took)
    if "built" not in said:
        return Outcome("crashed", f"{name}: {how_it_died(done)}", took)
    if "checked" not in said:
        return Outcome(
            "WRONG", f"{name}: the kernel dies when it is run: {how_it_died(done)}", took
        )
    checked = said["checked"]
    if not checked["right"]:
        share, threads = float(str(checked["error"])), checked["threads"]
        return Outcome("WRONG", f"{name}: off by {share:.2g} at {threads} threads", took)
    new = [str(line) for line in reported(done.output) if line not in usual]
    doubts = [line for line in new if any(word in line for word in DOUBTS)]
    return Outcome("undone", doubts[0], took) if doubts else Outcome("right", name, took)


def table(results: Mapping[str, Mapping[str, Mapping[str, Mapping[str, object]]]]) -> str:
    """The results as Markdown."""
    faults = read_faults()
    compiler = [fault for fault in faults.values() if fault.programs]
    parts = ["# Planted faults\n"]
    for commit, column in results.items():
        net = {i: str(entry["verdict"]) for i, entry in column["net"].items()}
        suite = {i: str(entry["verdict"]) for i, entry in column["suite"].items()}
        caught = sum(net.get(f.id) in CAUGHT for f in compiler)
        numbers = ", ".join(f"{list(net.values()).count(v)} {v}" for v in reversed(RANKS))
        killed = list(suite.values()).count("killed")
        parts.append(
            f"{commit}, on {column['processor']}: a build caught {caught} of {len(net)} faults of "
            f"the compiler ({numbers}); tests killed {killed} of {len(suite)} faults.\n"
        )
    heads = [f"{kind} at {commit}" for commit in results for kind in ("build", "tests")]
    parts.append(f"| fault | what is wrong | {' | '.join(heads)} |")
    parts.append("|" + " --- |" * (2 + len(heads)))
    for fault in faults.values():
        cells = [fault.id, fault.wrong]
        for column in results.values():
            cells += [cell(column["net"].get(fault.id)), cell(column["suite"].get(fault.id))]
        parts.append(f"| {' | '.join(cells)} |")
    notes = [f"- {fault.id}: {fault.note}." for fault in faults.values() if fault.note]
    return "\n".join([*parts, "", *notes]) + "\n"


def cell(entry: Mapping[str, object] | None) -> str:
    """What became of a fault, in a table."""
    if entry is None:
        return ""
    detail = str(entry["detail"]).replace("|", "\\|")
    return f"{entry['verdict']}: {detail[:160]}" if detail else str(entry["verdict"])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--net-only", action="store_true", help="build and run, no tests")
    kinds.add_argument("--suite-only", action="store_true", help="tests, nothing is built")
    parser.add_argument("--only", default="", help="ids, separated by commas")
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    faults = read_faults()
    chosen = [faults[id_] for id_ in given.only.split(",")] if given.only else [*faults.values()]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        runner = Runner(full_hash(given.commit), Path(folder), given.jobs)
        runner.check_all(chosen)
        column, again = runner.column, bool(given.only)
        if not given.suite_only:
            tried = [f for f in chosen if f.programs and (again or f.id not in column["net"])]
            names = dict.fromkeys(name for fault in tried for name in fault.programs)
            missing = [name for name in names if name not in column["programs"]]
            list(pool.map(runner.program, missing))
            list(pool.map(runner.net, tried))
        if not given.net_only:
            left = [f for f in chosen if again or f.id not in column["suite"]]
            list(pool.map(runner.suite, left))
    print(RESULTS.with_suffix(".md"))


if __name__ == "__main__":
    sys.exit(main())
