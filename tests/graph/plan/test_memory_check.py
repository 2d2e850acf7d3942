"""The check of a program's memory finds every planted overlap, by walking beside the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph, GraphNode
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.matmul import MatMul
from tilewright.graph.ops.movement import Reshape
from tilewright.graph.ops.ranking import TopK
from tilewright.graph.plan import lowering
from tilewright.graph.plan.choose import KernelChoice, choose, chosen_parts
from tilewright.graph.plan.fusion import fuse
from tilewright.graph.plan.memory_check import check_memory
from tilewright.graph.plan.memory_plan import ArenaPlan, StepUse, plan_memory
from tilewright.graph.plan.pricing import Pricer
from tilewright.graph.types import TensorType
from tilewright.tir.errors import InternalError
from tilewright.tir.program.program import Program, Slice, Step
from tilewright.tir.target.target import Target

BYTES = 1024
HINT = "\n  Hint: this is a defect of tilewright; please report it with the program that led here."


def network() -> Graph:
    """a = x x, b = a a, c = a b, y = c c; z is a view of a."""
    b = GraphBuilder("g")
    x = b.input("x", TensorType("float32", (16, 16)))
    first = b.add(MatMul(), x, x, output="a")
    second = b.add(MatMul(), first, first, output="b")
    third = b.add(MatMul(), first, second, output="c")
    b.add(MatMul(), third, third, output="y")
    b.add(Reshape((256,)), first, output="z")
    return b.finish(("y",))


def parts_of(graph: Graph) -> tuple[KernelChoice, ...]:
    pricer = Pricer(Target.parse("c:avx2"))
    return chosen_parts(graph, choose(graph, fuse(graph).groups, pricer))


GRAPH = network()
PARTS = parts_of(GRAPH)
PROGRAM = lowering.lower(GRAPH, PARTS).program


def moved(change: Callable[[int, int, Slice], Slice]) -> Program:
    """The program with its slices changed: launch, argument, slice -> slice."""
    body: list[Step] = []
    for number, launch in enumerate(PROGRAM.launches):
        arguments = (change(number, n, item) for n, item in enumerate(launch.arguments))
        body.append(replace(launch, arguments=tuple(arguments)))
    return replace(PROGRAM, body=tuple(body), arena_bytes=PROGRAM.arena_bytes)


def refusal(program: Program) -> str:
    with pytest.raises(InternalError) as caught:
        check_memory(GRAPH, PARTS, program)
    return str(caught.value)


def test_what_lowering_makes_passes() -> None:
    check_memory(GRAPH, PARTS, PROGRAM)


def test_a_tensor_whose_place_is_given_away_too_early_is_found() -> None:
    """b takes the place of a, which c still reads."""
    a = PROGRAM.launches[0].arguments[-1]

    def change(launch: int, argument: int, item: Slice) -> Slice:
        of_b = item == PROGRAM.launches[1].arguments[-1]
        return replace(item, position=a.position) if of_b and launch else item

    assert refusal(moved(change)) == (
        "InternalError: memory plan: step 1 writes arena[0]: float32[16, 16] over arena[0]: "
        "float32[16, 16], which it reads. [plan-check]" + HINT
    )


@pytest.mark.parametrize("far", [-64, 64, BYTES - 64])
def test_tensors_that_share_some_bytes_are_found(far: int) -> None:
    b = PROGRAM.launches[1].arguments[-1].position

    def change(launch: int, argument: int, item: Slice) -> Slice:
        if item.space != "arena" or launch == 0:
            return item
        place = b - far if item.position == b else item.position
        return replace(item, position=place if place >= 0 else item.position + 64)

    program = replace(moved(change), arena_bytes=8 * BYTES)
    assert "[plan-check]" in refusal(program)


def test_a_launch_that_is_given_another_tensor_is_found() -> None:
    def change(launch: int, argument: int, item: Slice) -> Slice:
        return PROGRAM.launches[0].arguments[-1] if (launch, argument) == (2, 1) else item

    assert "step 2 reads 'b' in arena[0]: float32[16, 16], which was not written there" in refusal(
        moved(change)
    )


def test_a_result_outside_of_the_arena_or_unaligned_is_found() -> None:
    end = PROGRAM.arena_bytes

    def beyond(launch: int, argument: int, item: Slice) -> Slice:
        return replace(item, position=end - 64) if (launch, argument) == (0, 1) else item

    def odd(launch: int, argument: int, item: Slice) -> Slice:
        return replace(item, position=8) if (launch, argument) == (0, 1) else item

    expected = f"expected a multiple of 64 in an arena of {end} bytes"
    assert expected in refusal(moved(beyond))
    assert expected in refusal(moved(odd))


def test_a_launch_that_is_missing_is_found() -> None:
    fewer = replace(PROGRAM, body=PROGRAM.launches[:-1])
    assert "3 launches compute 4 groups" in refusal(fewer)


def test_an_output_that_is_not_written_is_found() -> None:
    def change(launch: int, argument: int, item: Slice) -> Slice:
        return Slice("arena", 0, item.dtype, item.shape) if item.space == "output" else item

    assert "whoever called it reads 'y' in output[0]" in refusal(moved(change))


def test_a_wrong_input_is_found() -> None:
    b = GraphBuilder("g")
    kind = TensorType("float32", (8,))
    x, y = b.input("x", kind), b.input("y", kind)
    graph = b.finish((b.add(Add(), x, y, output="s"),))
    parts = parts_of(graph)
    program = lowering.lower(graph, parts).program
    (launch,) = program.launches
    first, second, result = launch.arguments
    wrong = replace(program, body=(replace(launch, arguments=(second, first, result)),))
    with pytest.raises(InternalError, match="step 0 reads 'x' in input"):
        check_memory(graph, parts, wrong)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(lambda uses, sizes: (uses, dict.fromkeys(sizes, 64)), id="sizes too small"),
        pytest.param(
            lambda uses, sizes: ([replace(use, reads=use.reads[:1]) for use in uses], sizes),
            id="uses forget a read",
        ),
        pytest.param(
            lambda uses, sizes: ([StepUse((), use.writes) for use in uses], sizes),
            id="no lifetimes",
        ),
    ],
)
def test_a_planner_that_is_told_less_than_the_truth_is_found_out(
    fault: Callable[..., tuple[list[StepUse], dict[str, int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(uses: list[StepUse], sizes: dict[str, int], *, weight_bytes: int = 0) -> ArenaPlan:
        return plan_memory(*fault(uses, sizes), weight_bytes=weight_bytes)

    monkeypatch.setattr(lowering, "plan_memory", wrong)
    with pytest.raises(InternalError, match="memory plan: "):
        lowering.lower(GRAPH, PARTS)


def top_program() -> tuple[Graph, tuple[KernelChoice, ...], Program]:
    """`places` is read, `values` by nobody."""
    b = GraphBuilder("g")
    x = b.input("x", TensorType("int64", (16, 16)))
    b.add_node(GraphNode(TopK(1, 16), (x,), ("values", "places")))
    graph = b.finish((b.add(Add(), "places", x, output="y"),))
    parts = parts_of(graph)
    return graph, parts, lowering.lower(graph, parts).program


def test_results_of_one_launch_lie_apart_read_or_not() -> None:
    graph, parts, program = top_program()
    first, second = program.launches
    x, values, places = first.arguments
    assert (values.space, places.space) == ("arena", "arena")
    assert not values.overlaps(places)
    for far in (0, 64):
        body = (replace(first, arguments=(x, replace(places, position=far), places)), second)
        body = tuple(
            replace(
                launch,
                arguments=tuple(
                    replace(a, position=0) if a == places else a for a in launch.arguments
                ),
            )
            for launch in body
        )
        with pytest.raises(InternalError) as caught:
            check_memory(graph, parts, replace(program, body=body))
        assert caught.value.message == (
            f"memory plan: step 0 writes arena[{far}]: int64[16, 16] and arena[0]: "
            "int64[16, 16], which share memory."
        )


def test_a_result_that_no_launch_writes_is_found() -> None:
    graph, parts, program = top_program()
    first, second = program.launches
    func = program.function(first.function)
    fewer = replace(func, parameters=func.parameters[:-1])
    functions = tuple(fewer if f is func else f for f in program.functions)
    body = (replace(first, arguments=first.arguments[:-1]), second)
    with pytest.raises(InternalError) as caught:
        check_memory(graph, parts, replace(program, functions=functions, body=body))
    assert caught.value.message == ("memory plan: step 0 writes 1 tensors for 'values', 'places'.")


def test_results_in_the_place_of_each_other_are_found() -> None:
    graph, parts, program = top_program()
    first, second = program.launches
    x, values, places = first.arguments
    wrong = replace(program, body=(replace(first, arguments=(x, places, values)), second))
    with pytest.raises(InternalError, match="step 1 reads 'places' in arena"):
        check_memory(graph, parts, wrong)
