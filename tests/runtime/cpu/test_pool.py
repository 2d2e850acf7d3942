"""Entries of hand-written C on the pool; what could disturb other tests has its own process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from functools import cache

import numpy as np
import pytest

from tilewright.runtime.arrays import address
from tilewright.runtime.cpu.pool import pool_object, pool_run, pool_source
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.library import Library, Pointer, ffi
from tilewright.tir.target.target import ISAS

pytestmark = pytest.mark.needs_cc

# rounds: args = {long *cells, long count}. In each round every thread writes its cell, then, after
# a barrier, reads all: a cell that is not at the round's number counts as an error in cells[63].
SOURCE = """\
#define _GNU_SOURCE
#include <stddef.h>
#include <time.h>
struct tw_team { void (*barrier)(void *state, int thread); void *state; };

void rounds(void *const *args, const struct tw_team *team, int thread, int threads)
{
    volatile long *cells = args[0];
    long count = *(const long *)args[1];
    for (long round = 1; round <= count; round++) {
        cells[thread] = round;
        team->barrier(team->state, thread);
        for (int other = 0; other < threads; other++)
            if (cells[other] != round)
                cells[63] += 1;
        team->barrier(team->state, thread);
    }
    if (thread == 0)
        cells[62] = threads;
}

typedef void (*tw_entry)(void *const *args, const struct tw_team *team, int thread, int threads);
typedef int (*tw_run)(tw_entry entry, void *const *args, int threads);

/* args: {long *seen, tw_run}: opens a region inside a region. */
void inner(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)thread;
    *(long *)args[0] = threads;
}

void nested(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    if (thread == 0)
        (*(const tw_run *)args[1])(inner, args, 4);
}

/* args: {int *inside, int *leave}: stays until it may leave. */
void stay(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)thread, (void)threads;
    *(volatile int *)args[0] = 1;
    while (!*(volatile int *)args[1])
        nanosleep(&(struct timespec){0, 100000}, NULL);
}

/* args: {draw}: the others sleep at the barrier; the first that wakes is on the CPU of thread 0. */
void late(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)threads;
    if (thread == 0) {
        nanosleep(&(struct timespec){0, 50000000}, NULL);
        (*(int (*const *)(void))args[0])();
    }
    team->barrier(team->state, thread);
}

/* args: {long *sums}: each member adds up what only its registers and its stack have, from barrier
   to barrier; sums[2 + thread]: the bytes by which its stack is not at a multiple of 16. */
void registers(void *const *args, const struct tw_team *team, int thread, int threads)
{
    long sum = 0, scale = thread == 0 ? 1 : 100;
    (void)threads;
    for (long step = 1; step <= 100; step++) {
        sum += step * scale;
        team->barrier(team->state, thread);
    }
    ((long *)args[0])[thread] = sum;
    ((long *)args[0])[2 + thread] = (long)((size_t)__builtin_frame_address(0) % 16);
}

