from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.engine.cpu_code import CpuCode
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.engine_code import EngineError
from tilewright.runtime.engine.export_c import ExportError
from tilewright.runtime.engine.interpreted_code import InterpretedModelCode
from tilewright.runtime.measure import launch_limits
from tilewright.runtime.measure.limits import FmaLimit, Limits, ReadLimit

from ...tiny_engine import tiny_engine
from ...tiny_program import K, M, N, expected, image

pytestmark = [pytest.mark.needs_cc, pytest.mark.isa]


@pytest.fixture
def engine() -> Engine:
    return tiny_engine()


def test_a_run_returns_new_arrays_by_name(engine: Engine) -> None:
    x = image()
    first, second = engine.run({"x": x}), engine.run({"x": x})
    assert list(first) == ["y"]
    assert first["y"] is not second["y"]
    np.testing.assert_allclose(first["y"], expected(x), rtol=1e-5, atol=1e-5)
    assert np.array_equal(first["y"], second["y"])


def test_a_call_takes_the_inputs_in_order(engine: Engine) -> None:
    assert np.array_equal(engine(image()), engine.run({"x": image()})["y"])


def test_a_run_writes_into_given_arrays(engine: Engine) -> None:
    out = np.zeros((N, M), np.float32)
    assert engine.run({"x": image()}, out={"y": out})["y"] is out
    assert np.array_equal(out, engine(image()))


def test_a_run_returns_the_outputs_that_are_asked_for(engine: Engine) -> None:
    assert list(engine.run({"x": image()}, outputs=["y"])) == ["y"]
    assert engine.run({"x": image()}, outputs=[]) == {}


def test_the_number_of_threads_changes_no_bit(engine: Engine) -> None:
    results = [engine(image(), threads=threads) for threads in (1, 2, 3, 5)]
    assert all(np.array_equal(result, results[0]) for result in results)


def test_it_tells_its_inputs_and_outputs(engine: Engine) -> None:
    assert [str(spec) for spec in engine.inputs] == ["x: float32[6, 20]"]
    assert [str(spec) for spec in engine.outputs] == ["y: float32[6, 35]"]
    assert engine.inputs[0].shape == (N, K)


