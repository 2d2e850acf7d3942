"""Functions whose sizes calls decide: one schedule, timed at several sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import geometric_mean

import numpy as np
import pytest

import tilewright as tw
from tests.graph.open_models import perceptron
from tilewright.autotune.log.choice import choose
from tilewright.autotune.log.file import contents, read_log
from tilewright.autotune.log.record import SizeTimes, Trial, Workload
from tilewright.autotune.log.setting import by_setting
from tilewright.autotune.log.summary import summarise
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.measure.machine import Machine
from tilewright.autotune.measure.measurement import Subject
from tilewright.autotune.places import confirmation
from tilewright.autotune.report import bound as bounds
from tilewright.autotune.report.bound import MachineBound
from tilewright.autotune.sizes import default_sizes, sizes_to_time, usual_sizes
from tilewright.autotune.space.space import TuningSpace
from tilewright.autotune.tune import tune
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.machine.host import host, host_target
from tilewright.schedule.schedule import Schedule
from tilewright.tir.dim import Dim
from tilewright.tir.func import PrimFunc
from tilewright.tir.sizes import axis_of, size_of
from tilewright.tir.te import te

from .samples import trial

TARGET = replace(host_target(), threads=1)
RANGE = {"batch": (1, 4, 16)}


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A confirmation round takes one process here, to be short."""
    monkeypatch.setattr(confirmation, "PROCESSES", 1)


def scaled(n: Dim) -> PrimFunc:
    x = te.placeholder((n,), "float32", name="x")
    return te.func(x, te.compute((n,), lambda i: x[i] * 2.0, name="y"), name="scaled")


def in_parts(sch: Schedule) -> None:
    (loop,) = sch.loops("y")
    _, lane = sch.split(loop, (None, int(sch.sample_categorical([4, 8]))))
    sch.vectorize(lane)


def sized(number: int, times: tuple[float, ...], values: tuple[tuple[int, ...], ...]) -> Trial:
    """A trial at several sizes, with the same time in each round."""
    each = tuple(SizeTimes(v, 8, (t, t, t)) for v, t in zip(values, times, strict=True))
    return replace(trial(number), samples=(geometric_mean(times),) * 3, sizes=each)


def refusal(given: list[dict[str, int]], *funcs: PrimFunc) -> str:
    with pytest.raises(TuneError) as refused:
        sizes_to_time(funcs, given)
    return str(refused.value)


def test_the_least_the_usual_and_the_largest_sizes_are_timed() -> None:
    batch = Dim("batch", low=0, high=16, typical=4)
    assert default_sizes(scaled(batch)) == ((1,), (4,), (16,))
    assert default_sizes(scaled(te.dim("n", 3, 64))) == ((3,), (64,))
    assert default_sizes(scaled(te.dim("n", 0, 0))) == ((0,),)
    assert usual_sizes(scaled(batch)) == (4,)


def test_sizes_are_given_by_the_names_that_they_are_made_of() -> None:
    batch, seq = Dim("batch", low=1, high=8, typical=2), Dim("seq", low=1, high=64)
    rows = axis_of(size_of(batch) * size_of(seq))
    assert isinstance(rows, Dim)
    given = [{"batch": 2, "seq": 17}, {"batch": 8, "seq": 64}, {"batch": 2, "seq": 3}]
    found = sizes_to_time([scaled(rows), scaled(batch)], given)
    assert found == [((34,), (512,), (6,)), ((2,), (8,))]


