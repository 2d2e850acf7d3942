"""Branches and loops of a program as C: the text, what it computes, what is refused of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tilewright import te
from tilewright.codegen.c.program import emit_program
from tilewright.codegen.check_memory import check_memory
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.codegen.program_artifact import ProgramArtifact, Scratch
from tilewright.driver.build_program import build_program
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.artifact_json import artifact_from_json, artifact_to_json
from tilewright.tir.dim import Dim
from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.json_reader import parse_json
from tilewright.tir.program.flow import with_actions
from tilewright.tir.program.program import (
    Action,
    Branch,
    Copy,
    Launch,
    LoopRow,
    Program,
    Repeat,
    Slice,
    Step,
    Sync,
)
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.sizes import size_of
from tilewright.tir.target.target import Target

from ...looping_program import (
    CONSTANTS,
    MADE,
    ROWS,
    SIZE,
    SUM,
    X,
    Y,
    expected,
    inputs,
    looping,
    vector,
)

SCALAR = Target.parse("c:scalar")


def artifact(program: Program | None = None) -> ProgramArtifact:
    return emit_program(lower_program(program or looping(), SCALAR).program, SCALAR)


def test_a_branch_is_an_if_and_a_loop_a_for(golden: Callable[[str, str], None]) -> None:
    golden("codegen/flow.c", artifact().main)


@pytest.mark.needs_cc
@pytest.mark.parametrize(("n", "c"), [(0, True), (1, False), (5, True), (-2, False)])
def test_it_runs_as_its_data_say_on_any_number_of_threads(n: int, c: bool) -> None:
    engine = build_program(looping(), CONSTANTS, SCALAR, options=ProgramOptions(verify="kernels"))
    for threads in (1, 2, 3):
        found = engine.run(inputs(n, c), threads=threads)
        for name, array in expected(n, c).items():
            np.testing.assert_allclose(found[name], array, rtol=1e-6)


@pytest.mark.needs_cc
def test_each_step_is_timed_as_often_as_it_runs() -> None:
    engine = build_program(looping(), CONSTANTS, SCALAR, options=ProgramOptions(verify="off"))
    found = engine.profile(inputs(5, False), rounds=1)
    runs = [(step.label, step.runs) for step in found.steps]
    assert runs == [
        ("copy", 1),
        ("more", 5),
        ("copy", 5),
        ("twice", 0),
        ("less", 1),
        ("row", 3),
        ("copy", 1),
        ("iteration", 3),
        ("until", 3),
        ("row", 3),
    ]
    assert "more (5 times)" in str(found)
    assert found.steps[3].seconds == 0


def refused(*body: Step) -> str:
    made = artifact()
    names = {launch.function.removeprefix("tw_model_looping_"): launch for launch in made.launches}

    def named(step: Action) -> Action:
        if not isinstance(step, Launch):
            return step
        return replace(step, function=names[step.function].function)

    program = place_syncs(replace(looping(), body=body))
    steps = with_actions(program.body, named)
    with pytest.raises(IRError) as caught:
        check_memory(replace(made, body=steps, read=(), scratch=()))
    return str(caught.value)


ZS = Slice("output", 1, X.dtype, (ROWS, SIZE))
TABLE = Slice("input", 3, X.dtype, (ROWS, SIZE))
FLAG = Slice("input", 1, looping().inputs[1].dtype, ())
FILL = Copy(X, MADE)
READ = Launch("negate", (MADE, Y), "read")


def test_what_one_branch_alone_writes_is_not_there_behind_it() -> None:
    for then, otherwise in (((FILL,), ()), ((), (FILL,))):
        assert "reads arena[64]: float32[4], which is not what was written there" in refused(
            Branch(FLAG, then, otherwise), READ
        )
    both = refused(Branch(FLAG, (Copy(X, Y),), ()))
    assert "nothing writes output 'y'" in both


def test_what_a_loop_writes_that_may_not_run_is_not_there_behind_it() -> None:
    assert "which is not what was written there" in refused(
        Repeat(0, Slice("input", 0, looping().inputs[0].dtype, ()), None, (FILL,)), READ
    )


def test_rows_of_a_loop_as_long_as_a_size_are_there_behind_it() -> None:
    rows = size_of(Dim("n", low=0, high=2))
    fill = Copy(X, vector("arena", 64, LoopRow(0, rows)))
    whole = Slice("arena", 64, X.dtype, (rows, SIZE))
    read = Copy(whole, replace(whole, position=128))
    assert "nothing writes output 'y'" in refused(Repeat(0, rows, None, (fill,)), read)
    gone = "which is not what was written there"
    assert gone in refused(Repeat(0, rows, FLAG, (fill,)), read)
    assert gone in refused(Repeat(0, rows, None, (Branch(FLAG, (fill,), ()),)), read)


def test_an_iteration_finds_what_the_one_before_it_left() -> None:
    over = Copy(X, Slice("arena", 68, X.dtype, X.shape))
    assert "which is not what was written there" in refused(FILL, Repeat(0, 3, None, (READ, over)))


def test_an_iteration_ends_with_a_barrier() -> None:
    made = artifact()
    first = next(step for step in made.body if isinstance(step, Repeat))
    body = tuple(
        replace(step, body=step.body[:-1]) if step is first else step for step in made.body
    )
    with pytest.raises(IRError) as caught:
        check_memory(replace(made, body=body))
    assert "ends without a barrier. [memory-run]" in str(caught.value)


def test_a_row_lies_in_its_array() -> None:
    outside = vector("arena", 192, LoopRow(0, 5))
    copy = Copy(X, outside)
    assert "beyond the 256 bytes of the arena" in refused_as_written(
        Repeat(0, 5, None, (copy, Sync()))
    )
    for count in (6, None):
        assert "goes through arrays of [5] rows" in refused_as_written(
            Repeat(0, count, None, (copy, Sync()))
        )
    assert "follows a loop that it is not in" in refused_as_written(
        Repeat(1, 5, None, (copy, Sync()))
    )


def refused_as_written(*body: Step) -> str:
    with pytest.raises(IRError) as caught:
        check_memory(replace(artifact(), body=body, scratch=()))
    return str(caught.value)


def test_launches_that_may_run_at_once_have_scratch_memory_of_their_own() -> None:
    made = artifact()
    kernels = tuple(replace(kernel, workspace_bytes=64) for kernel in made.kernels)
    double, negate = (replace(one, arguments=(X, MADE)) for one in made.launches[1:3])
    aside = replace(double, arguments=(X, SUM))
    both = Branch(FLAG, (double,), (negate,))
    body = (Copy(TABLE, ZS), Repeat(0, 2, None, (both, aside, Sync())), Copy(MADE, Y))
    spaced = replace(made, kernels=kernels, workspace_bytes=128, body=body, read=())

    def placed(at: int) -> ProgramArtifact:
        return replace(spaced, scratch=(Scratch(0, 0), Scratch(0, 0), Scratch(at, 0)))

    check_memory(placed(64))
    for at, problem in ((0, "have the same scratch memory"), (128, "lies outside of the run's")):
        with pytest.raises(IRError) as caught:
            check_memory(placed(at))
        assert problem in str(caught.value)


def test_it_survives_as_json_and_what_writing_cannot_have_made_is_refused() -> None:
    made = artifact()
    sources = (*made.texts, made.main)

    def read(artifact: ProgramArtifact) -> ProgramArtifact:
        text = json.dumps(artifact_to_json(artifact))
        return artifact_from_json(parse_json(text, "artifact"), sources)

    assert read(made) == made

    def wrong(change: Callable[[Action], Action]) -> str:
        with pytest.raises(IRError) as caught:
            read(replace(made, body=with_actions(made.body, change)))
        return str(caught.value)

    def larger(step: Action) -> Action:
        if not isinstance(step, Launch) or not step.arguments[1].moves:
            return step
        first, item, *rest = step.arguments
        moves = tuple(replace(move, rows=move.rows + 1) for move in item.moves)
        return replace(step, arguments=(first, replace(item, moves=moves), *rest))

    def unknown(step: Action) -> Action:
        return replace(step, function="nobody") if isinstance(step, Launch) else step

    assert "is no row of 'table'" in wrong(larger)
    assert "a launch of 'nobody' does not fit the kernels" in wrong(unknown)


def test_ways_of_a_branch_share_scratch_memory_and_what_follows_has_its_own() -> None:
    def stored(name: str) -> PrimFunc:
        """A function that keeps a tensor between its two stages."""
        a = te.placeholder((4,), "float32", name="A")
        t = te.compute((4,), lambda i: a[i] * 2, name="T")
        b = te.compute((4,), lambda i: t[3 - i] + t[i], name="B")
        return lower(lower_to_nest(te.func(a, b, name=name)), SCALAR)

    launches = [Launch("a", (X, SUM)), Launch("b", (X, SUM)), Launch("c", (X, MADE))]
    body = (Branch(FLAG, (launches[0],), (launches[1],)), launches[2], Copy(X, Y), Copy(TABLE, ZS))
    functions = tuple(stored(launch.function) for launch in launches)
    made = emit_program(
        place_syncs(replace(looping(), functions=functions, constants=(), body=body)), SCALAR
    )
    assert made.scratch == (Scratch(0, 0), Scratch(0, 0), Scratch(64, 0))
    assert made.workspace_bytes == 128
