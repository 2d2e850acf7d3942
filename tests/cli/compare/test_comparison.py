"""cli/compare/comparison.py: equal first, then timed; a block for each number of threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.cli.compare.comparison import (
    OURS,
    Effort,
    PeerDiffers,
    ThreadComparison,
    Tolerance,
    compare_systems,
    load_systems,
    outcome,
)
from tilewright.cli.compare.peers import Peer
from tilewright.graph.compile import compile
from tilewright.runtime.arrays import Array
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.measure.rounds import Ratio

from ..fake_peer import FakePeer

UNTIMED = Effort(calls=0)
ONCE = Effort(warmup=0, calls=1)


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Engine:
    return compile(str(tiny), "python")


@pytest.fixture
def inputs(engine: Engine) -> dict[str, Array]:
    return engine.random_inputs(3)


def blocks(
    engine: Engine,
    tiny: Path,
    inputs: dict[str, Array],
    *peers: Peer,
    threads: tuple[int, ...] = (1,),
    effort: Effort = UNTIMED,
    tolerance: Tolerance = Tolerance(),  # noqa: B008  # it is frozen
) -> list[ThreadComparison]:
    return list(compare_systems(engine, str(tiny), inputs, peers, threads, tolerance, effort))


def test_systems_are_ours_and_then_the_peers_on_the_same_arrays(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    first, second = FakePeer("first"), FakePeer("second")
    systems = load_systems(engine, str(tiny), inputs, (first, second), 2)
    assert list(systems) == [OURS, "first", "second"]
    assert first.loads == second.loads == [(2, inputs)]
    assert first.loads[0][1]["image"] is inputs["image"]
    assert first.runs == 1
    np.testing.assert_allclose(
        systems[OURS].outputs()["classes"], systems["first"].outputs()["classes"], atol=1e-6
    )


def test_random_inputs_are_not_zero_and_repeat(engine: Engine) -> None:
    first, second = engine.random_inputs(1)["image"], engine.random_inputs(1)["image"]
    assert np.count_nonzero(first) == first.size
    np.testing.assert_array_equal(first, second)


def test_each_number_of_threads_is_a_block(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    peer = FakePeer()
    found = blocks(engine, tiny, inputs, peer, threads=(1, 2))
    assert [(block.threads, block.is_equal, block.rounds) for block in found] == [
        (1, True, None),
        (2, True, None),
    ]
    assert [threads for threads, _ in peer.loads] == [2, 1]


def test_all_numbers_of_threads_are_checked_before_anything_is_timed(
    engine: Engine, tiny: Path, inputs: dict[str, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    peer, timed = FakePeer(), []

    def interleave(calls: object, counts: object, rounds: int, gate: object) -> None:
        timed.append([threads for threads, _ in peer.loads])

    monkeypatch.setattr("tilewright.cli.compare.comparison.interleave", interleave)
    found = blocks(engine, tiny, inputs, peer, threads=(1, 2, 3), effort=ONCE)
    assert [block.threads for block in found] == [1, 2, 3]
    assert timed == [[3, 2, 1], [3, 2, 1, 2], [3, 2, 1, 2, 3]]


def test_nothing_is_timed_where_outputs_differ(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    near, far = FakePeer("near"), FakePeer("far", error=0.01)
    block, other = blocks(engine, tiny, inputs, near, far, threads=(1, 2), effort=ONCE)
    assert not block.is_equal
    assert (block.rounds, other.rounds) == (None, None)
    assert [bool(report) for report in block.reports] == [True, False]
    (output,) = block.reports[1].outputs
    assert (output.name, output.error) == ("classes", pytest.approx(0.01, rel=1e-3))
    assert (near.runs, far.runs) == (2, 2)


def test_both_sides_may_round_ten_times_what_verify_allows(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    largest = float(engine.run(inputs)["classes"].max())
    for error, equal in ((0.8e-4, True), (1.2e-4, False)):
        (block,) = blocks(engine, tiny, inputs, FakePeer(error=error * largest))
        assert block.is_equal is equal


def test_what_our_engine_may_be_off_by_counts_where_it_is_more(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    largest = float(engine.run(inputs)["classes"].max())
    for accepted, equal in ((1e-3, True), (1e-5, False)):
        peer, tolerance = FakePeer(error=5e-4 * largest), Tolerance(accepted=accepted)
        assert blocks(engine, tiny, inputs, peer, tolerance=tolerance)[0].is_equal is equal


def test_a_tolerance_that_is_given_counts(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    peer = FakePeer(error=0.01)
    assert blocks(engine, tiny, inputs, peer, tolerance=Tolerance(atol=0.02))[0].is_equal
    assert not blocks(engine, tiny, inputs, peer, tolerance=Tolerance(atol=0.005))[0].is_equal


def test_an_output_of_another_shape_is_refused(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    with pytest.raises(PeerDiffers) as caught:
        blocks(engine, tiny, inputs, FakePeer(axes=1))
    assert str(caught.value) == (
        "PeerDiffers: bench: output 'classes' has the shape [1, 1, 10] in fake, [1, 10] in "
        "tilewright. [cli-peer-shape]"
    )


def test_every_system_makes_as_many_calls_in_each_round(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    peer = FakePeer()
    effort = Effort(rounds=8, warmup=2, calls=3)
    (block,) = blocks(engine, tiny, inputs, peer, effort=effort)
    assert block.rounds is not None
    assert list(block.rounds.seconds) == [OURS, "fake"]
    parts = [len(part) for calls in block.rounds.seconds.values() for part in calls]
    assert parts == [3] * 8 * 2
    assert peer.runs == 1 + 3 + 8 * (1 + 3)  # loaded, warmed up, and one of each round not counted
    assert (block.rounds.peaks, block.rounds.repeated) == ((), 0)


def test_the_calls_of_a_round_fit_the_duration(
    engine: Engine, tiny: Path, inputs: dict[str, Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tilewright.cli.compare.comparison.sample", lambda call, repeats: 0.01)
    monkeypatch.setattr(
        "tilewright.cli.compare.comparison.interleave", lambda calls, counts, rounds, gate: counts
    )
    for seconds, calls in ((1.41, 10), (0.0, 1), (1e9, 1000)):
        (block,) = blocks(engine, tiny, inputs, FakePeer(), effort=Effort(seconds=seconds))
        assert block.rounds == {OURS: calls, "fake": calls}


@pytest.mark.parametrize(
    ("low", "median", "high", "expected"),
    [
        (1.01, 1.1, 1.2, "win"),
        (0.8, 0.9, 0.99, "loss"),
        (0.9, 1.1, 1.2, "tie"),
        (0.9, 0.95, 1.0, "tie"),
        (0.78, 3.47, 3.81, "disturbed"),
        (1.1, 2.0, 2.3, "win"),
        (0.1, 0.3, 0.4, "loss"),
    ],
)
def test_a_ratio_is_a_win_a_loss_a_tie_or_disturbed(
    low: float, median: float, high: float, expected: str
) -> None:
    assert outcome(Ratio(median, low, high, ())) == expected


def test_what_is_held_to_nothing_is_timed_however_far_off(
    engine: Engine, tiny: Path, inputs: dict[str, Array]
) -> None:
    far = FakePeer(error=1e3)
    for held in (True, False):
        tolerance = Tolerance(accepted=1.0, is_held=held)
        (block,) = blocks(engine, tiny, inputs, far, effort=ONCE, tolerance=tolerance)
        assert (block.is_equal, block.rounds is None) == (not held, held)
        assert block.reports[0].outputs[0].share > 1