def test_sizes_that_are_none_are_refused() -> None:
    func = scaled(Dim("batch", low=1, high=16, typical=4))
    closed = te.placeholder((8,), "float32", name="x")
    plain = te.func(closed, te.compute((8,), lambda i: closed[i] + 1.0, name="y"), name="plus")
    hint = "\n  Hint: leave sizes out: the least, the usual and the largest ones are timed."
    assert refusal([], func) == (
        "TuneError: tune: sizes=[]: there are none; expected numbers for sizes of te.dim, or of a "
        f"model with ranges. [tune-sizes]{hint}"
    )
    assert refusal([{"n": 1}], plain) == (
        "TuneError: tune: sizes=[{'n': 1}]: calls decide no size of what is tuned; expected "
        f"numbers for sizes of te.dim, or of a model with ranges. [tune-sizes]{hint}"
    )
    assert refusal([{"bach": 1}], func) == (
        "TuneError: tune: there is no size 'bach'; expected 'batch'. [tune-size-unknown]"
    )
    hint = '\n  Hint: sizes=[{"batch": 4}, ...]'
    assert refusal([{"batch": 17}], func) == (
        "TuneError: tune: size 'batch' of 'scaled' is 17; expected 1 to 16. "
        f"[tune-size-value]{hint}"
    )
    assert refusal([{"batch": 1}, {}], func) == (
        "TuneError: tune: size 'batch' of 'scaled' is missing; expected 1 to 16. "
        f"[tune-size-value]{hint}"
    )


def test_a_gpu_is_refused() -> None:
    with pytest.raises(TuneError) as refused:
        tune(scaled(te.dim("n", 1, 64)), "cuda:sm_90a")
    assert str(refused.value) == (
        "TuneError: tune: calls decide the sizes of 'scaled'; expected numbers for "
        "'cuda:sm_90a': candidates are timed at several sizes on a CPU alone. [tune-gpu-sizes]\n"
        "  Hint: tune the function of the sizes that matter most."
    )


@pytest.mark.needs_cc
def test_a_search_times_each_candidate_at_each_size_and_a_build_takes_its_schedule(
    tmp_path: Path,
) -> None:
    func, log = scaled(Dim("n", low=1, high=64, typical=24)), tmp_path / "log.jsonl"
    result = tune(func, TARGET, rule=in_parts, trials=2, log=log)
    assert {one.outcome for one in result.history} == {"ok"}
    for one in result.history:
        assert one.timed_at == ((1,), (24,), (64,))
        for samples in zip(one.samples, *(size.samples for size in one.sizes), strict=True):
            assert samples[0] == pytest.approx(geometric_mean(samples[1:]))
    assert read_log(log).trials == result.history
    assert " (means of 1: " in str(result.functions[0])

    known = tw.TuningLog(log)
    again = scaled(Dim("rows", low=1, high=64, typical=24))
    (best,) = (found.best for found in result.functions)
    assert best is not None
    assert known.seconds(again, TARGET) == best.seconds_at((24,))
    kernel = tw.build(again, TARGET, schedules=known)
    assert kernel.tuning.startswith("tuned")
    x = np.arange(37, dtype=np.float32)
    np.testing.assert_array_equal(kernel(x), 2 * x)

    wider = scaled(te.dim("n", 1, 65))
    assert known.schedule(wider, TARGET) is None
    assert known.reason(wider, TARGET) == "the log has it in other shapes or types alone"
    other = scaled(Dim("n", low=1, high=64, typical=25))
    assert known.seconds(other, TARGET) is None
    assert known.reason(other, TARGET) == "timed at 1, 24, 64, not at the usual 25"


@pytest.mark.needs_cc
def test_a_log_of_other_sizes_is_not_resumed(tmp_path: Path) -> None:
    func, log = scaled(te.dim("n", 1, 64)), tmp_path / "log.jsonl"
    first = tune(func, TARGET, rule=in_parts, trials=1, log=log, sizes=[{"n": 8}])
    same = tune(func, TARGET, rule=in_parts, trials=1, log=log, sizes=[{"n": 8}])
    assert same.history == first.history
    other = tune(func, TARGET, rule=in_parts, trials=1, log=log, sizes=[{"n": 8}, {"n": 9}])
    assert {one.timed_at for one in other.history} == {((8,), (9,))}
    assert len(by_setting(read_log(log).trials)) == 2


