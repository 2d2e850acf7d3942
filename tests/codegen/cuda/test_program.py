from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright import te
from tilewright.codegen.artifact import parameters_of
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part, Temporary
from tilewright.codegen.cuda.plan_text import plan_text
from tilewright.codegen.cuda.program import emit_program
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.errors import TargetError
from tilewright.tir.program.program import Copy, Launch, Program, ProgramTensor, Slice
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.sizes import size_of
from tilewright.tir.target.target import Target

from ...gpu_program import ROWS, branches, open_rows
from ...looping_program import looping
from ...tiny_program import tiny

TARGET = Target.parse("cuda:sm_90a")


def kernels(program: Program) -> list[CudaArtifact]:
    """For each function a kernel of one launch, and memory of its own of ten floats."""
    return [
        CudaArtifact(
            func.name,
            "",
            TARGET,
            Part(
                parameters_of(func),
                (KernelLaunch(func.name, (1, 1, 1), (32, 1, 1), ("own",)),),
                (Temporary("own", FLOAT32, (10,)),),
            ),
        )
        for func in program.functions
    ]


def emitted() -> CudaProgram:
    return emit_program(tiny(), kernels(tiny()), TARGET)


def test_memory_of_kernels_lies_behind_the_arena_apart_for_launches_that_may_overlap() -> None:
    made = emitted()
    assert made.arena_bytes == 2816  # 2688 and what is missing to 256
    assert [launch.arguments[-1].position - made.arena_bytes for launch in made.launches] == [
        *(0, 256, 0, 0),
    ]
    assert made.workspace_bytes == 512


def test_it_tells_what_lies_on_a_device() -> None:
    made = branches()
    assert (made.bound, made.passing, made.read) == ((0,), (0,), (1,))
    assert (made.weights_bytes, made.interface_bytes) == (256, 512)
    assert made.part("scale.prepare") is made.kernels[0].prepare
    for name in ("scales", "add.prepare"):
        with pytest.raises(KeyError):
            made.part(name)


def test_a_launch_that_writes_where_it_reads_is_refused() -> None:
    program = tiny()
    launch = program.launches[2]
    inside = replace(launch, arguments=(launch.arguments[0], launch.arguments[0]))
    body = tuple(inside if step is launch else step for step in program.body)
    with pytest.raises(TargetError) as caught:
        emit_program(replace(program, body=body), kernels(program), TARGET)
    assert str(caught.value) == (
        "TargetError: cuda: a launch of 'relu' writes 'R' where 'A' lies; expected arrays that "
        "share no memory. [cuda-in-place]"
    )


def rows_doubled(target: int) -> Program:
    """y = 2x of up to 8 rows of 256 bytes, which lie at 0 of the arena; y at `target`."""
    n = te.dim("n", 0, 8)
    x = te.placeholder((n, 64), "float32", name="X")
    func = te.func(x, te.compute((n, 64), lambda i, j: x[i, j] * 2.0, name="Y"), name="twice")
    places = [Slice(*at, FLOAT32, (size_of(n), 64)) for at in (("input", 0), ("arena", 0))]
    made = Slice("arena", target, FLOAT32, (size_of(n), 64))
    launch = Launch("twice", (places[1], made), sizes=(size_of(n),))
    result = Slice("output", 0, FLOAT32, (size_of(n), 64))
    program = Program(
        name="rows",
        inputs=(ProgramTensor("x", FLOAT32, (size_of(n), 64)),),
        outputs=(ProgramTensor("y", FLOAT32, (size_of(n), 64)),),
        constants=(),
        functions=(func,),
        body=(Copy(*places), launch, Copy(made, result)),
        arena_bytes=4096,
    )
    return place_syncs(program)


def test_arrays_of_open_sizes_are_apart_where_all_are_as_large_as_can_be() -> None:
    program = rows_doubled(2048)
    (launch,) = emit_program(program, kernels(program), TARGET).launches
    assert launch.sizes == program.launches[0].sizes
    program = rows_doubled(1024)  # apart for up to 4 rows
    with pytest.raises(TargetError, match="writes 'Y' where 'X' lies"):
        emit_program(program, kernels(program), TARGET)