/* args: {float *tiny, float *halves}: halving a denormal gives 0 where denormals are flushed. */
void halve(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)team, (void)threads;
    nanosleep(&(struct timespec){0, 20000000}, NULL); /* so that workers come */
    ((float *)args[1])[thread] = *(const volatile float *)args[0] * 0.5f;
}
"""
# What the pool asks about CPUs, answered by the test: every thread begins on CPU 3 of 2, 3 and 5;
# the next that asks after `draw` is back there.
CROWDED = """\
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
static atomic_int moves, last, back, drawn;
static _Thread_local int here = 3;
static int answer_here(void) { return here = atomic_exchange(&drawn, 0) ? 3 : here; }
int draw(void) { drawn = 1; return 1; }
static int answer_allowed(int who, size_t size, cpu_set_t *set)
{
    (void)size;
    if (who != 0)
        return -1; /* another process is none of ours */
    CPU_ZERO(set);
    for (int cpu = 2; cpu <= 5; cpu++)
        if (cpu != 4)
            CPU_SET(cpu, set);
    return 0;
}
static int answer_move(int who, size_t size, const cpu_set_t *set)
{
    (void)size;
    if (who != 0)
        return -1;
    if (CPU_COUNT(set) == 3)
        back++; /* all that are allowed */
    else
        for (int cpu = 0; cpu < 8; cpu++)
            if (CPU_ISSET(cpu, set)) {
                moves++;
                last = here = cpu;
            }
    return 0;
}
int count_moves(void) { return moves; }
int count_back(void) { return back; }
int last_cpu(void) { return last; }
#define sched_getcpu answer_here
#define sched_getaffinity answer_allowed
#define sched_setaffinity answer_move
"""
FLUSH = """\
#include <xmmintrin.h>
int set_flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040u); return 0; }
int clear_flush(void) { _mm_setcsr(_mm_getcsr() & ~0x8040u); return 0; }
"""


@cache
def library() -> Library:
    return Library(compile_shared(SOURCE, ISAS["scalar"], name="pool_test"), name="pool_test")


def region(symbol: str, *arrays: np.ndarray, threads: int) -> int:
    arguments = ffi.new("void *[]", [ffi.cast("void *", address(array)) for array in arrays])
    return int(pool_run()(library().entry(symbol), arguments, threads))


def run_rounds(threads: int, rounds: int) -> np.ndarray:
    cells = np.zeros(64, np.int64)
    region("rounds", cells, np.array([rounds]), threads=threads)
    assert cells[63] == 0, "a thread passed a barrier before another reached it"
    assert set(cells[: cells[62]]) == {rounds}
    return cells


def in_a_process(program: str, *arguments: str) -> str:
    """Run a program that may use this module's names; what it printed."""
    here = os.path.dirname(__file__)
    prologue = (
        f"import sys; sys.path.insert(0, {here!r})\nfrom test_pool import *\n"
        "from tilewright.runtime.cpu import pool\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", prologue + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_every_thread_runs_once_and_barriers_hold(threads: int) -> None:
    assert run_rounds(threads, 100)[62] == threads


def test_threads_start_when_they_are_needed_and_stay() -> None:
    found = in_a_process("""
        pool_run()
        found = [pool.threads_started()]
        for threads in (1, 2, 4, 3):
            run_rounds(threads, 3)
            found.append(pool.threads_started())
        print(found)
    """)
    assert found == "[0, 0, 1, 3, 3]\n"


def test_more_threads_than_cpus_do_not_collapse() -> None:
    began = time.perf_counter()
    in_a_process("""
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        run_rounds(3, 1000)
        run_rounds(8, 200)
    """)
    assert time.perf_counter() - began < 5


def test_workers_without_work_use_no_cpu() -> None:
    run_rounds(3, 1)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.05


def test_a_region_inside_a_region_runs_alone() -> None:
    run = np.array([int(ffi.cast("uintptr_t", pool_run()))], np.uintp)
    seen = np.zeros(1, np.int64)
    region("nested", seen, run, threads=2)
    assert seen[0] == 1


def test_eight_python_threads_at_once_all_get_their_results() -> None:
    failures: list[int] = []

    def work() -> None:
        for _ in range(50):
            cells = run_rounds(2, 20)
            if cells[62] not in (1, 2):
                failures.append(int(cells[62]))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    assert run_rounds(2, 1)[62] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has all CPUs")
def test_callers_at_the_same_time_share_out_the_cpus() -> None:
    found = in_a_process("""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        inside, leave = np.zeros(1, np.int32), np.zeros(1, np.int32)
        other = threading.Thread(target=lambda: region("stay", inside, leave, threads=1))
        other.start()
        while not inside[0]:
            time.sleep(0.001)
        print(int(run_rounds(2, 1)[62]), pool.threads_started())
        leave[0] = 1
        other.join()
        print(int(run_rounds(2, 1)[62]), pool.threads_started())
    """)
    assert found == "1 0\n2 1\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process has all CPUs")
