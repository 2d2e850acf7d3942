from __future__ import annotations

from dataclasses import replace

from tilewright.autotune.log.file import contents
from tilewright.autotune.log.record import Trial, Workload
from tilewright.autotune.log.setting import Setting
from tilewright.autotune.log.similar import similar_walks
from tilewright.autotune.space.decisions import Decision, GuidedWalk, decisions_of, nearest
from tilewright.autotune.space.space import TuningSpace
from tilewright.schedule.schedule import Schedule
from tilewright.tir.target.target import Target

from ..samples import scaled, trial, workload

HERE = Setting.of(trial().conditions)


def parts(sch: Schedule) -> None:
    """Of other sizes, other parts; the second question is new."""
    (loop,) = sch.loops("y")
    found = [size for size in (2, 4, 6, 12, 24) if sch.extent(loop) % size == 0]
    sch.split(loop, (None, int(sch.sample_categorical(found, 1))))
    sch.sample_categorical(["a", "b"], 1, name="another")


def chose(walk: GuidedWalk) -> object:
    return walk.decisions["question 0"].value


def test_the_nearest_candidate_is_that_of_the_nearest_numbers() -> None:
    assert nearest([1, 2, 16], 3, 0) == 1
    assert nearest([[1, 8], [2, 4], [4, 4]], (3, 4), 0) == 2
    assert nearest(["ij", "ji"], "ji", 0) == 1
    assert nearest([False, True], True, 0) == 1
    assert nearest([1, 2], True, 0) == 0  # yes is no number
    assert nearest([1, 2], "ij", 1) == 1
    assert nearest([[1], [2, 3]], [9], 1) == 0


def test_answers_are_taken_over_by_name_and_the_rules_own_stay_its_own() -> None:
    space = TuningSpace(scaled(48), Target.parse("c:avx512"), parts)
    default = GuidedWalk((), decisions={"question 0": Decision(16, is_default=True)})
    assert space.candidate_at(default).is_default
    found = space.candidate_at(GuidedWalk((), decisions={"question 0": Decision(16)}))
    assert found.point == (3, 1)
    assert decisions_of(found.schedule.trace) == {
        "question 0": Decision(12),
        "another": Decision("b", is_default=True),
    }


def test_the_best_of_functions_alike_is_followed_the_nearest_first() -> None:
    far, near, own = workload(1024), workload(128), workload(64)
    found = similar_walks(
        own,
        "elementwise",
        HERE,
        contents(
            [
                far,
                near,
                own,
                trial(1, n=1024, seconds=1e-6),
                trial(2, n=1024, seconds=2e-6),
                trial(2, n=128, seconds=1e-6),
                trial(0, n=128, seconds=2e-6),
                trial(1, n=64, seconds=1e-6),
            ]
        ),
    )
    assert list(map(chose, found)) == [16, 8]


def test_what_says_nothing_of_a_function_is_left_out() -> None:
    def kept(*trials: Trial, of: Workload | None = None) -> int:
        known = contents([of or workload(128), *trials])
        return len(similar_walks(workload(64), "elementwise", HERE, known))

    good = trial(1, n=128)
    assert kept(good) == 1
    assert kept(replace(good, rule="another")) == 0
    assert kept(replace(good, is_default=True)) == 0
    assert kept(trial(1, n=128, outcome="wrong")) == 0
    assert kept(good, of=replace(workload(128), text="def f(): pass")) == 0
    avx2 = {**good.conditions.target, "isa": "avx2"}
    assert kept(replace(good, conditions=replace(good.conditions, target=avx2))) == 0


def test_this_function_in_another_setting_is_followed_too() -> None:
    old = trial(1, n=64)
    known = contents([workload(64), replace(old, conditions=replace(old.conditions, tool="0.0.9"))])
    assert list(map(chose, similar_walks(workload(64), "elementwise", HERE, known))) == [8]
