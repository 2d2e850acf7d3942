"""A run whose memory is used wrongly is refused, whatever made it so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.codegen.artifact import Entry, Parameter
from tilewright.codegen.check_memory import check_memory
from tilewright.codegen.program_artifact import ProgramArtifact, Scratch
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.errors import IRError
from tilewright.tir.program.program import Copy, Launch, Slice, Step, Sync
from tilewright.tir.target.target import Target

SHAPE = (16,)
X, W = Parameter("x", FLOAT32, SHAPE, "input"), Parameter("w", FLOAT32, SHAPE, "constant")
P, Y = Parameter("p", FLOAT32, SHAPE, "prepared"), Parameter("y", FLOAT32, SHAPE, "output")


def at(space: str, position: int = 0, shape: tuple[int, ...] = SHAPE) -> Slice:
    return Slice(space, position, FLOAT32, shape)


A, B, C = (at("arena", 64 * n) for n in range(3))
LOAD = Launch("one", (at("input"), A))
MORE = Launch("one", (at("constant", 1), B))
ADD = Launch("two", (A, B, C))
HALF_OVER = Launch("one", (at("input"), at("arena", 32)))
STORE = Copy(C, at("output"))
MADE = ProgramArtifact(
    name="m",
    symbol="tw_model_m",
    target=Target.parse("c:scalar"),
    inputs=(X,),
    constants=(W, P),
    read=(1,),
    outputs=(Y,),
    kernels=(Entry("one", (X, Y), 64, 128), Entry("two", (X, X, Y)), Entry("pack", (W, Y))),
    texts=("",) * 3,
    main="",
    body=(LOAD, MORE, Sync(), ADD, Sync(), STORE),
    prepare=(Launch("pack", (at("constant", 0), at("constant", 1))),),
    scratch=(Scratch(0, 0), Scratch(64, 128), Scratch(0, 0)),
    arena_bytes=192,
    workspace_bytes=128,
    thread_workspace_bytes=256,
)


def refusal(made: ProgramArtifact) -> str:
    with pytest.raises(IRError) as refused:
        check_memory(made)
    return str(refused.value)


def with_body(*body: Step) -> ProgramArtifact:
    places = sum(isinstance(step, Launch) for step in body)
    return replace(MADE, body=body, scratch=(Scratch(0, 0),) * places)


def test_a_run_that_uses_its_memory_rightly_passes() -> None:
    check_memory(MADE)


def test_a_result_may_take_the_very_place_of_what_is_read() -> None:
    over = Launch("two", (A, B, A))
    check_memory(with_body(LOAD, Sync(), MORE, Sync(), over, Sync(), Copy(A, at("output"))))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ((MORE, Sync(), ADD, Sync(), STORE), "reads arena[0]: float32[16], which is not what"),
        (
            (LOAD, Sync(), replace(MORE, arguments=(at("constant", 1), A)), Sync(), ADD),
            "reads arena[64]: float32[16], which is not what was written there",
        ),
        (
            (LOAD, Sync(), MORE, Sync(), HALF_OVER, Sync(), ADD),
            "reads arena[0]: float32[16], which is not what was written there",
        ),
        ((LOAD, MORE, ADD), "beside what writes it, without a barrier"),
        ((LOAD, Sync(), MORE, Sync(), ADD, STORE), "beside what writes it, without a barrier"),
        ((LOAD, LOAD), "writes arena[0]: float32[16] beside what uses it, without a barrier"),
        (
            (LOAD, Sync(), MORE, Sync(), Launch("two", (A, B, at("arena", 96)))),
            "writes arena[96]: float32[16] over what it reads",
        ),
        (
            (LOAD, Sync(), MORE, Sync(), ADD, Launch("one", (at("input"), A))),
            "writes arena[0]: float32[16] beside what uses it, without a barrier",
        ),
        ((Launch("one", (at("input"), at("constant", 0))),), "which a run only reads"),
        ((Launch("one", (at("input"), at("input"))),), "which a run only reads"),
        (
            (Launch("one", (at("input"), at("arena", 160))),),
            "writes arena[160]: float32[16], beyond the 192 bytes of the arena",
        ),
        ((Copy(at("output"), A),), "reads output[0]: float32[16], which nothing has written"),
        ((LOAD,), "nothing writes output 'y'"),
    ],
)  # fmt: skip
def test_a_step_that_touches_what_it_may_not_is_named(body: tuple[Step, ...], problem: str) -> None:
    assert problem in refusal(with_body(*body))


def test_the_message_is_whole() -> None:
    assert refusal(with_body(LOAD)) == (
        "IRError: memory of a run: nothing writes output 'y'. [memory-run]"
    )


def test_what_is_prepared_is_prepared_once_of_what_is_there() -> None:
    (pack,) = MADE.prepare
    assert "a run reads 'p', which nothing prepares" in refusal(replace(MADE, prepare=()))
    assert "which is there already" in refusal(replace(MADE, prepare=(pack, pack)))
    late = replace(pack, arguments=pack.arguments[::-1])
    assert "before it is prepared" in refusal(replace(MADE, prepare=(late,)))


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (Scratch(0, 0), "two launches that may run at once have the same scratch memory"),
        (Scratch(64, 0), "two launches that may run at once have the same scratch memory"),
        (Scratch(0, 128), "two launches that may run at once have the same scratch memory"),
        (Scratch(128, 128), "lies outside of the run's"),
        (Scratch(64, 129), "lies outside of the run's"),
        (Scratch(-64, 128), "lies outside of the run's"),
    ],
)
def test_scratch_memory_is_a_launch_s_own(second: Scratch, problem: str) -> None:
    first, _, third = MADE.scratch
    assert problem in refusal(replace(MADE, scratch=(first, second, third)))


def test_launches_between_other_barriers_may_share_scratch_memory() -> None:
    body = (LOAD, Sync(), MORE, Sync(), ADD, Sync(), STORE)
    check_memory(replace(MADE, body=body, scratch=(Scratch(0, 0),) * 3))
