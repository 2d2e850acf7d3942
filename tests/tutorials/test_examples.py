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
from tilewright.runtime.machine.host import host
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.stmt import Parameter
from tilewright.tir.target.target import covers

pytestmark = pytest.mark.sampled(3)

FOLDER = Path(__file__).resolve().parents[2] / "tutorials" / "examples"
EXAMPLES = {path.stem: runpy.run_path(str(path)) for path in sorted(FOLDER.glob("*.py"))}
CASES = [(name, how) for name, example in EXAMPLES.items() for how in example["SCHEDULES"]]


def arrays(func: tw.PrimFunc) -> dict[str, np.ndarray]:
    """Positive numbers, or any integers, for every parameter that is not an output."""
    rng = np.random.default_rng(0)
    return {p.name: array(rng, p) for p in func.parameters if p.role != "output"}


def array(rng: np.random.Generator, parameter: Parameter) -> np.ndarray:
    kind, shape = parameter.dtype.numpy, parameter.buffer.shape
    if np.issubdtype(kind, np.integer):
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    return (rng.random(shape, dtype=np.float32) + np.float32(0.5)).astype(kind)


def target(name: str) -> str:
    return EXAMPLES[name].get("TARGET", "c:avx512")


def scheduled(name: str, how: str) -> tw.Schedule:
    example = EXAMPLES[name]
    return tw.Schedule(example["program"](*example["SMALL"])).apply(example["SCHEDULES"][how])


@pytest.mark.parametrize(("name", "how"), CASES)
def test_an_example_is_proved_and_means_what_numpy_computes(name: str, how: str) -> None:
    sch = scheduled(name, how)
    verdict = tw.prove(sch, target(name))
    assert verdict.status == "proved", str(verdict)
    values = arrays(sch.original)
    (result,) = interpret(sch.func, *values.values(), checked=True)
    np.testing.assert_allclose(result, EXAMPLES[name]["reference"](*values.values()), rtol=1e-4)


@pytest.mark.parametrize(("name", "how"), CASES)
def test_the_trace_of_an_example_replays(name: str, how: str) -> None:
    sch = scheduled(name, how)
    trace = tw.Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    assert str(tw.Schedule.replay(sch.original, trace)) == str(sch)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize(("name", "how"), CASES)
def test_an_example_computes_in_c_what_numpy_computes(name: str, how: str) -> None:
    if "TARGET" in EXAMPLES[name] and not covers(host().instructions, target(name)[2:]):
        pytest.skip(f"needs {target(name)}")
    sch = scheduled(name, how)
    values = arrays(sch.original)
    constants = {p.name for p in sch.original.parameters if p.role == "constant"}
    kernel = tw.build(sch, constants={n: v for n, v in values.items() if n in constants})
    result = kernel(*(v for n, v in values.items() if n not in constants))
    np.testing.assert_allclose(result, EXAMPLES[name]["reference"](*values.values()), rtol=1e-4)
