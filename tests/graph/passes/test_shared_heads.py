"""SharedHeads: what it reads once, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph
from tilewright.graph.ops.attention import Attention, Heads
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.repetition import Expand
from tilewright.graph.passes.dead_code import DeadCode
from tilewright.graph.passes.pipeline import GraphPass
from tilewright.graph.passes.shared_heads import SharedHeads
from tilewright.graph.types import TensorType

Apply = Callable[[GraphPass, Graph], Graph]
Lines = Callable[[Graph], list[str]]
BATCH, OWN, TIMES, PLACES, DEPTH = 2, 3, 4, 5, 8
HEADS = OWN * TIMES
OUTER = Heads(outer=True)


def net(
    rows: int,
    *,
    mask: tuple[int, ...] = (),
    query: Heads = OUTER,
    outer: bool = True,
    copied: tuple[int, int] = (TIMES, TIMES),
) -> Graph:
    """An attention of keys and values that are there several times."""
    builder = GraphBuilder("net")
    shape = (BATCH, HEADS, rows, DEPTH) if query.outer else (BATCH, rows, HEADS, DEPTH)
    q = builder.input("q", TensorType("float32", shape))
    operands = []
    for name, times in zip("kv", copied, strict=True):
        own = HEADS // times
        one = builder.input(name, TensorType("float32", (BATCH, own, 1, PLACES, DEPTH)))
        many = builder.add(Expand((BATCH, own, times, PLACES, DEPTH)), one)
        operands.append(builder.add(Reshape((BATCH, HEADS, PLACES, DEPTH)), many))
    masks = [builder.input("mask", TensorType("float32", mask))] if mask else []
    op = Attention(HEADS, 0.5, query, OUTER, OUTER, outer=outer)
    builder.add(op, q, *operands, *masks, output="y")
    return builder.finish(("y",))


@pytest.mark.parametrize("rows", [1, 7])
def test_heads_that_share_keys_and_values_are_rows_of_one(
    apply: Apply, lines: Lines, rows: int
) -> None:
    made = lines(DeadCode()(apply(SharedHeads(), net(rows))))
    assert not any("Expand" in line for line in made)
    (attention,) = (line for line in made if "Attention" in line)
    assert f"Attention[heads={OWN}, " in attention
    shape = f"Reshape[shape=({BATCH}, {OWN}, {TIMES * rows}, {DEPTH})]"
    assert [line for line in made if line.endswith("(q)")] == [f"reshape_2 = {shape}(q)"]


def test_one_row_may_stand_in_front_of_its_heads_and_behind_a_mask(apply: Apply) -> None:
    for mask in ((PLACES,), (1, PLACES), (BATCH, 1, 1, PLACES)):
        graph = net(1, mask=mask, query=Heads(), outer=False)
        assert apply(SharedHeads(), graph) is not graph


@pytest.mark.parametrize(
    "graph",
    [
        net(7, mask=(7, PLACES)),
        net(1, mask=(HEADS, 1, PLACES)),
        net(7, query=Heads(), outer=False),
        net(7, outer=False),
        net(1, copied=(TIMES, 2)),
        net(1, copied=(1, 1)),
    ],
    ids=["mask of rows", "mask of heads", "rows outside", "turned", "two numbers", "no copies"],
)
def test_what_is_something_else_is_left_alone(graph: Graph) -> None:
    assert SharedHeads()(graph) is graph
