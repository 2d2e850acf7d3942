"""runtime/measure/rounds.py: turns, rests, the gate, ratios by round, percentiles, ties."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.runtime.machine import timing
from tilewright.runtime.measure import rounds
from tilewright.runtime.measure.limits import Probe
from tilewright.runtime.measure.rounds import Gate, Ratio, Rounds, interleave, is_disturbed


class Clock:
    """A clock that only moves when a call or a rest says so; `log` names the calls in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.log: list[str] = []
        for module in (rounds, timing):
            monkeypatch.setattr(module, "perf_counter", lambda: self.now)
        monkeypatch.setattr(rounds, "sleep", self.pass_)

    def pass_(self, seconds: float) -> None:
        self.now += seconds

    def call(self, name: str, seconds: Callable[[], float]) -> Callable[[], None]:
        def run() -> None:
            self.log.append(name)
            self.now += seconds()

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def gate(clock: Clock, *rates: float, patience: float = 100.0) -> Gate:
    """One that wants a rate of 9 and sees these, then the last again and again; a probe is two
    calls after one that does not count.
    """
    left = [rate for rate in rates for _ in range(3)]

    def probe() -> int:
        clock.now += 1e-9 / (left.pop(0) if len(left) > 1 else left[0])
        return 1

    return Gate(Probe(probe, 1.0, 1), 9.0, patience)


def test_every_round_begins_with_another_system(clock: Clock) -> None:
    calls = {name: clock.call(name, lambda: 1.0) for name in "abc"}
    interleave(calls, dict.fromkeys(calls, 1), 4)
    assert "".join(clock.log) == "aabbccbbccaaccaabbaabbcc"


def test_a_system_rests_and_runs_once_before_its_calls_count(clock: Clock) -> None:
    times = iter([100.0, 1.0, 2.0, 100.0, 3.0, 4.0])
    found = interleave({"a": clock.call("a", lambda: next(times))}, {"a": 2}, 2)
    assert found.seconds == {"a": ((1.0, 2.0), (3.0, 4.0))}
    assert clock.now == pytest.approx(210.0 + 2 * rounds._REST)
    assert (found.peaks, found.repeated) == ((), 0)


def test_systems_may_make_different_numbers_of_calls(clock: Clock) -> None:
    calls = {name: clock.call(name, lambda: 1.0) for name in "ab"}
    found = interleave(calls, {"a": 3, "b": 1}, 2)
    assert [[len(part) for part in found.seconds[name]] for name in "ab"] == [[3, 3], [1, 1]]


def test_a_round_that_is_slow_at_its_beginning_or_its_end_is_repeated(clock: Clock) -> None:
    call = clock.call("a", lambda: 1.0)
    slow_first = interleave({"a": call}, {"a": 1}, 2, gate(clock, 5, 10, 11))
    assert (slow_first.repeated, len(slow_first.seconds["a"])) == (1, 2)
    assert slow_first.peaks == pytest.approx((10.5, 11), rel=1e-4)
    assert len(clock.log) == 4
    slow_last = interleave({"a": call}, {"a": 1}, 1, gate(clock, 10, 5, 12))
    assert (slow_last.repeated, len(slow_last.seconds["a"])) == (1, 1)
    assert slow_last.peaks == pytest.approx((12,), rel=1e-4)


def test_a_repeated_round_begins_with_the_same_system(clock: Clock) -> None:
    calls = {name: clock.call(name, lambda: 1.0) for name in "ab"}
    interleave(calls, dict.fromkeys(calls, 1), 2, gate(clock, 10, 5, 12))
    assert "".join(clock.log) == "aabbaabbbbaa"


def test_patience_ends(clock: Clock) -> None:
    call = clock.call("a", lambda: 1.0)
    found = interleave({"a": call}, {"a": 1}, 7, gate(clock, 5, patience=4.0))
    assert len(found.seconds["a"]) == 7
    assert 0 < found.repeated < 15


def test_a_machine_that_drifts_does_not_move_the_ratio() -> None:
    drift = [1.0, 2.0, 8.0, 3.0, 1.5, 1.0, 4.0]
    found = Rounds(
        {"a": tuple((2 * speed,) for speed in drift), "b": tuple((3 * speed,) for speed in drift)}
    )
    ratio = found.ratio("b", "a")
    assert (ratio.low, ratio.median, ratio.high) == pytest.approx((1.5, 1.5, 1.5))
    assert found.ratio("a", "a").samples == (1.0,) * 7
    assert found.timing("a").median == 4.0
    assert found.timing("a").high == 16.0