def test_a_child_does_not_share_the_cpus_with_its_parent_s_callers() -> None:
    found = in_a_process("""
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
        inside, leave = np.zeros(1, np.int32), np.zeros(1, np.int32)
        other = threading.Thread(target=lambda: region("stay", inside, leave, threads=1))
        other.start()
        while not inside[0]:
            time.sleep(0.001)
        child = os.fork()  # no region of two threads has run yet
        if child == 0:
            os._exit(int(run_rounds(2, 1)[62]))
        leave[0] = 1
        other.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert found == "2\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("flags", [(), ("-DTW_NO_FUTEX",), ("-DTW_NO_FIBERS",)])
def test_a_forked_child_runs_on_two_threads_within_a_second(flags: tuple[str, ...]) -> None:
    found = in_a_process(
        """
        flags = ("-pthread", *sys.argv[1:])
        pool.use_pool(compile_shared(pool_source(), ISAS["scalar"], name="pool", flags=flags))
        run_rounds(2, 100)
        child = os.fork()
        if child == 0:
            began = time.perf_counter()
            cells = run_rounds(2, 100)
            fast = time.perf_counter() - began < 1
            os._exit(0 if fast and cells[62] == 2 and pool.threads_started() == 1 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), run_rounds(2, 100)[62])
    """,
        *flags,
    )
    assert found == "0 2\n"


def test_a_child_forked_while_regions_run_has_a_working_pool() -> None:
    found = in_a_process("""
        run_rounds(2, 1)  # loads; a fork in the middle of loading is the system's to settle
        stop = threading.Event()
        def work():
            while not stop.is_set():
                run_rounds(2, 50)
        worker = threading.Thread(target=work)
        worker.start()
        codes = []
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if run_rounds(3, 50)[62] == 3 else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        stop.set()
        worker.join()
        print(sum(codes))
    """)
    assert found == "0\n"


@pytest.mark.parametrize("without", [("FUTEX",), ("FIBERS",), ("FUTEX", "FIBERS")])
def test_without_futex_and_without_fibers_it_works_too(without: tuple[str, ...]) -> None:
    found = in_a_process(
        """
        flags = ("-pthread", *sys.argv[1:])
        pool.use_pool(compile_shared(pool_source(), ISAS["scalar"], flags=flags))
        time.sleep(0.01)
        print([int(run_rounds(threads, 300)[62]) for threads in (2, 3, 2)])
    """,
        *(f"-DTW_NO_{name}" for name in without),
    )
    assert found == "[2, 3, 2]\n"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sets the mode of x86")
def test_workers_take_over_the_caller_s_floating_point_mode() -> None:
    found = in_a_process("""
        flush = Library(compile_shared(FLUSH, ISAS["scalar"]), name="flush")
        tiny, halves = np.array([1e-40], np.float32), np.zeros(3, np.float32)
        def run():
            region("halve", tiny, halves, threads=3)
            return [bool(bits) for bits in halves.view(np.int32)]  # a float is 0 here, too
        entry = library().entry("halve")
        print(run())
        flush.entry("set_flush", "tw_count")()
        print(run())
        flush.entry("clear_flush", "tw_count")()
        print(run())
    """)
    assert found == "[True, True, True]\n[False, False, False]\n[True, True, True]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a thread its CPU")
def test_a_thread_that_finds_its_cpu_taken_moves_to_a_free_one_and_stays_free_to_go() -> None:
    found = in_a_process("""
        shared = compile_shared(CROWDED + pool_source(), ISAS["scalar"], flags=("-pthread",))
        pool.use_pool(shared)
        counts = [Library(shared, name="pool", pinned=True).entry(name, "tw_count")
                  for name in ("count_moves", "count_back", "last_cpu")]
        for threads in (1, 2, 2, 3):
            run_rounds(threads, 1)
            time.sleep(0.05)  # the caller does not wait for a worker that is late
            print(threads, *(count() for count in counts))
    """)
    # of two threads on CPU 3 one goes to CPU 2, the first that is free, and stays; then a third
    # goes to CPU 5, or it takes CPU 2 before the other one wakes, which goes to CPU 5 itself
    two = "1 0 0 0\n2 1 1 2\n2 1 1 2\n"
    assert found in (two + "3 2 2 5\n", two + "3 3 3 5\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a thread its CPU")
def test_a_thread_that_was_drawn_to_another_s_cpu_while_it_slept_moves_away() -> None:
    found = in_a_process("""
        shared = compile_shared(CROWDED + pool_source(), ISAS["scalar"], flags=("-pthread",))
        pool.use_pool(shared)
        moves, draw = (Library(shared, name="pool", pinned=True).entry(name, "tw_count")
                       for name in ("count_moves", "draw"))
        region("late", np.array([int(ffi.cast("uintptr_t", draw))], np.uintp), threads=2)
        time.sleep(0.05)  # the caller does not wait for a worker that is late
        print(moves())
    """)
    assert found == "2\n"  # at the start, and when it woke at the barrier


def test_a_process_ends_while_its_workers_spin() -> None:
    assert in_a_process("run_rounds(4, 10)\nprint('end')") == "end\n"


def test_importing_starts_nothing() -> None:
    assert in_a_process("print(pool.threads_started(), threading.active_count())") == "0 1\n"


def test_the_pool_needs_no_flags_of_an_instruction_set() -> None:
    shared = pool_object()
    assert Library(shared, name="pool").entry("tw_pool_started", "tw_count")() >= 0
    assert len(pool_source().splitlines()) <= 770


@pytest.mark.bench
def test_an_empty_region_on_two_threads_costs_less_than_two_microseconds() -> None:
    empty: Pointer = library().entry("inner")
    seen = np.zeros(1, np.int64)
    arguments = ffi.new("void *[]", [ffi.cast("void *", address(seen))])
    run, best = pool_run(), 1.0
    for _ in range(200):
        began = time.perf_counter()
        for _ in range(100):
            run(empty, arguments, 2)
        best = min(best, (time.perf_counter() - began) / 100)
    assert best < 2e-6
