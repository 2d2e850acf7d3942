"""schedule/trace/trace.py and replay: steps as JSON-able data, refused when they do not fit."""

from __future__ import annotations

import json
import random
from contextlib import suppress

import pytest

from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace.trace import Step, Trace

from ..programs import body_of, chain, matmul, matmul_relu


def example() -> Schedule:
    sch = Schedule(matmul_relu(5, 7, 6, constant=True))
    sch.pack("B", 4)
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, sch.sample_categorical((2, 4))), tail="partition")
    sch.reorder(i, j, k, ii)
    sch.reverse_compute_at("Y", j)
    return sch


def test_a_trace_is_json_and_back() -> None:
    trace = example().trace
    text = json.dumps(trace.to_json())
    assert Trace.from_json(json.loads(text)) == trace
    assert json.loads(text)["version"] == 1


def test_a_trace_prints_one_step_a_line() -> None:
    lines = str(example().trace).splitlines()
    assert lines[0] == (
        "0: cache_read(block={'block': 'b0'}, buffer={'tensor': 'p1'}, name='B_packed')"
    )
    assert lines[4] == "4: sample_categorical(candidates=(2, 4), default=0) -> 2"
    assert lines[5] == (
        "5: split(loop={'loop': 'b0.l0', 'name': 'i'}, factors=(None, 2), tail='partition')"
    )
    assert len(lines) == 8


def test_a_trace_replays_on_the_same_workload_under_other_names() -> None:
    sch = example()
    again = Schedule.replay(matmul_relu(5, 7, 6, constant=True), sch.trace)
    assert body_of(again) == body_of(sch)
    assert again.trace == sch.trace


def test_a_replay_keeps_target_and_origin() -> None:
    sch = example()
    again = Schedule.replay(sch.original, sch.trace, origin="tuned")
    assert again.origin == "tuned"


def split_step(**arguments: object) -> Trace:
    return Trace((Step("split", tuple(arguments.items())),))


LOOP_I = {"loop": "b0.l0", "name": "i"}

REPLAYS: dict[str, Trace] = {
    "ScheduleError: replay: step 0 is 'peel', which is no primitive. [replay-primitive]": Trace(
        (Step("peel", ()),)
    ),
    "ScheduleError: replay: step 0 is 'undo', which is no primitive. [replay-primitive]": Trace(
        (Step("undo", ()),)
    ),
    "ScheduleError: replay: step 0, 'split', has other arguments than the primitive: got an "
    "unexpected keyword argument 'by'. [replay-arguments]": split_step(
        loop=LOOP_I, factors=(None, 2), by=3
    ),
    "ScheduleError: replay: step 0, 'split', has other arguments than the primitive: missing a "
    "required argument: 'factors'. [replay-arguments]": split_step(loop=LOOP_I),
    "ScheduleError: replay: step 0, 'split', has factors ('4', 2); expected a list, each a whole "
    "number or null. [replay-kind]": split_step(loop=LOOP_I, factors=("4", 2)),
    "ScheduleError: replay: step 0, 'split', has factors 4; expected a list, each a whole number "
    "or null. [replay-kind]": split_step(loop=LOOP_I, factors=4),
    "ScheduleError: replay: step 0, 'split', has loop 7; expected LoopRef. [replay-kind]": (
        split_step(loop=7, factors=(None, 2))
    ),
    "ScheduleError: replay: step 0, 'fuse', has loops (3,); expected LoopRef. [replay-kind]": Trace(
        (Step("fuse", (("loops", (3,)),)),)
    ),
    "ScheduleError: replay: step 0, 'compute_inline', has block {'tensor': 'p0'}; expected a text. "
    "[replay-kind]": Trace((Step("compute_inline", (("block", {"tensor": "p0"}),)),)),
    "ScheduleError: replay: step 0, 'cache_read', has buffer {'block': 'b0'}; expected a text. "
    "[replay-kind]": Trace(
        (Step("cache_read", (("block", {"block": "b0"}), ("buffer", {"block": "b0"}))),)
    ),
    "ScheduleError: replay: step 0, 'sample_categorical', has default '0'; expected a whole "
    "number. [replay-kind]": Trace(
        (Step("sample_categorical", (("candidates", (2, 4)), ("default", "0")), 2),)
    ),
    "ScheduleError: replay: step 0, 'compute_inline', names block b7, which 'matmul' does not "
    "have. [replay-reference]\n"
    "  Hint: the trace is of another function.": Trace(
        (Step("compute_inline", (("block", {"block": "b7"}),)),)
    ),
    "ScheduleError: replay: step 0, 'cache_read', names tensor p9, which 'matmul' does not "
    "have. [replay-reference]\n"
    "  Hint: the trace is of another function.": Trace(
        (Step("cache_read", (("block", {"block": "b0"}), ("buffer", {"tensor": "p9"}))),)
    ),
    "ScheduleError: replay: step 0 recorded the decision 5; expected one of [2, 4]. "
    "[replay-decision]\n"
    "  Hint: the trace belongs to another workload or another version of the rule.": Trace(
        (Step("sample_categorical", (("candidates", (2, 4)), ("default", 0)), 5),)
    ),
}


