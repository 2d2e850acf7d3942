"""codegen/lower/threads/place_barriers.py: barriers where statements depend on each other and
nowhere else: text and values.
"""

from __future__ import annotations

import pytest

from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.codegen.lower.threads.place_barriers import SHARED_ELEMENTS, PlaceBarriers
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import InterpreterError
from tilewright.tir.parsing.parser import parse
from tilewright.tir.scatter import ScatterFunction
from tilewright.tir.stmt import Barrier
from tilewright.tir.text.printer import print_stmt
from tilewright.tir.visit import walk

from ....schedule.programs import assert_same_values, chain, matmul


def function(*statements: str) -> PrimFunc:
    head = "def f(A: float32[4], B: float32[4], X: output(float32[4]), Y: output(float32[4])):\n"
    body = "\n".join(statements).replace("\n", "\n    ")
    return parse(f"{head}    {body}\n")


def loop(target: str, source: str, kind: str = "parallel") -> str:
    return (
        f"for i in {kind}(4):\n"
        f'    with block("{target}{source}{kind}", v=spatial(4, i)):\n'
        f"        {target}[v] = {source}[v] * 2.0"
    )


def shape_of(func: PrimFunc) -> str:
    """The statements at the root: | for a barrier, . for another."""
    lines = print_stmt(PlaceBarriers()(func).body).splitlines()
    return "".join("|" if line == "barrier()" else "." for line in lines if line[0] != " ")


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ((loop("X", "A"), loop("Y", "X")), ".|."),  # a read of what was written
        ((loop("X", "A"), loop("Y", "B")), ".."),  # nothing in common
        ((loop("X", "A"), loop("Y", "A")), ".."),  # reads of one tensor
        ((loop("X", "Y"), loop("Y", "A")), ".|."),  # a write of what was read
        ((loop("X", "A"), loop("X", "B", "range")), ".|."),  # two writes
        ((loop("X", "A", "range"), loop("Y", "X", "range")), ".."),  # thread 0 runs both
        ((loop("X", "A", "range"), loop("Y", "X")), ".|."),
        ((loop("X", "A"), loop("Y", "X", "range")), ".|."),
        ((loop("X", "A"), "barrier()", loop("Y", "B")), ".."),  # one that is not needed goes
        ((loop("X", "A"), "barrier()", loop("Y", "X")), ".|."),
        ((loop("X", "A"), loop("Y", "X"), loop("X", "B", "range")), ".|.|."),
    ],
)
def test_barriers_stand_where_statements_depend(statements: tuple[str, ...], expected: str) -> None:
    assert shape_of(function(*statements)) == expected


def test_one_barrier_parts_everything_before_from_everything_after() -> None:
    statements = (loop("X", "A"), loop("Y", "B"), loop("X", "B", "range"), loop("Y", "A", "range"))
    assert shape_of(function(*statements)) == "..|.."


def test_prefetches_and_private_storage_need_none() -> None:
    private = (
        "for i in parallel(4):\n"
        '    T = alloc(float32[1], "global")\n'
        '    prefetch(X[i], "read", 1)\n'
        '    with block("T", v=spatial(1, 0)):\n'
        "        T[v] = A[v]\n"
        '    with block("Y", v=spatial(4, i)):\n'
        "        Y[v] = T[0]"
    )
    assert shape_of(function(loop("X", "A"), private)) == ".."


def test_barriers_that_stand_right_give_the_same_function() -> None:
    func = function(loop("X", "A"), "barrier()", loop("Y", "X"))
    assert PlaceBarriers()(func) is func


def test_a_chain_in_parallel_needs_a_barrier_for_each_step_and_runs_with_them() -> None:
    sch = Schedule(chain(4, 3))
    for block in sch.blocks():
        sch.parallel(sch.loops(block)[0])
    nest = lower_to_nest(sch.func)
    assert sum(isinstance(node, Barrier) for node in walk(nest)) == 2
    assert_same_values(nest, sch.original, barriers=True)


def test_packed_weights_are_complete_before_they_are_used() -> None:
    sch = Schedule(matmul(4, 6, 3))
    sch.pack("B", 4)
    sch.parallel(sch.loops("C")[0])
    nest = lower_to_nest(sch.func)
    assert_same_values(nest, sch.original, barriers=True)
    without = parse(str(nest).replace("    barrier()\n", ""))
    assert "barrier" not in str(without)
    with pytest.raises(InterpreterError, match=r"\[interpreter-race\]"):
        assert_same_values(without, sch.original, barriers=True)


@pytest.mark.parametrize(("rows", "expected"), [(4, 0), (SHARED_ELEMENTS, 1)])
def test_a_scatter_that_threads_share_out_waits_for_its_places(rows: int, expected: int) -> None:
    digest = ScatterFunction("add", 0).digest
    text = f"""
def f(X: float32[{rows}], U: float32[4], P: int32[4], Y: output(float32[{rows}])):
    at = alloc(int32[4], "global")
    for k in range(4):
        with block("at", vk=spatial(4, k)):
            at[vk] = P[vk]
    with block("Y"):
        extern("tw_scatter_add_at_0", "{digest}", (X, U, at), (Y,))
"""
    found = PlaceBarriers()(parse(text))
    assert sum(isinstance(node, Barrier) for node in walk(found.body)) == expected
