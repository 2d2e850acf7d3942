"""schedule/schedule.py, recorder.py, references.py: a recorder whose steps are all or nothing."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

from tilewright.schedule.errors import ScheduleError, ScheduleTypeError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.decisions import Random
from tilewright.schedule.trace.references import LoopRef
from tilewright.tir.func import PrimFunc
from tilewright.tir.stmt import Tail
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .programs import assert_replays, body_of, chain, matmul, matmul_relu, refusals


def tile(sch: Schedule) -> None:
    i, _, k = sch.loops("C")
    i, ii = sch.split(i, (None, 2), tail="partition")
    sch.reorder(i, k, ii)
    sch.parallel(i)


# -- what is there ---------------------------------------------------------------------------------


def test_loops_are_handles_with_names_and_extents() -> None:
    sch = Schedule(matmul(2, 3, 4))
    loops = sch.loops("C")
    assert [repr(loop) for loop in loops] == ["<loop i>", "<loop j>", "<loop k>"]
    assert [sch.extent(loop) for loop in loops] == [2, 3, 4]
    assert sch.blocks() == ("C",)
    assert sch.loops("C") == loops


def test_a_schedule_leaves_its_function_as_it_is() -> None:
    func = matmul(2, 3, 4)
    text = str(func)
    sch = Schedule(func).apply(tile)
    assert sch.original is func
    assert str(func) == text
    assert sch.func is not func


@pytest.mark.parametrize(
    ("what", "name"), [(None, "NoneType"), (Schedule(matmul(2, 3, 4)), "Schedule")]
)
def test_what_is_no_function_has_no_schedule(what: PrimFunc, name: str) -> None:
    with pytest.raises(ScheduleTypeError) as refusal:
        Schedule(what)
    assert isinstance(refusal.value, TypeError)
    assert str(refusal.value) == (
        f"ScheduleTypeError: schedule: got a {name}; expected a PrimFunc. [schedule-what]\n"
        "  Hint: te.func makes one of tensors; sch.copy() goes on from another schedule."
    )


def test_handles_of_other_loops_stay_good_across_steps() -> None:
    sch = Schedule(matmul_relu(2, 3, 4))
    i, j, k = sch.loops("C")
    y, _ = sch.loops("Y")
    sch.split(i, (None, 2))
    sch.reverse_compute_at("Y", j)
    assert sch.extent(j) == 3
    assert sch.extent(k) == 4
    assert sch.attempt(lambda s: s.extent(y)) is False


def test_a_block_that_a_step_renames_keeps_its_loops() -> None:
    sch = Schedule(matmul(2, 3, 4))
    loops = sch.loops("C")
    sch.cache_write("C", name="acc")
    assert sch.loops("acc") == loops
    assert sch.blocks() == ("acc", "C")


# -- all or nothing --------------------------------------------------------------------------------


def test_apply_takes_all_steps_or_none() -> None:
    sch = Schedule(matmul(2, 3, 4))

    def broken(s: Schedule) -> None:
        tile(s)
        s.fuse(*s.loops("C")[:2])

    with pytest.raises(ScheduleError, match=r"\[loop-kind\]"):
        sch.apply(broken)
    assert body_of(sch) == body_of(Schedule(sch.original))
    assert not sch.trace.steps
    assert sch.apply(tile) is sch


def test_apply_undoes_the_steps_of_a_function_that_fails_for_any_reason() -> None:
    sch = Schedule(matmul(2, 3, 4))
    with pytest.raises(KeyError):
        sch.apply(lambda s: (tile(s), {}["x"]))
    assert not sch.trace.steps


def test_attempt_says_whether_the_steps_applied() -> None:
    sch = Schedule(matmul(2, 3, 4))
    assert sch.attempt(tile) is True
    steps = sch.trace.steps
    assert sch.attempt(lambda s: s.unroll(s.loops("C")[0])) is False
    assert sch.trace.steps == steps


def test_attempt_lets_other_errors_through() -> None:
    with pytest.raises(KeyError):
        Schedule(matmul(2, 3, 4)).attempt(lambda s: {}["x"])


def test_a_refused_pack_leaves_nothing_behind() -> None:
    sch = Schedule(matmul(2, 3, 4))
    assert not sch.attempt(lambda s: s.pack("B", 0))
    with pytest.raises(ScheduleError):
        sch.pack("B", -1)
    assert not sch.trace.steps


# -- undo, copy, pickle ----------------------------------------------------------------------------


def test_undo_takes_back_one_step_at_a_time() -> None:
    sch = Schedule(matmul(2, 3, 4))
    texts = [body_of(sch)]
    i, j, _ = sch.loops("C")
    for step in (lambda: sch.split(i, (None, 2)), lambda: sch.split(j, (None, 2))):
        step()
        texts.append(body_of(sch))
    while len(texts) > 1:
        assert body_of(sch) == texts.pop()
        assert sch.undo() is sch
    assert body_of(sch) == texts[0]
    assert body_of(sch.undo()) == texts[0]
    assert sch.extent(i) == 2


def test_a_copy_goes_its_own_way() -> None:
    sch = Schedule(matmul(2, 3, 4), Target.parse("c:avx2"), origin="tuned", log_state="confirmed")
    i, j, _ = sch.loops("C")
    sch.split(i, (None, 2))
    other = sch.copy()
    other.split(j, (None, 2))
    assert len(sch.trace.steps) == 1
    assert len(other.trace.steps) == 2
    assert (other.original, other.target) == (sch.original, sch.target)
    assert (other.origin, other.log_state) == ("tuned", "confirmed")


def test_a_schedule_travels_between_processes() -> None:
    sch = Schedule(matmul(2, 3, 4), Target.parse("c:avx2"), Random(3), "tuned", "candidate")
    sch.apply(tile)
    sch.sample_categorical((1, 2, 3))
    other = pickle.loads(pickle.dumps(sch))
    assert str(other) == str(sch)
    assert other.trace == sch.trace
    assert (other.target, other.origin, other.log_state) == (sch.target, "tuned", "candidate")
    assert other.sample_categorical((1, 2), 1) == 2


def test_a_loop_tells_how_its_last_iteration_is_cut() -> None:
    sch = Schedule(matmul(6, 4, 4))
    i, j, _ = sch.loops("C")
    uneven, _ = sch.split(i, (None, 4), tail="partition")
    even, _ = sch.split(j, (None, 2), tail="partition")
    assert (sch.tail(uneven), sch.tail(even)) == (Tail.PARTITION, None)


# -- decisions -------------------------------------------------------------------------------------


def test_samples_are_recorded_and_replay() -> None:
    sch = Schedule(matmul(6, 4, 4), decisions=Random(1))
    i, *_ = sch.loops("C")
    factors = sch.sample_perfect_tile(i, 2, 4, (3, 2))
    sch.split(i, factors)
    step = sch.trace.steps[0]
    assert step.primitive == "sample_categorical"
    assert step.decision == factors
    assert_replays(sch)


def test_perfect_tiles_are_all_factorisations_with_a_short_last_part() -> None:
    sch = Schedule(matmul(6, 4, 4))
    sch.sample_perfect_tile(sch.loops("C")[0], 2, 3, (3, 2))
    (step,) = sch.trace.steps
    assert dict(step.arguments)["candidates"] == ((2, 3), (3, 2), (6, 1))


def test_a_default_that_is_no_factorisation_is_a_candidate_too() -> None:
    sch = Schedule(matmul(7, 4, 4))
    assert sch.sample_perfect_tile(sch.loops("C")[0], 2, 4, (2, 4)) == (2, 4)


# -- stale and foreign references ------------------------------------------------------------------


def _stale(sch: Schedule) -> None:
    i, *_ = sch.loops("C")
    sch.split(i, (None, 2))
    sch.parallel(i)


def _moved(sch: Schedule) -> None:
    y, _ = sch.loops("Y")
    sch.reverse_compute_at("Y", sch.loops("C")[1])
    sch.parallel(y)


def _replaced(sch: Schedule) -> None:
    k = sch.loops("P")[1]
    sch.transform_layout("P", "lambda i, j: (j, i)")
    sch.unroll(k)


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "stale-loop: split": (matmul(2, 3, 2), _stale),
    "stale-loop: moved": (matmul_relu(2, 3, 2), _moved),
    "stale-loop: replaced": (chain(2, 3), _replaced),
    "stale-loop: of another schedule": (
        matmul(2, 3, 2),
        lambda s: s.parallel(LoopRef("s9.l0", "q")),
    ),
    "loop-handle": (matmul(2, 3, 2), lambda s: s.parallel("i")),  # type: ignore[arg-type]
    "no-block": (matmul_relu(2, 3, 2), lambda s: s.loops("c")),
    "no-tensor": (matmul_relu(2, 3, 2), lambda s: s.cache_read("C", "b")),
    "sample-default": (matmul(2, 3, 2), lambda s: s.sample_categorical((1, 2), 2)),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_references.txt", refusals(CASES))


def test_a_loop_is_open_where_a_call_decides_how_far_it_runs() -> None:
    n = te.dim("n", 1, 9)
    a = te.placeholder((n, 8), "float32", name="A")
    sch = Schedule(te.func(a, te.compute((n, 8), lambda i, j: a[i, j] + 1.0, name="B"), name="f"))
    i, j = sch.loops("B")
    i_0, i_1 = sch.split(i, (None, 2))
    assert [sch.is_open(loop) for loop in (i_0, i_1, j)] == [True, True, False]
    assert sch.is_open(sch.fuse(i_1, j))


def test_a_loop_of_whole_points_has_the_dim_of_its_axis() -> None:
    n = te.dim("n", 1, 9)
    a = te.placeholder((n, 8), "float32", name="A")
    sch = Schedule(te.func(a, te.compute((n, 8), lambda i, j: a[i, j] + 1.0, name="B"), name="f"))
    i, j = sch.loops("B")
    assert (sch.dim(i), sch.dim(j)) == (n, None)
    once, _ = sch.split(j, (1, None))
    assert (sch.dim(i), sch.dim(once)) == (n, None)
    whole, _ = sch.split(i, (None, 1))  # one point in each iteration
    assert sch.dim(whole) is n
    i_0, i_1 = sch.split(whole, (None, 2))
    assert (sch.dim(i_0), sch.dim(i_1)) == (None, None)
