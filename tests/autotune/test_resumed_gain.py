"""A search that other work disturbs, and that is interrupted in the middle and goes on, ends with
what an undisturbed one finds; whatever is known meanwhile, every view of the log says it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw
from tests.cli.conftest import Command, tilewright
from tilewright.autotune.log import file
from tilewright.autotune.log.choice import FINALISTS, ScheduleChoice, choose
from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.follow import Follower
from tilewright.autotune.log.record import identity
from tilewright.autotune.measure.jobs import Job, Reply
from tilewright.autotune.report.progress_table import ProgressTable
from tilewright.autotune.result import TuneResult
from tilewright.autotune.tuning_log import TuningLog
from tilewright.runtime.machine.timing import seconds_text

from .loaded import BEST, TARGET, LoadedMachine, code_of, search, seconds_of, times
from .samples import scaled

__all__ = ["tilewright"]

WHERE = {  # at the first batch, at a later one, and in a confirmation, which is one write
    "submit": (1, 2, 8),
    "reply": (1, 2, 8),
    "write": (2, 7, 14),
    "report": (1, 6, 15),
}

pytestmark = pytest.mark.needs_cc


class Interrupted(LoadedMachine):
    """A machine whose n-th reply is a Ctrl-C."""

    reply = 0

    def submit(self, job: Job) -> Future[Reply]:
        done = super().submit(job)
        if self.jobs == self.reply:
            done = Future()
            done.set_exception(KeyboardInterrupt())
        return done


def on_call(number: int, then: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose n-th call is a Ctrl-C."""
    calls = 0

    def call(*arguments: object) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return then(*arguments)

    return call


def interrupted(
    where: str, number: int, machine: Interrupted, log: Path, table: ProgressTable
) -> TuneResult:
    """A search that a Ctrl-C ends at its n-th job, or its n-th write or report of a trial."""
    with pytest.MonkeyPatch.context() as patch:
        if where == "submit":
            patch.setattr(machine, "interrupt", on_call(number, lambda job: None))
        elif where == "reply":
            machine.reply = number
        elif where == "write":
            patch.setattr(file.os, "fsync", on_call(number, os.fsync))
        else:
            add = table.add

            def report(record: object) -> None:
                add(record)  # type: ignore[arg-type]
                then()

            then = on_call(number, lambda: None)
            patch.setattr(table, "add", report)
        return search(machine, log, table)


def views(run: Command, log: Path) -> dict[str, tuple[str, str, str]]:
    """The state, the time of the default and the best time, as each view of a log says them."""
    found = {}
    known = read_log(log)
    followed, (row,) = ProgressTable(), json.loads(run("log", "show", log, "--json").out)
    for record in Follower(log).read():
        followed.add(record)
    (live,) = followed.all_rows
    (best,) = json.loads(run("log", "best", log, "--json").out)
    found["choose"] = said(choose(known.trials))
    found["log watch"] = said(live.choice)
    for name, one in {"log show --json": row, "log best --json": best}.items():
        assert isinstance(one, dict)
        found[name] = (one["state"], text(one["default_seconds"]), text(one["seconds"]))
    state, default, seconds = found["choose"]
    shown = next(x for x in run("log", "show", log).out.splitlines() if x.startswith("scaled"))
    assert default in shown
    assert seconds in shown
    found["log show"] = (shown.split("  ")[-1].split()[0].strip(":"), default, seconds)
    assert f"  {seconds}  {state}" in run("log", "best", log).out
    figure = TuningLog(log).figure()
    drawn = {each.get_text() for each in figure.axes[0].texts}
    assert f"default {default}" in drawn
    assert f", {state}" in figure.get_suptitle()
    if state in ("candidate", "confirmed"):
        assert any(each.startswith(state) and each.endswith(seconds) for each in drawn)
    html = TuningLog(log)._repr_html_()
    assert f"<td>{default}</td><td>{seconds}</td>" in html
    assert f"<td>{state}" in html
    return found


