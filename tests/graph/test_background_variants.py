"""Variants for the sizes that come most often, made while an engine runs."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.graph.open_models import perceptron
from tilewright.graph.options import OptionError
from tilewright.runtime.arrays import Array
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.engine_code import EngineError
from tilewright.runtime.engine.parts import EngineParts, Variant
from tilewright.runtime.engine.specialiser import LEAST, Specialiser

pytestmark = pytest.mark.needs_cc

PERCEPTRON = {"batch": (1, 4, 16)}


def rows(batch: int) -> Array:
    return np.random.default_rng(batch).standard_normal((batch, 24), dtype=np.float32)


def often(engine: Engine, batch: int, runs: int = LEAST + 128) -> None:
    for _ in range(runs):
        engine(rows(batch))


def watched(engine: Engine) -> Specialiser:
    assert engine._specialiser is not None
    return engine._specialiser


def test_the_most_frequent_sizes_get_variants_that_serve_the_next_runs() -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=2, verify="kernels")
    wanted = engine(rows(1))
    assert engine.stats.variants == 0
    for batch in (8, 3, 1):
        often(engine, batch)
        watched(engine).wait(120)
    assert sorted(str(one) for one in engine.parts.variants) == ["batch 3", "batch 8"]
    hits = engine.stats.hits
    assert engine(rows(1)).tobytes() == wanted.tobytes()
    for batch in (3, 8):
        alone = tw.compile(perceptron(), "c", shapes={"batch": batch}, verify="kernels")
        assert engine(rows(batch)).tobytes() == alone(rows(batch)).tobytes()
    assert engine.stats.hits == hits + 2
    assert engine.stats.errors == ()


def test_sizes_that_come_seldom_get_none() -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=4, verify="off")
    for batch in range(1, 17):
        often(engine, batch, LEAST - 1)
    watched(engine).wait(60)
    assert engine.stats.variants == 0


def test_runs_go_on_while_a_variant_is_built_and_before_it_is_there() -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, verify="off")
    built = tw.compile(perceptron(), "c", shapes={"batch": 8}, verify="off").parts
    begun, let_go = threading.Event(), threading.Event()

    def build(sizes: object, tell: object) -> EngineParts:
        begun.set()
        assert let_go.wait(60)
        return built

    engine.specialise(1, build)
    often(engine, 8)
    assert begun.wait(60)
    began = time.perf_counter()
    often(engine, 8, 200)
    assert time.perf_counter() - began < 30
    assert (engine.stats.variants, engine.stats.hits) == (0, 0)
    let_go.set()
    watched(engine).wait(60)
    often(engine, 8, 3)
    assert (engine.stats.variants, engine.stats.hits) == (1, 3)


def test_a_build_that_fails_is_told_and_the_engine_runs_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, verify="off")

    def build(sizes: object, tell: object) -> EngineParts:
        raise ValueError("no disk is left")

    engine.specialise(2, build)
    with caplog.at_level(logging.WARNING):
        for batch in (8, 3, 5):
            often(engine, batch)
            watched(engine).wait(60)
    assert engine.stats.errors == ("at batch 8: no disk is left", "at batch 3: no disk is left")
    assert "  no variant at batch 8: no disk is left" in str(engine.stats)
    assert [record.getMessage() for record in caplog.records] == [
        "specialise: 'open' gets no variant at batch 8: no disk is left"
    ]
    assert engine(rows(5)).shape == (5, 12)


def test_a_saved_engine_keeps_what_was_made_meanwhile(tmp_path: Path) -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=1, verify="off")
    often(engine, 8)
    watched(engine).wait(120)
    loaded = tw.load(engine.save(tmp_path / "meanwhile.twe"))
    assert loaded(rows(8)).tobytes() == engine(rows(8)).tobytes()
    assert (loaded.stats.variants, loaded.stats.hits) == (1, 1)
    assert str(loaded.memory_plan) == str(engine.memory_plan)


def test_a_variant_of_something_else_is_refused() -> None:
    engine = tw.compile(perceptron(), "c", shapes=PERCEPTRON, verify="off")
    with pytest.raises(EngineError) as caught:
        engine.add_variant(Variant((("batch", 3),), engine.parts))
    assert str(caught.value) == (
        "EngineError: engine: a variant at batch 3 is not one of 'open'; expected the same model "
        "at sizes that it may have. [engine-variant]"
    )


@pytest.mark.parametrize("wrong", [0, -1, True, None, "batch"])
def test_what_is_no_number_of_variants_is_refused(wrong: object) -> None:
    with pytest.raises(OptionError) as caught:
        tw.compile(perceptron(), "c", shapes=PERCEPTRON, specialise=wrong, verify="off")  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"OptionError: compile: option specialise={wrong!r} has no meaning; expected the sizes of "
        "variants, or how many to make at most of the sizes that come most often. "
        "[specialise-count]\n"
        '  Hint: specialise=[{"batch": 1}] or specialise=4.'
    )


def test_a_limit_of_memory_and_variants_that_nobody_knows_contradict_each_other() -> None:
    with pytest.raises(OptionError) as caught:
        tw.compile(
            perceptron(), "c", shapes=PERCEPTRON, specialise=2, max_bytes=1 << 30, verify="off"
        )
    assert str(caught.value) == (
        "OptionError: compile: options specialise=2 and max_bytes=1073741824 contradict each "
        "other: what variants take is not known before runs decide which they are. "
        "[specialise-memory]\n"
        "  Hint: specialise=[{...}] says which, and max_bytes holds for them."
    )


def test_a_process_ends_though_a_variant_is_being_built() -> None:
    program = (
        "import numpy as np, tilewright as tw\n"
        "from tests.graph.open_models import perceptron\n"
        "engine = tw.compile(perceptron(), 'c', shapes={'batch': (1, 4, 16)}, specialise=4)\n"
        f"for batch in (8, 3, 5, 7):\n    for _ in range({LEAST + 128}):\n"
        "        engine(np.ones((batch, 24), np.float32))\n"
        "print(engine.stats.runs)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{4 * (LEAST + 128)}\n", "")
