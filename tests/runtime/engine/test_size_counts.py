"""Counting the sizes of runs: exact sums, bounded memory, many threads."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from tilewright.runtime.engine.size_counts import (
    MOST,
    TOGETHER,
    EngineStats,
    SizeCounts,
    SizeUse,
)


def counted(*runs: tuple[tuple[int, ...], int]) -> SizeCounts:
    counts = SizeCounts()
    for sizes, times in runs:
        for _ in range(times):
            counts.seen.append(sizes)
            if len(counts.seen) >= TOGETHER:
                counts.add_up()
    return counts


def test_the_most_frequent_sizes_come_first() -> None:
    counts = counted(((1, 7), 3), ((2, 9), 500), ((3, 1), 40))
    counts.hit.extend([(3, 1)] * 30)
    stats = counts.stats(["batch", "seq"])
    assert stats == EngineStats(
        543,
        30,
        (
            SizeUse({"batch": 2, "seq": 9}, 500),
            SizeUse({"batch": 3, "seq": 1}, 40, 30),
            SizeUse({"batch": 1, "seq": 7}, 3),
        ),
    )
    assert str(stats) == (
        "543 runs, 30 hits of 0 variants\n"
        "  batch 2, seq 9: 500 runs\n"
        "  batch 3, seq 1: 40 runs, 30 hits\n"
        "  batch 1, seq 7: 3 runs"
    )


def test_few_sizes_are_remembered_and_all_runs_are_in_the_sum() -> None:
    counts = counted(((0,), 1000), *(((size,), 1) for size in range(1, 5000)), ((0,), 500))
    assert len(counts.seen) < TOGETHER
    assert len(counts._runs) <= 2 * MOST + TOGETHER
    stats = counts.stats(["batch"])
    assert stats.runs == 6499
    assert len(stats.sizes) == MOST
    assert stats.sizes[0] == SizeUse({"batch": 0}, 1500)


def test_threads_that_count_at_once_lose_nothing() -> None:
    counts = SizeCounts()

    def run() -> None:
        for number in range(5000):
            counts.seen.append((number % 3,))
            if len(counts.seen) >= TOGETHER:
                counts.add_up()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts.stats(["batch"]).runs == 20000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_counts_though_its_parent_was_counting() -> None:
    counts = counted(((1,), 1))
    with counts._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)  # ends it where the lock is still held
            os._exit(0 if counts.stats(["batch"]).runs == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
