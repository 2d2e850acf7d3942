from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.choice import best_trial, chance_of, is_faster
from tilewright.autotune.log.record import Trial

from ..samples import trial


def paired(number: int, session: str, *samples: float) -> Trial:
    made = trial(number)
    return replace(made, samples=samples, method=replace(made.method, session=session))


def test_of_trials_that_ran_alone_the_fastest_is_chosen() -> None:
    trials = [trial(0, seconds=3.0), trial(1, seconds=1.4), trial(2, outcome="wrong")]
    assert best_trial(trials) == trials[1]
    assert best_trial([]) is None
    default, near, far = paired(0, "", 2.0, 2.2), paired(1, "", 1.8, 2.1), paired(2, "", 1.9, 1.95)
    assert best_trial([default, near]) == default
    assert best_trial([default, near, far]) == far
    assert best_trial(trials[2:]) is None


def test_paired_rounds_count_more_than_trials_that_ran_alone() -> None:
    lucky = trial(1, seconds=0.1)
    default, slower = paired(0, "a", 2.0, 2.0, 2.1), paired(1, "a", 2.2, 2.3, 2.2)
    assert best_trial([lucky, default, slower]) == default


def test_a_tie_goes_to_the_default() -> None:
    default = paired(0, "a", *[2.0, 2.1, 1.9] * 5)
    noisy = paired(1, "a", *[1.9, 2.2, 1.85] * 5)
    faster = paired(2, "a", *[1.8, 1.9, 1.75] * 5)
    assert best_trial([default, noisy]) == default
    assert best_trial([default, noisy, faster]) == faster


def test_with_more_rivals_more_wins_are_asked_for() -> None:
    default, faster = paired(0, "a", *[2.0] * 6), paired(1, "a", *[1.9] * 6)
    assert is_faster(faster, default, 3)
    assert not is_faster(faster, default, 4)


def test_processes_are_what_is_counted_where_there_were_several() -> None:
    """The luck of one process is one win, however many rounds it had."""
    rounds = [1.0, 1.0, 1.0, 2.1, 2.1, 2.1]
    default = paired(0, "a", *[2.0] * 6)
    lucky = paired(1, "a", *rounds)
    lucky = replace(lucky, method=replace(lucky.method, processes=2))
    assert not is_faster(lucky, default)
    assert chance_of(1, 2) == 0.75
    assert chance_of(7, 7) == 2**-7


def test_the_last_session_counts() -> None:
    first = [paired(0, "a", 2.0, 2.0), paired(1, "a", 1.0, 1.0)]
    last = [
        replace(t, time=f"2027-{t.time}")
        for t in (paired(0, "b", 1.0, 1.0), paired(1, "b", 2.0, 2.0))
    ]
    assert best_trial([*first, *last]) == last[0]
    assert best_trial([*reversed(last), *first]) == last[0]  # by their times, not by their places


def test_each_rule_has_a_session_and_a_default_of_its_own() -> None:
    ours = [paired(0, "a", 2.0, 2.0), paired(1, "a", 1.0, 1.0)]
    user = [replace(paired(n, "b", 3.0, 3.0), rule="mine") for n in (2, 3)]
    default = replace(user[0], is_default=True)
    assert best_trial([*ours, default, user[1]]) == ours[0]  # it won too few rounds of two
    quick = replace(default, samples=(0.5, 0.5))
    assert best_trial([*ours, quick, user[1]]) == quick


def test_rounds_that_a_drifting_machine_slows_are_compared_pair_by_pair() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert is_faster(paired(1, "a", *[0.9 * n for n in drift]), paired(0, "a", *drift))
