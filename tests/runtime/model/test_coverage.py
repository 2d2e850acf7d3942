from __future__ import annotations

from tilewright.runtime.model.coverage import Coverage, Covered

KERNELS = (
    Covered("conv", 3, "tuned"),
    Covered("dense", 1, "rule", "the log has no trial of it"),
    Covered("pool", 2, "similar", "threads 4, not 2"),
    Covered("mine", 1, "hand"),
    Covered("conv_1", 3, "tuned"),
)


def test_coverage_counts_the_origins_of_schedules() -> None:
    coverage = Coverage(KERNELS)
    assert coverage.counts == {"tuned": 2, "similar": 1, "by hand": 1, "default": 1}
    assert str(coverage) == "kernels 5: tuned 2, similar 1, by hand 1, default 1"
    assert str(Coverage(())) == "kernels 0: none"


def test_what_was_tuned_is_counted_by_its_state() -> None:
    states = ("default", "undecided", "candidate", "confirmed")
    logged = tuple(Covered(f"conv_{n}", 1, "tuned", state=one) for n, one in enumerate(states))
    coverage = Coverage((KERNELS[1], *logged, Covered("pool", 1, "similar", state="confirmed")))
    assert str(coverage) == (
        "kernels 6: confirmed 1, candidate 1, undecided 1, similar 1, default 2; 4 in the log"
    )
    assert [kernel.name for kernel in coverage.gaps] == ["dense", "pool"]
    assert str(logged[1]) == "conv_1 x 1: undecided"


def test_all_kernels_but_tuned_ones_are_gaps() -> None:
    assert list(map(str, Coverage(KERNELS).gaps)) == [
        "dense x 1: default: the log has no trial of it",
        "pool x 2: similar: threads 4, not 2",
        "mine x 1: by hand",
    ]
    assert Coverage(KERNELS[:1]).gaps == ()