@pytest.mark.parametrize("text", REPLAYS, ids=[text.split("[")[-1][:24] for text in REPLAYS])
def test_a_trace_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        Schedule.replay(matmul(2, 3, 4), REPLAYS[text])
    assert str(refusal.value) == text


def test_a_trace_of_another_function_is_told_by_its_loops() -> None:
    sch = Schedule(matmul(2, 3, 4))
    sch.unroll(sch.loops("C")[2])
    with pytest.raises(ScheduleError) as refusal:
        Schedule.replay(chain(2, 3), sch.trace)
    assert str(refusal.value) == (
        "ScheduleError: replay: step 0, 'unroll', names loop 'k' (b0.l2), which 'chain' does not "
        "have. [replay-reference]\n"
        "  Hint: the trace is of another function."
    )


def test_of_several_loops_of_another_function_each_is_named() -> None:
    sch = Schedule(matmul(2, 3, 4))
    i, j, k = sch.loops("C")
    sch.reorder(i, k, j)
    with pytest.raises(ScheduleError, match=r"names loop 'i' \(b0.l0\), loop 'k' \(b0.l2\), loop"):
        Schedule.replay(chain(2, 3), sch.trace)


def test_a_loop_that_an_earlier_step_took_is_stale_in_a_trace_too() -> None:
    (step,) = split_step(loop={"loop": "b0.l0", "name": "i"}, factors=(None, 2)).steps
    with pytest.raises(ScheduleError, match=r"loop 'i' is stale: step 0, split.*\[stale-loop\]"):
        Schedule.replay(matmul(2, 3, 4), Trace((step, step)))


MALFORMED: dict[str, dict[str, object]] = {
    "ScheduleError: trace: format version 7; expected 1. [trace-version]": {
        "version": 7,
        "steps": [],
    },
    "ScheduleError: trace: format version None; expected 1. [trace-version]": {},
    "ScheduleError: trace: 'steps' is missing; expected a list of steps. [trace-steps]": {
        "version": 1,
        "steps": {},
    },
    "ScheduleError: trace: malformed step 'split'; expected an object with 'primitive' and "
    "'arguments'. [trace-step]": {"version": 1, "steps": ["split"]},
    "ScheduleError: trace: malformed step {'primitive': 'split'}; expected an object with "
    "'primitive' and 'arguments'. [trace-step]": {"version": 1, "steps": [{"primitive": "split"}]},
}


@pytest.mark.parametrize("text", MALFORMED, ids=[text.split("[")[-1][:-1] for text in MALFORMED])
def test_malformed_json_is_refused(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        Trace.from_json(MALFORMED[text])
    assert str(refusal.value) == text


@pytest.mark.parametrize("seed", range(60))
def test_only_refusals_come_out_of_mutated_traces(seed: int) -> None:
    """Any argument of any step may be anything that JSON has."""
    draw = random.Random(seed)
    data = json.loads(json.dumps(example().trace.to_json()))
    odd = (None, True, -1, 0, 3, 2**63, 1.5, "", "x", [], ["4", 2], [None], {"a": 1}, {"loop": 3})
    for _ in range(draw.choice((1, 1, 2))):
        step = draw.choice(data["steps"])
        name = draw.choice([*step["arguments"], "decision"])
        (step if name == "decision" else step["arguments"])[name] = draw.choice(odd)
    with suppress(ScheduleError):
        Schedule.replay(matmul_relu(5, 7, 6, constant=True), Trace.from_json(data))
