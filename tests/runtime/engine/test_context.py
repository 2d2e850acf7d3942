from __future__ import annotations

import threading

import numpy as np
import pytest

from tilewright.runtime.arrays import ArgumentTypeError
from tilewright.runtime.engine.context import ContextError

from ...tiny_engine import tiny_engine
from ...tiny_program import M, N, image

pytestmark = pytest.mark.needs_cc


def test_a_bound_context_runs_on_its_arrays() -> None:
    engine = tiny_engine()
    x, y = image(), np.zeros((N, M), np.float32)
    context = engine.context(threads=2).bind({"x": x}, {"y": y})
    context.run()
    assert np.array_equal(y, engine(x))
    x[...] = image(3)
    context.run()
    assert np.array_equal(y, engine(image(3)))
    assert context.outputs["y"] is y


def test_a_bound_context_is_timed() -> None:
    context = tiny_engine().context(threads=1)
    with pytest.raises(ContextError):
        context.time(0.0)
    assert 0 < context.bind({"x": image()}).time(0.0).median < 1


def test_outputs_that_are_not_given_are_made() -> None:
    engine = tiny_engine()
    context = engine.context(threads=1).bind({"x": image()})
    context()
    assert np.array_equal(context.outputs["y"], engine(image()))


def test_contexts_run_at_the_same_time() -> None:
    engine = tiny_engine()
    images = [image(seed) for seed in range(2)]
    contexts = [engine.context(threads=2).bind({"x": x}) for x in images]
    wanted = [engine(x) for x in images]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(300):
            contexts[index].run()
            if not np.array_equal(contexts[index].outputs["y"], wanted[index]):
                wrong.append(index)

    workers = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_a_context_that_runs_refuses_another_thread() -> None:
    context = tiny_engine().context(threads=1).bind({"x": image()})
    begun, ends = threading.Event(), threading.Event()
    frame = context._frame

    class Held:
        point = frame.point

        def run(self, threads: int) -> int:
            begun.set()
            assert ends.wait(60)
            return frame.run(threads)

    context._frame = Held()
    other = threading.Thread(target=context.run)
    other.start()
    assert begun.wait(60)
    try:
        for use in (context.run, lambda: context.bind({"x": image(1)})):
            with pytest.raises(ContextError) as caught:
                use()
            assert str(caught.value) == (
                "ContextError: context: another thread runs this context of 'tiny', whose memory "
                "holds one run. [context-in-use]\n"
                "  Hint: make one for each thread: engine.context().bind(...)."
            )
    finally:
        ends.set()
        other.join()
    context.run()
    assert np.array_equal(context.outputs["y"], tiny_engine()(image()))


def test_arrays_are_checked_when_they_are_bound() -> None:
    with pytest.raises(ArgumentTypeError, match="'x' is float64, expected float32"):
        tiny_engine().context().bind({"x": image().astype(np.float64)})


def test_an_unbound_context_does_not_run() -> None:
    context = tiny_engine().context(threads=1)
    for use in (context.run, lambda: context.outputs):
        with pytest.raises(ContextError) as caught:
            use()
        assert str(caught.value) == (
            "ContextError: context: no arrays are bound to this context of 'tiny'. "
            "[context-unbound]\n"
            "  Hint: context.bind({'x': ...})"
        )
