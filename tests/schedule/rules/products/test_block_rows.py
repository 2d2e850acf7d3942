"""schedule/rules/products/block_rows.py: a few rows times weights of few bits; which functions it
is for, what it makes of edges, and that it is right.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tests.isas import HERE
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ....driver.kernels import block_matmul
from ...programs import assert_meaning_kept, assert_replays

pytestmark = pytest.mark.sampled(5)

TARGETS = ("c:avx512", "c:avx2", "c:neon", "c:scalar")
EDGES = {  # bits, group, rows, steps, columns, zeros
    "whole vectors": (4, 32, 1, 64, 128, ""),
    "a column too many": (4, 32, 1, 64, 65, ""),
    "few columns": (4, 16, 1, 48, 5, "uint8"),
    "three rows": (4, 32, 3, 64, 50, "uint8"),
    "as many rows as a tile takes": (4, 32, 8, 64, 33, ""),
    "rows of two tiles": (4, 32, 13, 64, 33, "uint8"),
    "rows of two tiles of one size": (8, 16, 16, 48, 20, ""),
    "steps that end within a block": (4, 32, 2, 70, 40, ""),
    "one block": (4, 32, 1, 19, 40, "uint8"),
    "blocks of a word": (8, 4, 2, 12, 21, ""),
    "bytes": (8, 32, 1, 64, 64, "uint8"),
    "bytes with zeros that are no integers": (8, 16, 4, 50, 40, "float32"),
    "two bits": (2, 16, 1, 48, 64, ""),
    "two bits with zeros": (2, 64, 3, 128, 35, "float32"),
    "a long block": (8, 512, 1, 509, 40, "uint8"),
}


def example(name: str) -> PrimFunc:
    bits, group, *sizes, zeros = EDGES[name]
    return block_matmul(BlockMatMul(bits, group), *sizes, zeros)


def arrays(func: PrimFunc) -> dict[str, np.ndarray]:
    """Levels of all bits, scales of any sign."""
    rng = np.random.default_rng(1)
    made: dict[str, np.ndarray] = {}
    for one in (p for p in func.parameters if p.role != "output"):
        kind, shape = one.buffer.type.numpy, one.buffer.shape
        if kind.kind == "f":
            made[one.name] = rng.standard_normal(shape).astype(kind)
        else:
            low, high = (0, 16) if kind == np.uint8 else (-(1 << 31), 1 << 31)
            made[one.name] = rng.integers(low, high, shape).astype(kind)
    return made


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EDGES)
def test_what_the_rule_makes_is_right(name: str, target: str) -> None:
    func = example(name)
    assert rule_for(func).name == "block rows"
    sch = default_schedule(func, Target.parse(target))
    nest = assert_meaning_kept(sch)
    verdict = prove(nest, canonical_form(sch.func))
    assert verdict.status == "proved", str(verdict)
    assert_replays(sch)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("name", EDGES)
def test_a_kernel_is_that_of_its_definition(name: str, target: str) -> None:
    func = example(name)
    given = arrays(func)
    x = given.pop("X")
    found = tw.build(func, target, constants=given)(x)
    bits, group, *_, zeros = EDGES[name]
    op, wide = BlockMatMul(bits, group), {k: v.astype(float) for k, v in given.items()}
    own = (given["Z"],) if zeros else ()
    (y,) = op.reference(x.astype(float), given["W"], wide["S"], *own)
    largest = np.abs(x).astype(float) @ np.ones((x.shape[1], y.shape[1])) * (1 << bits)
    bound = 2.0**-23 * 8 * largest * np.abs(wide["S"]).max()
    assert (np.abs(found - (y + wide["bias"])) <= bound).all()


@pytest.mark.parametrize("target", TARGETS[:2])
@pytest.mark.parametrize("seed", range(4))
def test_every_choice_of_a_tuner_is_right(seed: int, target: str) -> None:
    sch = default_schedule(example("three rows"), Target.parse(target), Random(seed))
    nest = assert_meaning_kept(sch)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    assert_replays(sch)


@pytest.mark.needs_cc
@pytest.mark.parametrize("zeros", ["", "uint8"])
def test_a_level_of_four_bits_is_read_from_a_register(zeros: str) -> None:
    func = block_matmul(BlockMatMul(4, 32), 1, 64, 64, zeros)
    given = {name: array for name, array in arrays(func).items() if name != "X"}
    source = tw.build(func, "c:avx512", constants=given, verify="off").source
    body = source[source.index("word < 4") :]
    assert ("cvtepi32_ps(" in body) == bool(zeros)
    assert "cvtepi32_ps(_mm512_and_si512(" not in body
    assert body.count("_mm512_permutexvar_ps(") == body.count("_mm512_maskz_permutexvar_epi16(")
    shifts = re.findall(r"srai_epi32\(\w+, (\d+)\)", body)
    assert set(shifts) <= {"0", "4", "8", "12"}


def test_levels_scales_and_zeros_are_packed_in_panels_of_a_tile() -> None:
    func = block_matmul(BlockMatMul(4, 32), 1, 64, 1024, "uint8")
    sch = default_schedule(func, Target.parse("c:avx512"))
    layouts = [step for step in sch.steps if "transform_layout" in step]
    assert len(layouts) == 3
    assert all("(i1 // 64, i0, i1 % 64)" in step for step in layouts)
    asked = [step for step in sch.steps if "prefetch(" in step]
    assert len(asked) == 2 * 3
    assert len({step.split("distance=")[1].split(",")[0] for step in asked}) == 2


def test_functions_of_another_form_go_to_other_rules() -> None:
    many = block_matmul(BlockMatMul(4, 32), 17, 64, 64, "")
    assert rule_for(many).name != "block rows"
    x = te.placeholder((2, 4, 8), "float32", name="X")
    s = te.placeholder((4, 5), "float32", name="S", constant=True)
    k, b = te.reduce_axis(8, name="k"), te.reduce_axis(4, name="b")
    plain = te.compute((2, 4, 5), lambda i, b, n: te.sum(x[i, b, k] * 2.0, axis=k), name="P")
    y = te.compute((2, 5), lambda i, n: te.sum(plain[i, b, n] * s[b, n], axis=b), name="Y")
    assert rule_for(te.func(x, s, y, name="two_sums")).name == "block rows"
    kept = te.func(x, s, plain, y, name="both_are_results")
    assert rule_for(kept).name != "block rows"
    twice = te.compute((2, 4, 5), lambda i, b, n: plain[i, b, n] * 2.0, name="Z")
    assert rule_for(te.func(x, s, twice, y, name="read_twice")).name != "block rows"
    given = te.placeholder((4, 5), "float32", name="S")
    y = te.compute((2, 5), lambda i, n: te.sum(plain[i, b, n] * given[b, n], axis=b), name="Y")
    assert rule_for(te.func(x, given, y, name="scales_of_a_call")).name != "block rows"
