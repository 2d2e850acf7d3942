"""Regions whose threads have no CPU: others go on with their members, or change CPUs with them."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from .test_pool import in_a_process

pytestmark = pytest.mark.needs_cc

# What the pool asks about CPUs, answered by the test: of CPUs 2 and 3 the caller is on 2 and the
# worker on 3, whose questions take two seconds to answer where `slow` is set. `moved` has who was
# moved where in decimal digits: the caller is 1, the worker 2.
TWO_CPUS = """\
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
static atomic_int slow, answered, moved, narrow, wide, caller_cpu = 2, worker_cpu = 3;
int set_slow(void) { return slow = 1; }
int last_moves(void) { return moved; }
int has_answered(void) { return answered; }
int restored(void) { return narrow == wide; }
static atomic_int *cpu_of(int who) { return who == getpid() ? &caller_cpu : &worker_cpu; }
static int self_or(int who) { return who != 0 ? who : (int)gettid(); }
static int answer_here(void)
{
    if (gettid() != getpid() && slow) {
        nanosleep(&(struct timespec){2, 0}, NULL);
        answered++;
    }
    return *cpu_of(gettid());
}
static int answer_allowed(int who, size_t size, cpu_set_t *set)
{
    (void)who, (void)size;
    CPU_ZERO(set);
    CPU_SET(2, set);
    CPU_SET(3, set);
    return 0;
}
static int answer_move(int who, size_t size, const cpu_set_t *set)
{
    (void)size;
    if (CPU_COUNT(set) == 2) {
        wide++;
        return 0;
    }
    narrow++;
    *cpu_of(self_or(who)) = CPU_ISSET(2, set) ? 2 : 3;
    moved = moved % 1000000 * 100 + (self_or(who) == getpid() ? 10 : 20) + *cpu_of(self_or(who));
    return 0;
}
#define sched_getcpu answer_here
#define sched_getaffinity answer_allowed
#define sched_setaffinity answer_move
"""
ASKED = """
/* What the caller does in a region that waits for a member of the worker. */
static int try_change(clockid_t clock)
{
    int changed;
    threads[1].clock = clock;
    threads[1].place = 1 + worker_cpu;
    members[1].state = RUNNING;
    members[1].thread = 1;
    changed = change_cpus(0);
    members[1].state = DONE;
    return changed;
}
int try_stopped(void) { return try_change(threads[1].clock); }
int try_busy(void)
{
    clockid_t own = threads[1].clock, busy;
    pthread_getcpuclockid(pthread_self(), &busy);
    int changed = try_change(busy);
    threads[1].clock = own;
    return changed;
}
static int ran;
static void note(void *const *args, const struct tw_team *team, int thread, int threads)
{
    (void)args, (void)team, (void)thread, (void)threads;
    ran++;
}
/* A worker of an earlier region of six meets one of a single member. */
int try_late(void)
{
    region = (struct region){note, NULL, float_mode()};
    make_members(1);
    count = unfinished = missing = 1;
    members[0].is_done = 0;
    members[0].passed = barrier.value - 1;
    members[0].state = (members[0].state / STATES + 1) * STATES;
    take_part(5);
    return ran;
}
int try_return(void)
{
    return_cpu();
    return 0;
}
"""
IN_TWO_CPUS = f"""
text = {TWO_CPUS!r} + pool_source() + {ASKED!r}
shared = compile_shared(text, ISAS["scalar"], flags=("-pthread",))
pool.use_pool(shared)
entry = Library(shared, name="pool", pinned=True).entry
names = ("last_moves", "set_slow", "restored", "has_answered")
moves, slow, restored, answered = (entry(name, "tw_count") for name in names)
names = ("try_busy", "try_stopped", "try_return", "try_late")
try_busy, try_stopped, try_return, try_late = (entry(name, "tw_count") for name in names)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="elsewhere there may be no fibers")
def test_a_region_goes_on_without_a_worker_that_does_not_come() -> None:
    found = in_a_process(
        IN_TWO_CPUS
        + textwrap.dedent("""
        slow()
        print(int(run_rounds(2, 1000)[62]), answered())
        print(int(run_rounds(2, 1000)[62]), answered())  # which the worker misses
        time.sleep(2.5)
        print(int(run_rounds(2, 1000)[62]), answered() > 0)  # there it is
    """)
    )
    assert found == "2 0\n2 0\n2 True\n"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="elsewhere there may be no fibers")
def test_members_keep_their_registers_where_one_thread_runs_them_in_turn() -> None:
    found = in_a_process(
        IN_TWO_CPUS
        + textwrap.dedent("""
        slow()
        sums = np.zeros(8, np.int64)
        region("registers", sums, threads=2)
        print([int(number) for number in sums[:4]])
    """)
    )
    assert found == "[5050, 505000, 0, 0]\n"  # sums of 1 to 100, and 100 times that; on the stack


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a thread its CPU")
def test_a_thread_that_waits_gives_its_cpu_to_one_that_has_none() -> None:
    found = in_a_process(
        IN_TWO_CPUS
        + textwrap.dedent("""
        run_rounds(2, 1)
        time.sleep(0.1)  # the worker sleeps
        print(try_busy(), moves(), try_stopped(), moves(), try_return(), moves(), restored())
    """)
    )
    # one that has a CPU is left alone; the worker comes to CPU 2, the caller goes to CPU 3, and
    # when it returns to CPU 2 again, on which nothing else runs
    assert found == "0 0 1 2213 0 221312 1\n"


def test_a_worker_that_is_late_leaves_no_member_of_a_smaller_region() -> None:
    assert in_a_process(IN_TWO_CPUS + "print(try_late())") == "1\n"
