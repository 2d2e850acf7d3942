"""schedule/rules/gpu/block_rows.py: a few rows times weights of few bits; which functions it is
for, what it makes of edges, what its threads read, and that it is right.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.ops.block_matmul import BlockMatMul
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ....driver.kernels import block_matmul
from ...rule_checks import Answered, check
from ..products.test_block_rows import arrays

A100 = Target.parse("cuda:sm_80")
TARGETS = ("cuda:sm_80", "cuda:sm_90a")
EDGES = {  # bits, group, rows, steps, columns, zeros
    "whole vectors": (4, 32, 1, 256, 64, ""),
    "a column too many": (4, 32, 1, 128, 65, ""),
    "columns of a vector and a half": (4, 32, 1, 128, 36, "uint8"),
    "few columns": (4, 16, 1, 96, 5, "uint8"),
    "columns of a few threads": (2, 16, 1, 96, 12, ""),
    "three rows": (4, 32, 3, 192, 50, "uint8"),
    "as many rows as a tile takes": (4, 16, 8, 80, 33, ""),
    "rows of two tiles": (4, 16, 13, 64, 36, "uint8"),
    "rows of two tiles of one size": (8, 16, 16, 64, 20, ""),
    "steps that end within a block": (4, 32, 2, 134, 40, ""),
    "steps that end within a vector": (4, 16, 1, 77, 8, ""),
    "blocks of a word": (8, 4, 2, 28, 21, ""),
    "bytes": (8, 32, 1, 256, 64, "uint8"),
    "bytes with zeros that are no integers": (8, 16, 4, 114, 40, "float32"),
    "two bits with zeros": (2, 64, 3, 320, 35, "float32"),
    "a long block": (8, 512, 1, 509, 40, "uint8"),
}


def example(name: str) -> PrimFunc:
    bits, group, *sizes, zeros = EDGES[name]
    return block_matmul(BlockMatMul(bits, group), *sizes, zeros)


def built(func: PrimFunc, target: str) -> tuple[Kernel, np.ndarray]:
    """The kernel with levels of all bits, and the data of a run."""
    given = arrays(func)
    x = given.pop("X")
    return tw.build(func, target, constants=given), x


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EDGES)
def test_what_the_rule_makes_is_right(name: str) -> None:
    func = example(name)
    assert rule_for(func, A100).name == "grid block rows"
    check(func, A100, rtol=1e-5)


@pytest.mark.sampled(4)
@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", EDGES)
def test_a_kernel_is_that_of_its_definition(name: str, target: str) -> None:
    func, (bits, group, *_, zeros) = example(name), EDGES[name]
    kernel, x = built(func, target)
    given = arrays(func)
    assert kernel.schedule is not None
    assert str(kernel.schedule.func) == str(default_schedule(func, Target.parse(target)).func)
    assert kernel.proof.status == "proved"
    emulated = tw.emulated(kernel, checked=True)
    found = emulated(x)
    op, wide = BlockMatMul(bits, group), {k: v.astype(float) for k, v in given.items()}
    own = (given["Z"],) if zeros else ()
    (y,) = op.reference(x.astype(float), given["W"], wide["S"], *own)
    largest = np.abs(x).astype(float) @ np.ones((x.shape[1], y.shape[1])) * (1 << bits)
    bound = 2.0**-23 * 8 * largest * np.abs(wide["S"]).max()
    assert (np.abs(found - (y + wide["bias"])) <= bound).all()
    assert "nothing is wrong" in str(emulated.code.report)


@pytest.mark.parametrize("seed", range(2))
def test_every_choice_of_a_tuner_is_right(seed: int) -> None:
    check(example("three rows"), A100, Random(seed), rtol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("parts", [4, 5, 10, 20])
def test_any_number_of_threads_shares_the_blocks(parts: int) -> None:
    answered = Answered({"parts of a sum of blocks": parts})
    check(block_matmul(BlockMatMul(4, 8), 2, 8 * 20, 36, "uint8"), A100, answered, rtol=1e-5)
    assert answered.met == {"parts of a sum of blocks"}


@pytest.mark.parametrize(("blocks", "parts"), [(67, 64), (193, 63), (344, 43), (128, 64)])
def test_threads_have_as_many_blocks_each_where_that_is_possible(blocks: int, parts: int) -> None:
    func = block_matmul(BlockMatMul(4, 8), 1, 8 * blocks, 32, "")
    sch = check(func, A100, rtol=1e-5) if blocks < 200 else default_schedule(func, A100)
    assert f"split(block, factors=(None, {parts})" in "\n".join(sch.steps)


@pytest.mark.needs_cxx
@pytest.mark.usefixtures("nvrtc")
def test_weights_are_read_once_in_vectors_by_one_kernel_with_one_barrier() -> None:
    kernel, x = built(block_matmul(BlockMatMul(4, 32), 3, 1024, 128, "uint8"), "cuda:sm_80")
    source = kernel.source
    assert source.count("__global__") == source.count("__syncthreads();") == 1
    assert source.count("(const int4 *)(W") == source.count("(const uchar4 *)(Z") == 1
    assert "(float)((int)" not in source  # no conversion of an integer of 32 bits
    emulated = tw.emulated(kernel, checked=True)
    emulated(x)
    sites = {site.buffer: site for site in emulated.code.report.sites if site.buffer in "WSZ"}
    assert sites["W"].parts == sites["W"].least == 1024 * 128 // 2 // 32
    assert sites["Z"].parts == 32 * 128 // 32
    shared = [s for s in emulated.code.report.sites if s.buffer.endswith("cache")]
    assert shared
    assert all(site.bank_conflict_degree == 1 for site in shared)


def test_a_price_counts_each_byte_of_the_weights_once() -> None:
    packed = block_matmul(BlockMatMul(4, 32), 1, 4096, 4096, "")
    (one,) = rule_for(packed, A100).passes(packed, A100)
    words, scales, rest = 4096 * 4096 // 2, 128 * 4096 * 4, 4096 * 4 * 3
    assert one.moved == words + scales + rest
    assert one.limits(A100).name == "memory"  # type: ignore[arg-type]
    assert one.operations > 4096 * 4096 * 2


@pytest.mark.parametrize(("rows", "tiles"), [(64, 1), (65, 2), (256, 4)])
def test_a_price_of_many_rows_counts_packed_weights_and_unpacks_them_for_each_tile(
    rows: int, tiles: int
) -> None:
    packed = block_matmul(BlockMatMul(4, 32), rows, 4096, 512, "")
    rule = rule_for(packed, A100)
    assert rule.name == "grid products"
    (one,) = rule.passes(packed, A100)
    words, scales, data = 4096 * 512 // 2, 128 * 512 * 4, 4 * (rows * 4096 + rows * 512 + 512)
    assert one.moved == words + scales + data
    multiplied, added, made = 2 * rows * 4096 * 512, rows * 512, 2 * 4096 * 512
    assert one.operations == multiplied + added + tiles * made


def test_functions_of_another_form_go_to_other_rules() -> None:
    def name(bits: int, group: int, rows: int, steps: int, **given: bool) -> str:
        func = block_matmul(BlockMatMul(bits, group), rows, steps, 64, "")
        return rule_for(func, A100, **given).name

    assert name(4, 32, 1, 128) == "grid block rows"
    assert name(4, 32, 17, 128) != "grid block rows"  # the weights become numbers
    assert name(4, 32, 1, 96) == "grid rows"  # too few blocks for threads to share
    assert name(4, 32, 1, 128, strict=True) == "grid rows"  # which sums in order


def test_registers_limit_the_threads_of_a_block() -> None:
    for rows, most in ((1, 512), (4, 512), (8, 256)):
        sch = default_schedule(block_matmul(BlockMatMul(4, 32), rows, 4096, 256, ""), A100)
        bound = [step for step in sch.steps if "threadIdx" in step]
        assert bound
        assert f"split(block, factors=(None, {most // 8})" in "\n".join(sch.steps)