@pytest.mark.needs_cc
def test_a_candidate_that_is_wrong_at_one_size_alone_is_wrong() -> None:
    n = te.dim("n", 1, 64)
    x = te.placeholder((n,), "float32", name="x")
    y = te.compute((n,), lambda i: te.select(i < 40, x[i] * 2.0, 0.0), name="y")
    bad = write(TuningSpace(te.func(x, y, name="scaled"), TARGET).candidate(), TARGET)
    subject = Subject(scaled(n), TARGET, "elementwise", Workload.of(scaled(n)).key)
    with Machine() as machine:
        outcomes = [
            machine.measure(replace(subject, sizes=sizes).job([bad], 1, bar=None)).results[0]
            for sizes in (((1,), (40,)), ((1,), (40,), (64,)))
        ]
    assert [one.outcome for one in outcomes] == ["ok", "wrong"]
    assert [one.values for one in outcomes[0].sizes] == [(1,), (40,)]


@pytest.mark.needs_cc
def test_a_model_with_ranges_is_tuned_and_its_engine_says_so(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    pairs = tw.tasks(perceptron(), TARGET, shapes=RANGE)
    (last,) = (pair for pair in pairs if pair[0].name == "softmax")
    given = [{"batch": 2}, {"batch": 4}]
    result = tune([last], TARGET, trials=1, log=log, sizes=given)
    assert [one.timed_at for one in result.history] == [((2,), (4,))]
    engine = tw.compile(perceptron(), TARGET, shapes=RANGE, schedules=tw.TuningLog(log))
    covered = {one.name: one for one in engine.tuning.kernels}
    assert covered["softmax"].is_tuned
    assert covered["softmax"].why == ""
    assert str(engine.tuning).endswith("; 1 in the log")
    x = np.random.default_rng(0).standard_normal((7, 24), dtype=np.float32)
    np.testing.assert_allclose(engine(x).sum(axis=1), np.ones(7), rtol=1e-5)


def test_the_score_is_no_sum_of_times() -> None:
    """Twice as fast at the smaller size and 1.2 times as slow at the larger one is a gain."""
    values = ((1,), (64,))
    default, other = sized(0, (2e-6, 40e-6), values), sized(1, (1e-6, 48e-6), values)
    choice = choose([default, other])
    assert choice.best is other
    assert choice.gain == pytest.approx((2 / 1.2) ** 0.5)
    assert [choice.seconds_at(v) for v in values] == [1e-6, 48e-6]
    assert choice.default_seconds_at((64,)) == 40e-6


def test_times_of_other_sizes_are_not_compared() -> None:
    default = sized(0, (4e-6,), ((64,),))
    failed = replace(trial(2, outcome="wrong"), sizes=(SizeTimes((1,)),))
    trials = [default, sized(1, (1e-6,), ((1,),)), failed]
    groups = by_setting(trials)
    assert [setting.sizes for setting in groups] == [((64,),), ((1,),)]
    assert list(groups.values()) == [[default], trials[1:]]
    first, second = summarise(contents(trials))
    assert first.sizes == ("64: 4 us",)
    assert second.to_json()["sizes"] == [{"values": [1], "default_seconds": None, "seconds": 1e-6}]


class Rates:
    """What a machine reaches, whatever is asked."""

    def gflops(self, threads: int) -> float:
        return 100.0

    def gb_per_s(self, threads: int, size: int) -> float:
        return 10.0


def test_the_limit_of_a_machine_is_the_mean_of_its_limits_at_the_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "_machine", Rates)
    bound = MachineBound.of(scaled(te.dim("n", 1, 1 << 20)))
    here = replace(trial().conditions, cpu=host().model)
    one = replace(sized(0, (1e-6, 4e-6), ((1 << 10,), (1 << 20,))), conditions=here)
    found = bound.limit(one)
    assert found is not None
    assert found.name == "memory"  # eight bytes of an element, ten billion in a second
    assert found.seconds == pytest.approx(((8 << 10) * (8 << 20)) ** 0.5 / 1e10)
