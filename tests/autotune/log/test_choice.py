from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.choice import chance_of, choose, finalists, is_faster
from tilewright.autotune.log.record import Trial

from ..samples import trial


def paired(number: int, session: str, *samples: float) -> Trial:
    made = trial(number)
    return replace(made, samples=samples, method=replace(made.method, session=session))


def test_of_trials_that_ran_alone_the_fastest_is_chosen() -> None:
    trials = [trial(0, seconds=3.0), trial(1, seconds=1.4), trial(2, outcome="wrong")]
    assert choose(trials).best == trials[1]
    assert choose([]).best is None
    default, near, far = paired(0, "", 2.0, 2.2), paired(1, "", 1.8, 2.1), paired(2, "", 1.9, 1.95)
    assert choose([default, near]).best == default
    assert choose([default, near, far]).best == far
    assert choose(trials[2:]).best is None


def test_paired_rounds_count_more_than_trials_that_ran_alone() -> None:
    lucky = trial(1, seconds=0.1)
    default, slower = paired(0, "a", 2.0, 2.0, 2.1), paired(1, "a", 2.2, 2.3, 2.2)
    assert choose([lucky, default, slower]).best == default


def test_a_tie_goes_to_the_default() -> None:
    default = paired(0, "a", *[2.0, 2.1, 1.9] * 5)
    noisy = paired(1, "a", *[1.9, 2.2, 1.85] * 5)
    faster = paired(2, "a", *[1.8, 1.9, 1.75] * 5)
    assert choose([default, noisy]).best == default
    assert choose([default, noisy, faster]).best == faster


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
    assert choose([*first, *last]).best == last[0]
    assert choose([*reversed(last), *first]).best == last[0]  # by their times, not by their places


def test_each_rule_has_a_session_and_a_default_of_its_own() -> None:
    ours = [paired(0, "a", 2.0, 2.0), paired(1, "a", 1.0, 1.0)]
    user = [replace(paired(n, "b", 3.0, 3.0), rule="mine") for n in (2, 3)]
    default = replace(user[0], is_default=True)
    assert choose([*ours, default, user[1]]).best == ours[0]  # it won too few rounds of two
    quick = replace(default, samples=(0.5, 0.5))
    assert choose([*ours, quick, user[1]]).best == quick


def test_rounds_that_a_drifting_machine_slows_are_compared_pair_by_pair() -> None:
    drift = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert is_faster(paired(1, "a", *[0.9 * n for n in drift]), paired(0, "a", *drift))


NOISY = "the multiply-add probe deviated by 60% from its median"


def busy(made: Trial, text: str = NOISY) -> Trial:
    return replace(made, text=text)


def later(*trials: Trial) -> list[Trial]:
    return [replace(one, time=f"2027-{one.time}") for one in trials]


def test_a_choice_says_how_well_it_is_known() -> None:
    default, faster = trial(0, seconds=4.0), trial(1, seconds=1.0)
    assert choose([]).state == "default"
    assert choose([default]).state == "default"
    found = choose([default, faster])
    assert (found.state, found.gain, found.awaiting) == ("candidate", 4.0, (faster,))
    won = [paired(0, "a", *[4.0] * 6), paired(1, "a", *[2.0] * 6)]
    found = choose([default, faster, *won])
    assert (found.state, found.gain, found.awaiting) == ("confirmed", 2.0, ())
    assert str(choose([busy(default), faster])) == "candidate ~"


def test_a_gain_within_the_disturbance_is_none() -> None:
    default, faster = paired(0, "", 2.0, 2.2), paired(1, "", 1.5, 1.6)
    assert choose([default, faster]).state == "candidate"
    assert choose([busy(default), faster]).state == "default"
    assert choose([default, busy(faster)]).state == "default"
    assert choose([busy(default, f"{NOISY}; measured again"), faster]).state == "candidate"


def test_a_calm_session_counts_more_than_a_later_one_that_was_disturbed() -> None:
    calm = [paired(0, "a", *[2.0] * 6), paired(1, "a", *[1.0] * 6)]
    worse = later(busy(paired(0, "b", *[500.0] * 6)), busy(paired(1, "b", *[600.0] * 6)))
    found = choose([*calm, *worse])
    assert (found.best, found.default) == (calm[1], calm[0])
    assert choose(worse).state == "default"
    assert choose([trial(0, seconds=4.0), trial(1), calm[0]]).state == "candidate"  # cut short


