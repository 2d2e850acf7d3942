"""schedule/rules/products/block_panels.py: many rows times weights of few bits; which functions it
is for, what it makes of edges, and that it is right.
"""

from __future__ import annotations

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
from .test_block_rows import arrays

pytestmark = pytest.mark.sampled(5)

TARGETS = ("c:avx512", "c:avx2", "c:neon", "c:scalar")
EDGES = {  # bits, group, rows, steps, columns, zeros
    "whole vectors": (4, 32, 20, 64, 192, ""),
    "a column too many": (4, 32, 17, 64, 97, ""),
    "a few rows more than a tile has": (4, 32, 29, 64, 150, "uint8"),
    "steps that end within a block": (4, 32, 17, 70, 100, "float32"),
    "bytes": (8, 16, 18, 48, 120, "uint8"),
    "one panel": (4, 32, 18, 64, 37, "uint8"),
    "two bits": (2, 32, 20, 64, 33, ""),
}


def example(name: str) -> PrimFunc:
    bits, group, *sizes, zeros = EDGES[name]
    return block_matmul(BlockMatMul(bits, group), *sizes, zeros)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EDGES)
def test_what_the_rule_makes_is_right(name: str, target: str) -> None:
    func = example(name)
    assert rule_for(func).name == "block panels"
    sch = default_schedule(func, Target.parse(target))
    nest = assert_meaning_kept(sch)
    verdict = prove(nest, canonical_form(sch.func))
    assert verdict.status == "proved", str(verdict)
    assert_replays(sch)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize(
    "sizes", [*EDGES.values(), (4, 32, 33, 1100, 100, ""), (8, 32, 128, 1024, 80, "uint8")]
)
def test_a_kernel_is_that_of_its_definition(
    sizes: tuple[int, int, int, int, int, str], target: str
) -> None:
    bits, group, rows, steps, columns, zeros = sizes
    op = BlockMatMul(bits, group)
    given = arrays(block_matmul(op, rows, steps, columns, zeros))
    x = given.pop("X")
    func = block_matmul(op, rows, steps, columns, zeros)
    found = tw.build(func, target, constants=given)(x)
    wide = {k: v.astype(float) for k, v in given.items()}
    own = (given["Z"],) if zeros else ()
    (y,) = op.reference(x.astype(float), given["W"], wide["S"], *own)
    largest = np.abs(x).astype(float) @ np.ones((x.shape[1], columns)) * (1 << bits)
    bound = 2.0**-23 * 8 * largest * np.abs(wide["S"]).max()
    assert (np.abs(found - (y + wide["bias"])) <= bound).all()


@pytest.mark.parametrize("seed", range(4))
def test_every_choice_of_a_tuner_is_right(seed: int) -> None:
    func = example("a few rows more than a tile has")
    sch = default_schedule(func, Target.parse("c:avx512"), Random(seed))
    nest = assert_meaning_kept(sch)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    assert_replays(sch)


@pytest.mark.needs_cc
def test_a_thread_holds_a_panel_of_numbers_and_no_more() -> None:
    """The weights as float32 would take 4 * 2048 * 4090 bytes."""
    func = block_matmul(BlockMatMul(4, 32), 20, 2048, 4090, "")
    given = {name: array for name, array in arrays(func).items() if name != "X"}
    kernel = tw.build(func, "c:avx2", constants=given, verify="off")
    assert kernel.code.scratch_bytes(1) <= 4 * 512 * 64


def product(weights: str, *, constant: bool = True) -> PrimFunc:
    """y = x (w * 2), where w is of that type."""
    x = te.placeholder((16, 32), "float32", name="X")
    w = te.placeholder((32, 40), weights, name="W", constant=constant)
    k = te.reduce_axis(32, name="k")
    made = te.compute((32, 40), lambda i, j: te.cast(w[i, j], "float32") * 2.0, name="M")
    y = te.compute((16, 40), lambda i, j: te.sum(x[i, k] * made[k, j], axis=k), name="Y")
    return te.func(x, w, y, name="product")


def test_only_constants_that_are_much_smaller_than_the_weights_stay_as_they_are() -> None:
    assert rule_for(product("int8")).name == "block panels"
    assert rule_for(product("float32")).name == "contraction"
    assert rule_for(product("int8", constant=False)).name == "contraction"
