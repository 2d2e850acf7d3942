"""The LOWERED function of every golden kernel gives the same bits in the interpreter, by gcc, by
clang, and on every instruction set that has its vectors.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.isa.isa import isa as tables_of
from tilewright.codegen.isa.selection import is_lane_count
from tilewright.driver.fuzz.case import named
from tilewright.driver.fuzz.compiled import run_batch
from tilewright.driver.fuzz.examine import LoweredCase, differing
from tilewright.runtime.machine.host import host
from tilewright.schedule.rules.default import RULES, rule_for
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Compare, Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.stmt import Store
from tilewright.tir.target.target import Target, covers
from tilewright.tir.visit import walk

from ..codegen.c.emulated import need_emulator, run_emulated
from .golden_kernels import GOLDEN, Arrays

pytestmark = pytest.mark.sampled(5)

COMPILERS = ("gcc", "clang")
FUSED = ("avx2", "avx512", "neon")
ANYWHERE = [name for name, kernel in GOLDEN.items() if not kernel.feature]
PARTS = 3  # of the kernels that are compiled together, so that two workers share them
slow = pytest.mark.slow


@cache
def lowered(name: str, isa: str) -> LoweredCase:
    """A kernel lowered for an instruction set, and its outputs by the interpreter."""
    target = GOLDEN[name].target(isa)
    parts, given = GOLDEN[name].lowered(target), GOLDEN[name].arrays()
    values = dict(given)
    if parts.prepare is not None:
        values |= _outputs(parts.prepare, values)
    return LoweredCase(target, parts, given, _outputs(parts.run, values))


def _outputs(func: PrimFunc, values: Arrays) -> Arrays:
    results = interpret(func, *named(values, func))
    return {buffer.name: array for buffer, array in zip(func.outputs, results, strict=True)}


def texts(case: LoweredCase) -> str:
    """The LOWERED functions of a case."""
    return "\n".join(str(f) for f in (case.parts.prepare, case.parts.run) if f is not None)


def need(target: Target, compiler: str, patch: pytest.MonkeyPatch) -> None:
    """Code is compiled by `compiler` from now on; skips where it cannot run here."""
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here: its code is compared where it is installed")
    if not covers(host().instructions, target.instructions):
        pytest.skip(f"this machine has no {target.instructions}")
    patch.setenv("CC", compiler)


def test_the_kernels_are_of_every_rule() -> None:
    made = {rule_for(kernel.make()).name for kernel in GOLDEN.values() if kernel.steps is None}
    assert made == {rule.name for rule in RULES}


@pytest.mark.parametrize("name", GOLDEN)
def test_the_lowered_function_is_the_golden_one(
    name: str, golden: Callable[[str, str], None]
) -> None:
    golden(f"kernels/{name}.txt", texts(lowered(name, "avx512")))


def failures(cases: Mapping[str, LoweredCase]) -> str:
    """What is wrong with the compiled code of cases for one target, which are compiled together."""
    found = zip(cases, run_batch(list(cases.values())), strict=True)
    return "\n".join(f"{name}: {f}\n{texts(cases[name])}" for name, f in found if f is not None)


@pytest.mark.parametrize(
    ("isa", "compiler"),
    [
        *((isa, "gcc") for isa in ("scalar", "avx2", "avx512")),
        *(pytest.param(isa, "clang", marks=pytest.mark.slow) for isa in ("scalar", "avx2")),
        ("avx512", "clang"),
    ],
)
@pytest.mark.parametrize("part", range(PARTS))
def test_compiled_code_has_the_bits_of_the_lowered_function(
    isa: str, part: int, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(Target.parse(f"c:{isa}"), compiler, monkeypatch)
    assert not failures({name: lowered(name, isa) for name in ANYWHERE[part::PARTS]})


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("name", "isa"),
    [
        *((name, "avx512") for name in GOLDEN if name not in ANYWHERE),
        ("dots_of_bytes_in_eight_lanes", "avx2"),
        ("dots_of_int16_in_eight_lanes", "avx2"),
    ],
)
def test_compiled_code_of_a_feature_has_the_bits_of_the_lowered_function(
    name: str, isa: str, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(GOLDEN[name].target(isa), compiler, monkeypatch)
    assert not failures({name: lowered(name, isa)})


def fits(case: LoweredCase, target: Target) -> bool:
    """Whether the target has every vector type of a case's values; indices are addresses, and lanes
    are counted without vectors of numbers.
    """
    funcs = [f for f in (case.parts.prepare, case.parts.run) if f is not None]
    nodes = [node for f in funcs for node in walk(f.body)]
    indices = {item for node in nodes if isinstance(node, Load | Store) for item in node.indices}
    counts = {
        item
        for node in nodes
        if isinstance(node, Compare) and is_lane_count(node)
        for item in node.children()
    }
    values = (node for node in nodes if isinstance(node, Expr) and node not in indices | counts)
    types = {node.dtype for node in values}
    return all(t.lanes == 1 or t.is_bool or t in tables_of(target).types for t in types)


@slow
@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("isa", "other"),
    [
        ("scalar", "avx2"),
        ("scalar", "avx512"),
        ("avx2", "avx512"),
        ("neon", "avx2"),
        ("neon", "avx512"),
    ],
)
def test_every_instruction_set_with_the_vectors_gives_the_same_bits(
    isa: str, other: str, compiler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Target.parse(f"c:{other}")
    need(target, compiler, monkeypatch)
    cases = {name: replace(lowered(name, isa), target=target) for name in ANYWHERE}
    cases = {name: case for name, case in cases.items() if fits(case, target)}
    assert len(cases) > 0.8 * len(ANYWHERE)
    assert not failures(cases)


@slow
@pytest.mark.parametrize("isa", ["neon", "scalar"])
@pytest.mark.parametrize("name", ANYWHERE)
def test_neon_gives_the_same_bits(name: str, isa: str, tmp_path: Path) -> None:
    need_emulator()
    case = lowered(name, isa)
    got = run_emulated(case.parts, Target.parse("c:neon"), case.given, tmp_path)
    for output, expected in case.outputs.items():
        assert not differing(got[output], expected), f"{output}\n{texts(case)}"


BY_HAND = [name for name in ANYWHERE if GOLDEN[name].steps is not None]


@slow
@pytest.mark.parametrize("name", BY_HAND)
def test_one_schedule_gives_the_same_bits_whatever_the_vectors(name: str) -> None:
    first, *others = (lowered(name, isa).outputs for isa in FUSED)
    for other in others:
        for output, expected in first.items():
            assert not differing(other[output], expected), output


def test_bits_tell_zeros_apart_and_take_any_no_number() -> None:
    a = np.array([0.0, 1.0, np.nan, np.inf], np.float32)
    b = np.array([-0.0, 1.0, -np.nan, np.inf], np.float32)
    assert differing(a, b) == 1
    assert differing(a.view(np.int32), b.view(np.int32)) == 2
