"""tutorials/examples: each program under each of its schedules: text, values in C and in the
interpreter, proof, replay.
"""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.tir.interpreter import interpret

FOLDER = Path(__file__).resolve().parents[2] / "tutorials" / "examples"
EXAMPLES = {path.stem: runpy.run_path(str(path)) for path in sorted(FOLDER.glob("*.py"))}
CASES = [(name, how) for name, example in EXAMPLES.items() for how in example["SCHEDULES"]]


def arrays(func: tw.PrimFunc) -> dict[str, np.ndarray]:
    """Positive numbers for every parameter that is not an output."""
    rng = np.random.default_rng(0)
    return {
        p.name: rng.random(p.buffer.shape, dtype=np.float32) + np.float32(0.5)
        for p in func.parameters
        if p.role != "output"
    }


def scheduled(name: str, how: str) -> tw.Schedule:
    example = EXAMPLES[name]
    return tw.Schedule(example["program"](*example["SMALL"])).apply(example["SCHEDULES"][how])


@pytest.mark.parametrize(("name", "how"), CASES)
def test_an_example_is_proved_and_means_what_numpy_computes(name: str, how: str) -> None:
    sch = scheduled(name, how)
    verdict = tw.prove(sch, "c:avx512")
    assert verdict.status == "proved", str(verdict)
    values = arrays(sch.original)
    (result,) = interpret(sch.func, *values.values(), checked=True)
    np.testing.assert_allclose(result, EXAMPLES[name]["reference"](*values.values()), rtol=1e-4)


@pytest.mark.parametrize(("name", "how"), CASES)
def test_the_trace_of_an_example_replays(name: str, how: str) -> None:
    sch = scheduled(name, how)
    trace = tw.Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert str(tw.Schedule.replay(sch.original, trace)) == str(sch)


@pytest.mark.needs_cc
@pytest.mark.parametrize(("name", "how"), CASES)
def test_an_example_computes_in_c_what_numpy_computes(name: str, how: str) -> None:
    sch = scheduled(name, how)
    values = arrays(sch.original)
    constants = {p.name for p in sch.original.parameters if p.role == "constant"}
    kernel = tw.build(sch, constants={n: v for n, v in values.items() if n in constants})
    result = kernel(*(v for n, v in values.items() if n not in constants))
    np.testing.assert_allclose(result, EXAMPLES[name]["reference"](*values.values()), rtol=1e-4)