def said(choice: ScheduleChoice) -> tuple[str, str, str]:
    return choice.state, text(choice.default_seconds), text(choice.seconds)


def text(seconds: float | None) -> str:
    return "" if seconds is None else seconds_text(seconds)


def check_agreement(run: Command, log: Path, result: TuneResult, table: ProgressTable) -> None:
    """What a search says at its end, on the screen and as its result, its log says as well."""
    (found,), shown = result.functions, [trial for row in table.all_rows for trial in row.each]
    assert found.history == read_log(log).trials
    assert sorted(map(identity, shown)) == sorted(map(identity, found.history))
    if not shown:
        return
    (row,) = table.all_rows
    seen = views(run, log)
    seen["result"], seen["live"] = said(found.choice), said(row.choice)
    assert set(seen.values()) == {seen["choose"]}, seen
    assert seen["choose"][0] in str(found)


def check_gain(log: Path) -> None:
    """A build takes the best schedule of all, at the time that an undisturbed search measures."""
    known = TuningLog(log)
    gain = choose(known.contents.trials).gain
    assert gain == seconds_of(4, 1) / seconds_of(*BEST)
    kernel = tw.build(scaled(), TARGET, schedules=known, require_tuned=True)
    assert times()[code_of(kernel.artifact.source)] == seconds_of(*BEST)
    assert known.advice(scaled(), TARGET).why == ""


def test_an_undisturbed_search_finds_the_best_of_all(tilewright: Command, tmp_path: Path) -> None:
    log, table = tmp_path / "tune.jsonl", ProgressTable()
    result = search(LoadedMachine(lambda job: False), log, table)
    assert result.functions[0].choice.state == "confirmed"
    check_agreement(tilewright, log, result, table)
    check_gain(log)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "loaded", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["loaded", "calm"]
)
@pytest.mark.parametrize("moment", range(3), ids=["first", "search", "confirmation"])
@pytest.mark.parametrize("where", WHERE)
def test_a_search_that_is_interrupted_ends_with_the_same_gain(
    where: str, moment: int, loaded: bool, tilewright: Command, tmp_path: Path
) -> None:
    """The load, where there is one, lasts as long as the part that is interrupted."""
    log, table = tmp_path / "tune.jsonl", ProgressTable()
    first = interrupted(where, WHERE[where][moment], Interrupted(lambda job: loaded), log, table)
    assert first.stopped_because == "it was interrupted"
    check_agreement(tilewright, log, first, table)
    sessions = Counter(trial.method.session for trial in first.history if trial.method.session)
    assert set(sessions.values()) <= {1 + FINALISTS}  # whole
    table = ProgressTable()
    last = search(LoadedMachine(lambda job: False), log, table)
    check_agreement(tilewright, log, last, table)
    check_gain(log)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ends", [2, 5, 14])
def test_a_load_that_ends_while_a_search_runs_hides_nothing(
    ends: int, tilewright: Command, tmp_path: Path
) -> None:
    """Of a load that ends last only the next search knows that it is over."""
    log, table = tmp_path / "tune.jsonl", ProgressTable()
    result = search(LoadedMachine(lambda job: job <= ends), log, table)
    check_agreement(tilewright, log, result, table)
    if ends == 14:
        search(LoadedMachine(lambda job: False), log, ProgressTable())
    check_gain(log)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("job", [3, 8])
def test_a_search_that_is_killed_under_load_ends_with_the_same_gain(
    job: int, tilewright: Command, tmp_path: Path
) -> None:
    log, table = tmp_path / "tune.jsonl", ProgressTable()
    command = [sys.executable, "-m", "tests.autotune.loaded", str(job), log]
    killed = subprocess.run(command, cwd=Path(__file__).parents[2], check=False)
    assert killed.returncode == -9
    assert len(set(views(tilewright, log).values())) == 1
    check_agreement(tilewright, log, search(LoadedMachine(lambda job: False), log, table), table)
    check_gain(log)