def test_a_round_counts_by_the_median_of_its_calls() -> None:
    found = Rounds({"a": ((1.0, 2.0, 90.0), (3.0, 4.0, 5.0))})
    assert found.timing("a").samples == (2.0, 4.0)


@pytest.mark.parametrize(("percent", "seconds"), [(0, 1), (50, 50), (95, 95), (99, 99), (100, 100)])
def test_a_percentile_is_a_call_of_any_round(percent: int, seconds: int) -> None:
    calls = [float(value) for value in range(100, 0, -1)]
    found = Rounds({"a": (tuple(calls[:40]), tuple(calls[40:]))})
    assert found.percentile("a", percent) == seconds


def test_the_slower_percentiles_of_few_calls_are_not_told() -> None:
    for count, known in ((99, False), (100, True)):
        found = Rounds({"a": (tuple(map(float, range(count))),)})
        assert [found.percentile("a", percent) is not None for percent in (50, 95, 99)] == [
            True,
            known,
            known,
        ]


def test_a_ratio_whose_interval_is_twice_as_high_as_low_is_disturbed() -> None:
    assert Ratio(3.47, 0.78, 3.81, ()).is_disturbed
    assert not Ratio(1.5, 1.0, 2.0, ()).is_disturbed
    assert not is_disturbed(0.9, 1.7)
    assert is_disturbed(0.9, 1.9)


def test_a_tie_is_a_ratio_whose_interval_holds_one() -> None:
    ties = [Ratio(1.1, low, high, ()).is_tie for low, high in [(0.9, 1.2), (1, 1.2), (0.9, 1)]]
    assert ties == [True] * 3
    assert not Ratio(1.1, 1.01, 1.2, ()).is_tie
    assert not Ratio(0.9, 0.8, 0.99, ()).is_tie


def seven(*times: float) -> tuple[tuple[float, ...], ...]:
    return tuple((times[number % len(times)],) for number in range(7))


@pytest.mark.parametrize(
    ("a", "b", "c", "fastest"),
    [
        (seven(1.0), seven(2.0), seven(3.0), ("a",)),
        (seven(2.0), seven(1.0), seven(3.0), ("b",)),
        (seven(2.0), seven(3.0), seven(1.0, 1.1, 1.2), ("c",)),
        (seven(1.0), seven(0.9, 1.1, 1.2), seven(3.0), ("a", "b")),
        (seven(2.0), seven(1.0), seven(0.9, 1.1, 1.2), ("b", "c")),
        (seven(1.0), seven(1.0), seven(1.0), ("a", "b", "c")),
    ],
)
def test_the_fastest_stands_before_those_that_tie_with_it(
    a: tuple[tuple[float, ...], ...],
    b: tuple[tuple[float, ...], ...],
    c: tuple[tuple[float, ...], ...],
    fastest: tuple[str, ...],
) -> None:
    assert Rounds({"a": a, "b": b, "c": c}).fastest() == fastest


@pytest.mark.needs_cc
def test_a_gate_wants_nearly_what_one_thread_reaches_times_the_threads() -> None:
    made = Gate.of(1, 0.0)
    assert made.rate() > 0
    assert not made.refuses(0.0)  # its patience is over


def test_what_runs_ahead_of_each_call_is_not_timed(clock: Clock) -> None:
    calls = {"a": clock.call("a", lambda: 1.0)}
    found = interleave(calls, {"a": 2}, 1, ahead=clock.call("-", lambda: 50.0))
    assert found.seconds == {"a": ((1.0, 1.0),)}
    assert "".join(clock.log) == "a-a-a"


def test_each_round_that_counts_tells_the_shortest_of_three_barriers(clock: Clock) -> None:
    lasting = iter([9.0, 8.0, 9.0, 7.0, 3.0, 5.0, 6.0, 4.0, 4.0])

    def barriers() -> int:
        clock.now += next(lasting)
        return 2

    made = gate(clock, 5, 10, 5, 12)
    made._barriers = Probe(barriers, 2.0, 2)
    found = interleave({"a": clock.call("a", lambda: 1.0)}, {"a": 1}, 2, made)
    assert (found.repeated, found.barriers) == (2, (1.5, 2.0))
