"""schedule/primitives/storage/scope.py: set_scope: text, values, proof, replay, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import tilewright as tw
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Trace
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...programs import blur, body_of, chain, matmul_relu, refusals, scheduled

AVX512 = Target.parse("c:avx512")


def close(scope: str) -> Callable[[Schedule], object]:
    def steps(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        sch.compute_at("Q", j)
        sch.compute_at("P", i)
        sch.set_scope("P", scope)  # type: ignore[arg-type]

    return steps


def test_a_trace_may_call_a_scope_by_its_former_name() -> None:
    func = chain(4, 8)
    sch = Schedule(func)
    sch.compute_at("P", sch.loops("Q")[0])
    sch.bind(sch.loops("Q")[0], "blockIdx.x")
    sch.set_scope("P", "shared")
    written = json.dumps(sch.trace.to_json())
    assert written.count('"shared"') == 1
    former = Trace.from_json(json.loads(written.replace('"shared"', '"team"')))
    again = Schedule.replay(func, former)
    assert (str(again.func), again.trace) == (str(sch.func), sch.trace)


@pytest.mark.parametrize("scope", ["register", "thread"])
def test_a_tensor_of_a_thread_lives_below_the_innermost_loop_that_holds_it(scope: str) -> None:
    sch = scheduled(chain(3, 4), close(scope))
    lines = body_of(sch).splitlines()
    place = lines.index(f'    P = alloc(float32[3, 4], "{scope}")')
    assert lines[place - 1] == "for i in range(3):"
    assert tw.prove(sch, AVX512).status == "proved"


def test_the_scope_may_be_changed_back() -> None:
    def steps(sch: Schedule) -> None:
        close("thread")(sch)
        sch.set_scope("P", "global")

    assert '"thread"' not in body_of(scheduled(chain(3, 4), steps))


def test_the_loop_around_it_may_be_parallel() -> None:
    def steps(sch: Schedule) -> None:
        close("register")(sch)
        sch.parallel(sch.loops("Y")[0])

    assert tw.prove(scheduled(chain(3, 4), steps), AVX512).status == "proved"


def test_a_reduction_keeps_its_accumulators_outside_of_its_loop() -> None:
    def steps(sch: Schedule) -> None:
        sch.reverse_compute_at("Y", sch.loops("C")[1])
        sch.set_scope("C", "register")

    sch = scheduled(matmul_relu(2, 3, 4), steps)
    lines = body_of(sch).splitlines()
    place = next(n for n, line in enumerate(lines) if "alloc" in line)
    assert lines[place - 1] == "    for j in range(3):"


def test_a_recurrence_carries_what_it_computes_and_not_what_it_reads() -> None:
    x = te.placeholder((5, 3), "float32", name="X")
    p = te.compute((5, 3), lambda t, i: x[t, i] * 2.0, name="P")
    state = te.state((5, 3), "float32", name="S")
    step = te.compute((5, 3), lambda t, i: state[t - 1, i] * 0.5 + p[t, i], name="step")
    first = te.compute((1, 3), lambda t, i: x[t, i], name="first")
    func = te.func(x, te.scan(first, step, state), name="decay")

    def steps(sch: Schedule) -> None:
        sch.compute_at("P", sch.loops("S")[1])
        sch.set_scope("P", "register")

    sch = scheduled(func, steps)
    assert tw.prove(sch, AVX512).status == "proved"


def _accumulated_outside(sch: Schedule) -> None:
    i, j, k = sch.loops("C")
    sch.reorder(k, i, j)
    sch.reverse_compute_at("Y", j, at="last")
    sch.set_scope("C", "register")


def _inside_the_row(sch: Schedule) -> None:
    close("thread")(sch)
    sch.parallel(sch.loops("P")[1])


CASES: dict[str, tuple[PrimFunc, Callable[[Schedule], object]]] = {
    "stage-scope": (chain(2, 3), lambda s: s.set_scope("P", "local")),  # type: ignore[arg-type]
    "scope-loop: no common loop": (chain(2, 3), lambda s: s.set_scope("P", "register")),
    "scope-loop: two nests": (
        matmul_relu(2, 3, 2),
        lambda s: s.set_scope("C", "register"),
    ),
    "scope-carries": (
        matmul_relu(1, 3, 2),
        _accumulated_outside,
    ),
    "not-intermediate": (blur(2, 3), lambda s: s.set_scope("X", "register")),
    "parallel-inside": (chain(2, 3), _inside_the_row),
    "parallel-staged": (
        chain(1, 3),
        lambda s: (close("thread")(s), s.parallel(s.loops("P")[1])),
    ),
}


def test_each_refusal_says_what_is_wrong_and_what_to_do(
    golden: Callable[[str, str], None],
) -> None:
    golden("errors/schedule_scope.txt", refusals(CASES))
