"""codegen/lower/lower.py on the tracer kernel at small size: what each K block loads and
stores.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.codegen.lower.lower import contraction, lower_parts, lower_to_nest
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import TRUE, Call
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.stmt import Block, For, ForKind, If, Role, Stmt
from tilewright.tir.target.target import Target
from tilewright.tir.verify.verify import Stage, verify
from tilewright.tir.visit import blocks, loads, stores, walk

from ...schedule.programs import gelu_matmul
from ...tiny_program import add, matmul

TARGET = Target.parse("c:avx512")
M, N, K = 9, 29, 24


def small(sch: Schedule) -> None:
    """The tracer's schedule with a tile of 4 x 12 and K blocks of 8."""
    sch.pack("W", 12)
    i, j, k = sch.loops("C")
    i, ii = sch.split(i, (None, 4), tail="partition")
    j, jj, lane = sch.split(j, (None, 3, 4), tail="mask")
    block, k = sch.split(k, (None, 8), tail="partition")
    chunk, step = sch.split(k, (None, 2))
    sch.reorder(j, block, i, chunk, step, ii, jj, lane)
    sch.unroll(ii)
    sch.unroll(jj)
    sch.vectorize(lane)
    sch.parallel(j)
    sch.stage("C", "C", i, "register")
    y, columns = sch.reverse_compute_at("Y", i, at="last")
    vectors, lane = sch.split(columns, (3, 4), tail="mask")
    sch.unroll(y)
    sch.unroll(vectors)
    sch.vectorize(lane)
    sch.prefetch("W_packed", at=block, spread=(i, chunk))


def nest_of(shape: tuple[int, int, int]) -> tuple[Schedule, PrimFunc]:
    sch = Schedule(gelu_matmul(*shape)).apply(small)
    return sch, lower_to_nest(contraction(sch.func, TARGET))


@pytest.fixture(scope="module")
def nest() -> PrimFunc:
    return nest_of((M, N, K))[1]


def panels(nest: PrimFunc) -> list[Stmt]:
    """The body of the loop over panels: one for the full ones, one for the edge."""
    (loop,) = (
        node
        for node in walk(nest.body)
        if isinstance(node, For) and node.kind is ForKind.PARALLEL and node.var.name == "j_0"
    )
    assert isinstance(loop.body, If)
    assert loop.body.orelse is not None
    return [loop.body.then, loop.body.orelse]


def tiles(panel: Stmt) -> list[list[Block]]:
    """The blocks of a panel, cut before each initialisation or copy in: one list for each tile."""
    found: list[list[Block]] = []
    for block in blocks(panel):
        begins = block.role is Role.INIT or block.name == "C_reg_in"
        if begins and (not found or any(b.role is Role.COMPUTE for b in found[-1])):
            found.append([])
        found[-1].append(block)
    return found


def names(tile: list[Block]) -> list[str]:
    return list(dict.fromkeys(block.name for block in tile))


def test_three_k_blocks_load_and_store_what_the_issue_says(nest: PrimFunc) -> None:
    """Y's tile is stored by K blocks 0 and 1, loaded by 1 and 2; block 2 stores GELU's result."""
    for panel in panels(nest):
        found = tiles(panel)
        assert [names(tile) for tile in found] == [
            ["C_init", "C", "C_reg_out"],  # block 0, whole tiles, then the edge of the rows
            ["C_init", "C", "C_reg_out"],
            ["C_reg_in", "C", "C_reg_out"],  # block 1
            ["C_reg_in", "C", "C_reg_out"],
            ["C_reg_in", "C", "Y"],  # block 2
            ["C_reg_in", "C", "Y"],
        ]


def test_the_partial_sums_lie_in_the_output(nest: PrimFunc) -> None:
    assert [buffer.name for buffer in nest.allocations if buffer.scope == "global"] == ["W_packed"]
    for block in nest.blocks:
        if block.name == "C_reg_out":
            assert [store.buffer.name for store in stores(block.body)] == ["Y"]


def test_the_last_block_stores_the_result_of_gelu_alone(nest: PrimFunc) -> None:
    last = [block for block in nest.blocks if block.name == "Y"]
    for block in last:
        (store,) = stores(block.body)
        assert store.buffer.name == "Y"
        assert any(isinstance(node, Call) and node.intrinsic.name == "erf" for node in walk(store))
        assert any(load.buffer.name == "C_reg" for load in loads(store.value))


def test_only_the_edge_of_the_columns_keeps_a_predicate(nest: PrimFunc) -> None:
    whole, edge = panels(nest)
    assert all(block.predicate == TRUE for block in blocks(whole))
    guarded = {block.name for block in blocks(edge) if block.predicate != TRUE}
    assert guarded == {"C_init", "C", "C_reg_in", "C_reg_out", "Y"}


def test_the_next_panel_is_prefetched_while_this_one_is_used(nest: PrimFunc) -> None:
    assert "prefetch(W_packed[j_0, 8, " in str(nest)


@pytest.mark.parametrize("shape", [(M, N, K), (8, 24, 24), (1, 1, 1), (4, 12, 8), (5, 13, 17)])
def test_one_schedule_serves_every_shape(shape: tuple[int, int, int]) -> None:
    sch, lowered = nest_of(shape)
    verify(lowered, Stage.NEST)
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(p.buffer.shape).astype("f4")
        for p in sch.func.parameters
        if p.role != "output"
    ]
    x, w, bias = (array.astype("f8") for array in arrays)
    biased = x @ w + bias
    erf = np.vectorize(math.erf, otypes=[float])
    expected = biased * 0.5 * (1 + erf(biased * 0.5**0.5))
    for func, barriers in ((sch.func, False), (lowered, True)):
        (result,) = interpret(func, *arrays, checked=True, barriers=barriers)
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    contracted = contraction(sch.func, TARGET)
    assert prove(lowered, canonical_form(contracted)).status == "proved"


def test_what_depends_on_constants_alone_becomes_a_function_of_its_own() -> None:
    schedule = Schedule(matmul("mm"))
    schedule.cache_read("C", "B", "B_near")
    parts = lower_parts(lower_to_nest(schedule.func), Target.parse("c:scalar"))
    assert parts.prepare is not None
    assert [p.role for p in parts.prepare.parameters] == ["constant", "output"]
    assert [p.role for p in parts.run.parameters] == ["input", "prepared", "output"]


def test_a_function_without_constants_stays_whole() -> None:
    parts = lower_parts(lower_to_nest(add()), Target.parse("c:scalar"))
    assert parts.prepare is None
    assert [p.role for p in parts.run.parameters] == ["input", "input", "output"]
