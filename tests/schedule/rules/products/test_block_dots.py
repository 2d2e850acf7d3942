"""schedule/rules/products/block_dots.py: data of bytes times weights of few bits; which functions
it is for, what it makes of edges, and that it is right.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.isas import HERE
from tilewright.graph.ops.rounded_blocks import RoundedBlockMatMul
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ....driver.kernels import rounded_block_matmul
from ...programs import assert_meaning_kept, assert_replays

pytestmark = pytest.mark.sampled(5)

TARGETS = {"c:avx512+vnni": "int8", "c:avx2": "int16"}
EDGES = {  # bits, group, rows, blocks, columns, zeros
    "whole vectors": (4, 32, 1, 2, 128, False),
    "a column too many": (4, 32, 1, 2, 65, False),
    "few columns": (4, 16, 1, 3, 5, True),
    "three rows": (4, 32, 3, 2, 50, True),
    "as many rows as a tile takes": (4, 32, 8, 2, 33, False),
    "rows of two tiles": (4, 32, 13, 2, 33, True),
    "many rows": (4, 32, 70, 2, 20, False),
    "one block": (4, 32, 1, 1, 40, True),
    "blocks of a word": (8, 4, 2, 3, 21, False),
    "bytes": (8, 32, 1, 2, 64, True),
    "bytes of four rows": (8, 16, 4, 4, 40, True),
    "two bits": (2, 16, 1, 3, 64, False),
    "two bits with zeros": (2, 64, 3, 2, 35, True),
}


def example(name: str, kind: str) -> PrimFunc:
    bits, group, *sizes, zeros = EDGES[name]
    return rounded_block_matmul(RoundedBlockMatMul(bits, group), *sizes, kind, zeros=zeros)


def arrays(func: PrimFunc, group: int, *, extreme: bool = False) -> dict[str, np.ndarray]:
    """Levels of all bits, or all the largest ones; scales of any sign."""
    rng = np.random.default_rng(1)
    shapes = {p.name: (p.buffer.shape, p.buffer.type.numpy) for p in func.parameters}
    made = {
        name: rng.standard_normal(shape).astype(kind)
        for name, (shape, kind) in shapes.items()
        if kind == np.float32 and name != "Y"
    }
    (shape, kind), (words, _) = shapes["X"], shapes["W"]
    made["X"] = rng.integers(-127, 128, shape).astype(kind)
    made["W"] = rng.integers(-(1 << 31), 1 << 31, words).astype(np.int32)
    if extreme:
        made["X"][:], made["W"][:] = -127, -1
    sums = made["X"].reshape(shape[0], -1, group).sum(axis=-1)
    return made | {"XT": sums.astype(np.float32)}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EDGES)
def test_what_the_rule_makes_is_right(name: str, target: str) -> None:
    func = example(name, TARGETS[target])
    assert rule_for(func, Target.parse(target)).name == "block dots"
    sch = default_schedule(func, Target.parse(target))
    nest = assert_meaning_kept(sch)
    verdict = prove(nest, canonical_form(sch.func))
    assert verdict.status == "proved", str(verdict)
    assert_replays(sch)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.sampled(9)
@pytest.mark.parametrize("extreme", [False, True])
@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("target", HERE)
@pytest.mark.parametrize("name", EDGES)
def test_a_kernel_is_that_of_its_definition(
    name: str, target: str, kind: str, extreme: bool
) -> None:
    func = example(name, kind)
    bits, group, *_, zeros = EDGES[name]
    given = arrays(func, group, extreme=extreme)
    constants = {k: given.pop(k) for k in ("W", "S", *(("Z",) if zeros else ()), "bias")}
    found = tw.build(func, target, constants=constants)(**given)
    op = RoundedBlockMatMul(bits, group)
    order = [given["X"], given["XS"], given["XT"], *list(constants.values())[:-1]]
    wide = [a.astype(float) if a.dtype == np.float32 else a for a in order]
    (y,) = op.reference(*wide)
    sizes = [np.abs(a) if a.dtype == float else a for a in wide]
    (most,) = op.reference(np.full_like(given["X"], 127), *sizes[1:])
    bound = 2.0**-23 * 16 * np.abs(most).max() + 2.0**-23 * np.abs(y).max()
    assert (np.abs(found - (y + constants["bias"])) <= bound).all()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_every_choice_of_a_tuner_is_right(seed: int, target: str) -> None:
    func = example("three rows", TARGETS[target])
    sch = default_schedule(func, Target.parse(target), Random(seed))
    nest = assert_meaning_kept(sch)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    assert_replays(sch)


@pytest.mark.needs_cc
def test_a_word_becomes_operands_by_a_shift_and_a_mask() -> None:
    func = rounded_block_matmul(RoundedBlockMatMul(4, 32), 4, 2, 64, "int8", zeros=False)
    given = arrays(func, 32)
    constants = {name: given[name] for name in ("W", "S", "bias")}
    source = tw.build(func, "c:avx512+vnni", constants=constants, verify="off").source
    body = source[source.index("dpbusd") - 4000 :]
    assert "_mm512_dpbusd_epi32(" in body
    assert "_mm512_set1_epi32(252645135)" in body
    assert "_mm512_srai_epi32(" in body
    assert "cvtepi8_epi32" not in body


def test_levels_scales_and_zeros_are_packed_in_panels_of_a_tile() -> None:
    func = rounded_block_matmul(RoundedBlockMatMul(4, 32), 1, 2, 1024, "int8", zeros=True)
    sch = default_schedule(func, Target.parse("c:avx512+vnni"))
    layouts = [step for step in sch.steps if "transform_layout" in step]
    assert len(layouts) == 3
    assert all("(i1 // 64, i0, i1 % 64)" in step for step in layouts)
    assert sum("prefetch(" in step for step in sch.steps) == 2 * 3


def test_targets_and_functions_without_it_go_to_other_rules() -> None:
    func = example("three rows", "int8")
    assert rule_for(func).name == "block dots"
    for target in ("c:avx512", "c:avx2", "c:neon", "c:scalar"):
        assert rule_for(func, Target.parse(target)).name != "block dots"
    pairs = example("three rows", "int16")
    assert rule_for(pairs, Target.parse("c:avx2")).name == "block dots"
    assert rule_for(by_hand()).name == "block dots"
    assert rule_for(by_hand(constant=False)).name != "block dots"
    assert rule_for(by_hand(step=2)).name != "block dots"
    x = te.placeholder((2, 4, 8), "int8", name="X")
    w = te.placeholder((4, 8, 5), "int32", name="W", constant=True)
    s = te.placeholder((4, 5), "float32", name="S", constant=True)
    k, b = te.reduce_axis(8, name="k"), te.reduce_axis(4, name="b")
    plain = te.compute(
        (2, 4, 5),
        lambda i, b, n: te.sum(te.cast(x[i, b, k], "int32") * (w[b, k, n] & 15), axis=k),
        name="P",
    )
    y = te.compute(
        (2, 5), lambda i, n: te.sum(te.cast(plain[i, b, n], "float32") * s[b, n], axis=b), name="Y"
    )
    assert rule_for(te.func(x, w, s, y, name="no_words")).name != "block dots"


def by_hand(*, step: int = 1, constant: bool = True) -> PrimFunc:
    """Blocks of two words of bytes, whose data lie `step` apart."""
    x = te.placeholder((2, 32 * step), "int8", name="X")
    w = te.placeholder((8, 5), "int32", name="W", constant=constant)
    s = te.placeholder((4, 5), "float32", name="S", constant=True)
    word, part, point = (te.reduce_axis(size, name=f"k{size}") for size in (2, 1, 4))
    b = te.reduce_axis(4, name="b")

    def partial(*at: Expr) -> Expr:
        i, block, n = at
        number = (w[block * 2 + word, n] >> te.cast(point * 8 + part, "int32")) & 255
        data = x[i, ((block * 2 + word + part) * 4 + point) * step]
        return te.sum(te.cast(data, "int32") * number, axis=(word, part, point))

    sums = te.compute((2, 4, 5), partial, name="P")
    y = te.compute(
        (2, 5), lambda i, n: te.sum(te.cast(sums[i, b, n], "float32") * s[b, n], axis=b), name="Y"
    )
    return te.func(x, w, s, y, name="by_hand")