def test_eight_threads_run_one_engine_at_once(engine: Engine) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for index in range(100):
            x = image(seed * 1000 + index)
            if not np.allclose(engine(x, threads=2), expected(x), rtol=1e-4, atol=1e-4):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_bound_on_contexts_makes_runs_wait(engine: Engine) -> None:
    bounded = Engine(engine.parts, max_contexts=1)
    running, most = [0], [0]
    borrow = bounded._borrow

    def counted(threads: int) -> object:
        running[0] += 1
        most[0] = max(most[0], running[0])
        time.sleep(0.002)
        running[0] -= 1
        return borrow(threads)

    bounded._borrow = counted  # type: ignore[method-assign, assignment]
    workers = [threading.Thread(target=bounded, args=(image(),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert most[0] == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_child_forked_beside_a_run_finds_all_places_free(engine: Engine) -> None:
    bounded = Engine(engine.parts, max_contexts=1)
    wanted = bounded(image())
    begun, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with bounded._turn:
            begun.set()
            assert ends.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends a child that waits
        os._exit(0 if np.array_equal(bounded(image()), wanted) else 1)
    try:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        ends.set()
        holder.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_forked_after_a_run_runs_it_too(engine: Engine) -> None:
    wanted = engine(image(), threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(engine(image(), threads=2), wanted) else 1)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.01)
    os.kill(child, 9)
    pytest.fail("the child hangs")


def test_it_shows_itself_in_text_and_in_a_notebook() -> None:
    engine = tiny_engine("c:scalar")
    text = repr(engine)
    assert text.splitlines()[:2] == [
        "Engine tiny(x: float32[6, 20]) -> y: float32[6, 35]",
        "  target: c:scalar",
    ]
    assert "arena 2.62 KiB (lower bound 2.62 KiB) per context" in text
    assert "kernels 3: default 3" in text
    html = engine._repr_html_()
    assert html.startswith("<pre ")
    assert ">Engine tiny(x: float32[6, 20]) -&gt; y" in html
    assert "<table><tr><th>kernel</th>" in html


def test_it_tells_its_source_and_its_report(engine: Engine) -> None:
    assert "void tw_model_tiny(void *const *args" in engine.source
    report = engine.explain()
    assert [kernel.name for kernel in report.kernels] == ["mm1", "relu", "add"]
    assert report.kernels[0].labels == ("first matmul", "second matmul")
    assert {kernel.check for kernel in report.kernels} == {"ok"}
    assert report.proofs == {"proved": 3}
    drawn = report.picture().svg
    places = [drawn.index(node) for node in ("first matmul", "second matmul", "relu", "add")]
    assert places == sorted(places)
    assert ">2 times</text>" in drawn  # both are launches of one kernel
    assert "note: not fused: relu and add, because this is a test" in str(report)


def test_its_memory_is_promised_before_it_runs(engine: Engine) -> None:
    plan = engine.memory_plan
    constants = [array for array in engine.parts.constants if array is not None]
    assert plan.weights_bytes == sum(array.nbytes for array in constants)
    assert plan.arena_bytes == plan.lower_bound_bytes == 2688
    assert plan.kept_bytes == 2 * K * M * 4
    assert plan.peak_bytes(2, 3) == plan.weights_bytes + 3 * plan.context_bytes(2)
    assert plan.context_bytes(2) == engine.parts.artifact.scratch_bytes(2)
    assert [(tensor.label, tensor.first, tensor.last) for tensor in plan.tensors] == [
        ("first matmul", 0, 2),
        ("second matmul", 1, 3),
        ("relu", 2, 3),
    ]
    assert max(tensor.offset + tensor.bytes for tensor in plan.tensors) <= plan.arena_bytes


def test_it_is_verified_against_the_model_as_imported(engine: Engine) -> None:
    assert engine.verify()
    assert engine.verify({"x": image(7)}, atol=1e-4, rtol=1e-4)


def test_a_wrong_engine_fails_its_verification(engine: Engine) -> None:
    def reference(inputs: object) -> dict[str, np.ndarray]:
        return {"y": expected(image()) + 1e-3}

    report = Engine(engine.parts, reference=reference).verify({"x": image()})
    assert not report
    with pytest.raises(ArithmeticError, match=r"verify-differs"):
        report.raise_for_difference()


def test_launches_are_timed_one_by_one(engine: Engine, tmp_path: Path) -> None:
    profile = engine.profile({"x": image()}, threads=1, rounds=3)
    assert [step.label for step in profile.steps] == [
        "first matmul",
        "second matmul",
        "relu",
        "add",
    ]
    assert all(step.seconds > 0 for step in profile.steps)
    events = json.loads(profile.save(tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == [step.label for step in profile.steps]


def test_a_profile_may_know_the_limits_of_the_machine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Limits("avx2", (FmaLimit(1, 100.0),), (ReadLimit(1, 1 << 20, 10.0),), 0.0, 0.0)
    monkeypatch.setattr(launch_limits, "limits", lambda: machine)
    profile = engine.profile({"x": image()}, threads=1, rounds=1, roofline=True)
    assert all(step.limit is not None and step.limit > 0 for step in profile.steps)
    assert ">of limit</text>" in profile.picture().svg


def test_it_can_be_copied_and_pickled(engine: Engine) -> None:
    for twin in (pickle.loads(pickle.dumps(engine)), copy.deepcopy(engine)):
        assert np.array_equal(twin(image()), engine(image()))
        assert (repr(twin), twin.explain()) == (repr(engine), engine.explain())


def test_the_interpreter_runs_it_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    interpreted = tiny_engine("python")
    np.testing.assert_allclose(interpreted(image()), expected(image()), rtol=1e-5, atol=1e-5)
    assert interpreted.verify()
    assert interpreted.source == ""
    twin = pickle.loads(pickle.dumps(interpreted))
    assert np.array_equal(twin(image()), interpreted(image()))


def text_of(error: type[Exception], call: object, *arguments: object, **named: object) -> str:
    with pytest.raises(error) as caught:
        call(*arguments, **named)  # type: ignore[operator]
    return str(caught.value)


def test_the_number_of_arrays_must_fit(engine: Engine) -> None:
    assert text_of(ArgumentTypeError, engine) == (
        "ArgumentTypeError: tiny: 0 arrays given; expected 1: x: float32[6, 20]. [engine-count]"
    )


def test_the_number_of_threads_must_be_positive(engine: Engine) -> None:
    assert text_of(ArgumentValueError, engine.context, threads=0) == (
        "ArgumentValueError: tiny: threads is 0; expected a whole number of at least 1. "
        "[argument-threads]"
    )


def test_an_engine_without_a_reference_cannot_be_verified(engine: Engine) -> None:
    alone = Engine(replace(engine.parts, reference=None))
    assert text_of(EngineError, alone.verify) == (
        "EngineError: verify: 'tiny' carries no reference to compare with. [engine-reference]\n"
        "  Hint: engine.save(path, keep_weights=True) keeps it in the file."
    )


def test_an_engine_is_verified_against_its_reference_alone(engine: Engine) -> None:
    assert text_of(EngineError, engine.verify, against="mars") == (
        "EngineError: verify: against is 'mars'; expected 'reference'. [engine-against]"
    )


def test_an_interpreted_engine_is_not_profiled() -> None:
    assert text_of(EngineError, tiny_engine("python").profile) == (
        "EngineError: profile: 'tiny' is interpreted or emulated, launch by launch is not "
        "timed; expected an engine of a compiled target. [engine-profile]"
    )


def test_limits_are_known_of_an_engine_that_keeps_its_program(engine: Engine) -> None:
    bare = Engine(replace(engine.parts, plain=None))
    assert text_of(EngineError, bare.profile, roofline=True) == (
        "EngineError: profile: the limits of 'tiny' are not known; expected an engine of a CPU "
        "that keeps its program. [engine-roofline]\n"
        "  Hint: engine.profile() times the launches alone."
    )


def test_parts_without_code_are_no_engine(engine: Engine) -> None:
    code = InterpretedModelCode(engine.parts.artifact)  # type: ignore[arg-type]
    parts = replace(engine.parts, code=code, plain=None)
    assert text_of(EngineError, Engine, parts) == (
        "EngineError: engine: 'tiny' has neither compiled code nor a program to interpret. "
        "[engine-code]"
    )


def test_an_engine_of_c_that_was_not_compiled_does_not_run(engine: Engine) -> None:
    code = CpuCode(engine.parts.artifact)  # type: ignore[arg-type]
    assert text_of(EngineError, Engine, replace(engine.parts, code=code)) == (
        "EngineError: engine: 'tiny' has no compiled code. [engine-code]"
    )


def test_an_interpreted_engine_has_no_c(tmp_path: Path) -> None:
    assert text_of(ExportError, tiny_engine("python").export_c, tmp_path) == (
        "ExportError: export: 'tiny' is built for target 'python'; expected 'c'. [export-target]\n"
        '  Hint: tw.compile(model, target="c").export_c(folder)'
    )
