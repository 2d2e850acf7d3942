"""driver/fuzz/case.py: cases are drawn from seeds alone, written as scripts, and read back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from tilewright.driver.fuzz.case import RULED, Case, arrays, draw, rounds, size_choices
from tilewright.driver.fuzz.steps import Tally
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.visit import stores


def case(seed: int) -> Case:
    return draw(seed, Tally()).case


def test_a_seed_always_draws_the_same_case() -> None:
    for seed in range(20):
        assert case(seed).to_json() == case(seed).to_json()


def test_every_sixth_case_begins_with_the_steps_of_a_rule() -> None:
    for seed in range(2 * RULED):
        drawn = draw(seed, Tally(), depth=0)
        assert drawn.failed is None
        steps = drawn.case.trace.steps
        if seed % RULED == RULED - 1:
            assert len(steps) > 1
        else:
            assert {step.primitive for step in steps} <= {"compute_at", "rolling_buffer"}


def test_an_open_function_runs_at_random_sizes_beside_the_ends() -> None:
    opened = [one for one in (case(seed).function for seed in range(60)) if one.dims]
    assert len(opened) > 6
    drawn = [size_choices(one) for one in opened]
    for one, (largest, *others) in zip(opened, drawn, strict=True):
        assert largest == {dim: dim.high for dim in one.dims}
        assert {dim: dim.low for dim in one.dims} in (largest, *others)
        assert all(dim.low <= sizes[dim] <= dim.high for sizes in others for dim in one.dims)
        assert size_choices(one) == [largest, *others]
    assert max(map(len, drawn)) == 5
    closed = next(one for one in (case(seed).function for seed in range(60)) if not one.dims)
    assert size_choices(closed) == [{}]


def test_functions_are_of_many_kinds() -> None:
    functions = [case(seed).function for seed in range(100)]
    for function in functions:
        verify(function, Stage.TENSOR)
    text = "\n".join(map(str, functions))
    wanted = (
        "select(",
        "reduce(",
        "ordered(",
        "check(",
        "max(min(",
        "//",
        "%",
        "cast(",
        "exp(",
        "min(",
        " and ",
        "constant(",
    )
    assert not [part for part in (*wanted, "int8", "float64", "max_any(") if part not in text]
    assert any(len(stores(block.body)) > 1 for f in functions for block in f.blocks)
    assert {len(function.blocks) for function in functions} >= {1, 2, 3, 4, 5}
    assert any(len(function.outputs) > 1 for function in functions)


def test_a_script_reads_back_as_the_same_case(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    for seed in range(10):
        held = case(seed)
        path.write_text(held.script("A case.", 'It said """so"""\\.'))
        read = Case.read(path)
        assert read.to_json() == held.to_json()
        assert workload_key(read.function) == workload_key(held.function)
        assert str(read.schedule()) == str(held.schedule())


def test_a_script_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "case.py"
    path.write_text(case(3).script("A case.", "It holds."))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "every check holds\n"


def test_arrays_of_an_exact_function_are_whole_numbers() -> None:
    functions = [case(seed).function for seed in range(20)]
    for function in functions:
        if not rounds(function):
            assert all(np.all(a == np.floor(a)) for a in arrays(function).values())
    assert 0 < sum(map(rounds, functions)) < len(functions)