def test_a_calm_session_without_a_winner_counts_more_than_a_disturbed_one_with_one() -> None:
    lost = [paired(0, "a", *[1.0] * 6), paired(1, "a", *[1.1] * 6)]
    won = later(busy(paired(0, "b", *[2.0] * 6)), busy(paired(1, "b", *[1.0] * 6)))
    found = choose([*lost, *won])
    assert (found.best, found.state) == (lost[0], "default")


def test_of_disturbed_sessions_the_last_one_with_a_winner_counts() -> None:
    won = [busy(paired(0, "a", *[2.0] * 6)), busy(paired(1, "a", *[1.0] * 6))]
    lost = later(busy(paired(0, "b", *[1.0] * 6)), busy(paired(1, "b", *[1.1] * 6)))
    found = choose([*won, *lost])
    assert (found.best, found.state) == (won[1], "confirmed")


def test_a_default_that_a_calm_machine_timed_is_what_candidates_are_compared_with() -> None:
    disturbed, calm = busy(trial(0, seconds=1.0)), trial(0, seconds=4.0)
    assert choose([disturbed, calm]).default == calm
    assert choose([disturbed]).default == disturbed


def test_a_disturbed_session_without_a_winner_decides_nothing() -> None:
    search = [trial(0, seconds=4.0), trial(1, seconds=1.0)]
    lost = [busy(paired(0, "a", *[1.0] * 6)), busy(paired(1, "a", *[1.1] * 6))]
    found = choose([*search, *lost])
    assert (found.state, found.best, found.awaiting) == ("undecided", lost[0], (search[1],))
    assert str(found) == "undecided: machine busy"
    assert found.why == f"the machine was busy during its confirmation: {NOISY}"
    won = [lost[0], busy(paired(1, "a", *[0.5] * 6))]
    assert choose([*search, *won]).awaiting == ()


def test_a_calm_session_decides_what_was_undecided() -> None:
    search = [trial(0, seconds=4.0), trial(1, seconds=1.0)]
    lost = [busy(paired(0, "a", *[1.0] * 6)), busy(paired(1, "a", *[1.1] * 6))]
    assert choose([*search, *lost]).state == "undecided"
    calm = [paired(0, "b", *[1.0] * 6), paired(1, "b", *[1.1] * 6)]
    found = choose([*search, *lost, *later(*calm)])
    assert (found.state, found.why, found.awaiting) == ("default", "", ())


def test_where_nothing_awaits_confirmation_nothing_is_undecided() -> None:
    lost = [busy(paired(0, "a", *[1.0] * 6)), busy(paired(1, "a", *[1.1] * 6))]
    far = [trial(0, seconds=1.0), trial(1, seconds=4.0)]
    assert choose([*far, *lost]).state == "default"
    other = replace(trial(1, seconds=0.5), rule="mine")
    mine = [replace(trial(0, seconds=1.0), rule="mine"), other]
    found = choose([*far, *lost, *mine])
    assert (found.state, found.awaiting) == ("default", (other,))


def test_finalists_are_near_the_default_and_of_other_code() -> None:
    default, same = trial(0, seconds=1.0), replace(trial(1, seconds=0.9), source=trial(0).source)
    near, far = trial(2, seconds=1.05), replace(trial(1, seconds=2.0), source="far")
    assert finalists([default, same, near, far]) == (near,)
    assert finalists([near]) == ()


def test_a_winner_competes_again_with_what_was_found_since() -> None:
    search = [trial(0, seconds=4.0), trial(1, seconds=1.0)]
    won = [paired(0, "a", *[4.0] * 6), paired(1, "a", *[2.0] * 6)]
    newer = trial(2, seconds=0.5)
    assert finalists([*search, *won, newer]) == (newer, search[1])


def test_a_winner_is_a_finalist_however_many_are_faster_in_the_search() -> None:
    default, won = trial(0, seconds=4.0), trial(1, seconds=3.0)
    session = [paired(0, "a", *[4.0] * 6), paired(1, "a", *[2.0] * 6)]
    newer = [replace(trial(2, seconds=1.0 + n), source=f"new {n}") for n in (0, 0.1, 0.2, 0.3)]
    assert finalists([default, won, *session, *newer]) == (*newer[:3], won)
