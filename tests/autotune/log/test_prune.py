"""autotune/log/prune.py: what is kept, and that the choices stay."""

from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.choice import FINALISTS, choose
from tilewright.autotune.log.file import contents
from tilewright.autotune.log.prune import prune
from tilewright.autotune.log.record import Trial

from ..samples import trial, workload


def candidate(number: int, seconds: float, **fields: object) -> Trial:
    """One of a search, whose code is its own."""
    return replace(trial(number, seconds=seconds), source=f"code {number}", **fields)


def in_session(made: Trial) -> Trial:
    return replace(made, method=replace(made.method, session="a"))


def kept(*trials: Trial) -> list[Trial]:
    found = prune(contents([workload(), *trials]), FINALISTS)
    assert found.workloads == (workload(),)
    return list(found.trials)


DEFAULT = candidate(0, 9.0)
SEARCH = [candidate(number, 10.0 - number) for number in range(1, 8)]


def test_the_default_and_the_fastest_candidates_are_kept_in_their_order() -> None:
    failed = trial(8, outcome="crashed")
    assert kept(DEFAULT, *SEARCH, failed) == [DEFAULT, *SEARCH[3:]]
    assert choose(kept(DEFAULT, *SEARCH)) == choose([DEFAULT, *SEARCH])


def test_a_session_is_kept_whole_and_takes_no_place() -> None:
    session = [in_session(candidate(number, 0.5)) for number in (0, 1)]  # the fastest of all
    assert kept(DEFAULT, *SEARCH, *session) == [DEFAULT, *SEARCH[3:], *session]


def test_of_one_code_the_fastest_trial_is_kept() -> None:
    again = replace(SEARCH[6], samples=(0.5,), time=SEARCH[0].time)
    assert kept(DEFAULT, *SEARCH, again) == [DEFAULT, *SEARCH[3:6], again]


def test_each_rule_and_each_setting_has_candidates_of_its_own() -> None:
    mine = [replace(one, rule="mine") for one in SEARCH]
    assert kept(DEFAULT, *SEARCH, *mine) == [DEFAULT, *SEARCH[3:], *mine[3:]]
    there = [replace(one, conditions=replace(one.conditions, cpu="another CPU")) for one in SEARCH]
    assert kept(DEFAULT, *SEARCH, *there) == [DEFAULT, *SEARCH[3:], *there[3:]]