def test_the_plan_says_what_ends_a_grid_and_which_sizes_a_kernel_takes() -> None:
    assert plan_text(open_rows()).splitlines()[1:] == [
        "0: stream 0  doubled  # twice",
        "    doubled<<<(up to 8, 1, 1), (64, 1, 1)>>>(A = input[0]: float32[rows, 64]; "
        "C = arena[0]: float32[rows, 64]; n = rows)",
        "1: stream 0  copy arena[0]: float32[rows, 64] -> output[0]: float32[rows, 64]",
    ]


@pytest.mark.parametrize(("rows", "blocks"), [(0, ()), (3, (3,)), (8, (8,))])
def test_at_some_sizes_a_program_takes_gives_and_does_what_these_need(
    rows: int, blocks: tuple[int, ...]
) -> None:
    made = open_rows().at({ROWS: rows})
    assert [p.shape for p in (*made.inputs, *made.outputs)] == [(rows, 64)] * 2
    (launch,) = made.launches
    assert tuple(one.grid[0] for one in made.launches_at(launch)) == blocks
    assert made.sizes(launch) == {"n": rows}


def test_an_array_that_wide_accesses_cannot_reach_is_refused() -> None:
    program = tiny()
    first, *others = program.launches
    moved = replace(first.arguments[2], position=4)
    inside = replace(first, arguments=(*first.arguments[:2], moved))
    program = place_syncs(replace(program, body=(inside, *others)))
    with pytest.raises(TargetError) as caught:
        emit_program(program, kernels(program), TARGET)
    assert str(caught.value) == (
        "TargetError: cuda: a launch of 'mm1' names arena[4]: float32[6, 35]; expected a multiple "
        "of 16 bytes, since kernels load as many at once. [cuda-slice-aligned]"
    )


def test_the_plan_tells_each_launch_with_its_stream_and_where_its_arrays_lie() -> None:
    between = [f"between = arena[{at}]: float32[64]" for at in (2048, 2304)]
    assert plan_text(branches()) == "\n".join(
        [
            "hand for cuda:sm_90a: one arena of 2560 bytes, 2 streams",
            "prepare scale.prepare",
            "    twice<<<(1, 1, 1), (64, 1, 1)>>>(W = constant[0]: float32[64]; "
            "packed = constant[1]: float32[64])",
            "0: stream 0  scale  # one",
            f"    first<<<(1, 1, 1), (64, 1, 1)>>>(A = input[0]: float32[64]; {between[0]})",
            f"    second<<<(1, 1, 1), (64, 1, 1)>>>({between[0]}; "
            "packed = constant[1]: float32[64]; C = arena[0]: float32[64])",
            "1: stream 1  scale  # other",
            f"    first<<<(1, 1, 1), (64, 1, 1)>>>(A = input[0]: float32[64]; {between[1]})",
            f"    second<<<(1, 1, 1), (64, 1, 1)>>>({between[1]}; "
            "packed = constant[1]: float32[64]; C = arena[256]: float32[64])",
            "2: stream 1  add  # wide",
            "    add<<<(1, 1, 1), (64, 1, 1)>>>(A = arena[256]: float32[64]; "
            "B = input[0]: float32[64]; S = arena[512]: float32[64])",
            "3: stream 1, after 0  add  # sum",
            "    add<<<(1, 1, 1), (64, 1, 1)>>>(A = arena[0]: float32[64]; "
            "B = arena[512]: float32[64]; S = output[0]: float32[64])",
        ]
    )


def test_a_program_that_branches_or_loops_is_refused() -> None:
    with pytest.raises(TargetError, match="'looping' loops at 'loop' as its data say") as refused:
        emit_program(looping(), (), TARGET)
    assert refused.value.code == "cuda-flow"
