from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32, INT32, UINT64
from tilewright.tir.errors import IRError
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.program.program import (
    Copy,
    Launch,
    Program,
    ProgramCheck,
    ProgramTensor,
    Slice,
    Sync,
    launch_effects,
)
from tilewright.tir.program.syncs import place_syncs, verify_program
from tilewright.tir.sizes import size_of
from tilewright.tir.te import te

from ...checked_program import BYTES, embedding, word
from ...tiny_program import SIZE, K, M, N, piece, tiny


def refused(program: Program) -> str:
    with pytest.raises(IRError) as caught:
        verify_program(program)
    return str(caught.value)


def test_it_prints_its_tensors_and_its_steps() -> None:
    assert str(tiny()) == (
        "program tiny: arena 2688 bytes\n"
        "  x = input[0]: float32[6, 20]\n"
        "  w1 = constant[0]: float32[20, 35]\n"
        "  w2 = constant[1]: float32[20, 35]\n"
        "  y = output[0]: float32[6, 35]\n"
        "  mm1(input[0]: float32[6, 20]; constant[0]: float32[20, 35]; arena[0]: float32[6, 35])"
        "  # first matmul\n"
        "  mm2(input[0]: float32[6, 20]; constant[1]: float32[20, 35]; arena[896]: float32[6, 35])"
        "  # second matmul\n"
        "  sync()\n"
        "  relu(arena[0]: float32[6, 35]; arena[1792]: float32[6, 35])  # relu\n"
        "  sync()\n"
        "  add(arena[1792]: float32[6, 35]; arena[896]: float32[6, 35]; output[0]: float32[6, 35])"
        "  # add"
    )


def test_syncs_stand_where_steps_depend_and_nowhere_else() -> None:
    program = tiny()
    assert [n for n, step in enumerate(program.body) if isinstance(step, Sync)] == [2, 4]
    assert place_syncs(program) is program
    everywhere = replace(program, body=tuple(s for step in program.body for s in (step, Sync())))
    assert place_syncs(everywhere) == program


def test_a_copy_is_ordered_like_a_launch() -> None:
    program = tiny()
    launches = program.launches
    copy = Copy(piece("arena", SIZE), piece("output", 0))
    placed = place_syncs(replace(program, body=(*launches[:2], copy)))
    assert placed.body == (*launches[:2], Sync(), copy)


def test_slices_overlap_where_they_share_a_byte() -> None:
    one = Slice("arena", 0, FLOAT32, (4,))
    assert one.overlaps(Slice("arena", 12, FLOAT32, (4,)))
    assert not one.overlaps(Slice("arena", 16, FLOAT32, (4,)))
    assert not one.overlaps(Slice("arena", 0, FLOAT32, (0,)))
    assert not one.overlaps(Slice("input", 0, FLOAT32, (4,)))
    assert Slice("input", 1, FLOAT32, (4,)).overlaps(Slice("input", 1, FLOAT32, (4,)))


def test_constants_that_prepare_writes_are_prepared() -> None:
    program = tiny()
    packed = ProgramTensor("packed", FLOAT32, (N, M))
    launch = Launch("relu", (piece("constant", 2), piece("constant", 3)))
    program = replace(
        program,
        constants=(*program.constants, replace(packed, name="raw"), packed),
        prepare=(launch,),
    )
    verify_program(program)
    assert program.prepared == {3}
    effects = launch_effects(program.function("relu").parameters, launch)
    assert effects.written == (piece("constant", 3),)
    assert "  prepare relu(constant[2]: float32[6, 35]; constant[3]: float32[6, 35])" in str(
        program
    )


def test_dependent_steps_need_a_sync() -> None:
    program = tiny()
    assert refused(replace(program, body=program.launches)) == (
        "IRError: program: 'relu(arena[0]: float32[6, 35]; arena[1792]: float32[6, 35])  # relu' "
        "and 'mm1(input[0]: float32[6, 20]; constant[0]: float32[20, 35]; arena[0]: float32[6, 35])"
        "  # first matmul' touch the same memory; expected a sync between them. [program-sync]"
    )


def test_a_launch_names_a_function_of_the_program() -> None:
    assert refused(replace(tiny(), body=(Launch("mm3", ()),))) == (
        "IRError: program: there is no function 'mm3'; there are 'mm2', 'mm1', 'relu', 'add'. "
        "[program-function]"
    )


def test_a_launch_knows_the_sizes_of_its_function() -> None:
    n = te.dim("n", 1, 6)
    x = te.placeholder((n,), "float32", name="X")
    func = te.func(x, te.compute((n,), lambda i: x[i] * 2.0, name="Y"), name="twice")
    launch = Launch("twice", (piece("arena", 0), piece("arena", 1)))
    program = replace(tiny(), functions=(*tiny().functions, func), body=(launch,))
    assert refused(program) == (
        "IRError: program: 'twice' takes the sizes n; got none. [program-sizes]"
    )
    body = (replace(launch, sizes=(size_of(Dim("m", low=1, high=8)),)),)
    assert refused(replace(program, body=body)) == (
        "IRError: program: 'twice' takes a size 'n' of 1 to 6; got m, which is 1 to 8. "
        "[program-size-bounds]"
    )


def test_a_launch_gives_a_slice_for_each_parameter() -> None:
    assert refused(replace(tiny(), body=(Launch("relu", (piece("arena", 0),)),))) == (
        "IRError: program: 'relu' takes 2 slices; got 1. [program-arguments]"
    )


def test_a_slice_has_the_type_of_its_parameter() -> None:
    wrong = Slice("arena", SIZE, INT32, (N, M))
    assert refused(replace(tiny(), body=(Launch("relu", (piece("arena", 0), wrong)),))) == (
        "IRError: program: 'relu' takes 'R' of 210 x float32; got arena[896]: int32[6, 35]. "
        "[program-argument]"
    )


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (piece("arena", 3 * SIZE), "arena[2688]: float32[6, 35]"),
        (piece("output", 1), "output[1]: float32[6, 35]"),
        (piece("output", -1), "output[-1]: float32[6, 35]"),
        (piece("nowhere", 0), "nowhere[0]: float32[6, 35]"),
    ],
)
def test_a_slice_exists(item: Slice, text: str) -> None:
    assert refused(replace(tiny(), body=(Launch("relu", (piece("arena", 0), item)),))) == (
        f"IRError: program: 'relu(arena[0]: float32[6, 35]; {text})' names {text}, which does not "
        "exist. [program-slice]"
    )


def test_a_slice_of_a_tensor_is_the_whole_tensor() -> None:
    half = replace(tiny(), outputs=(ProgramTensor("y", FLOAT32, (2 * N, M)),))
    assert "names output[0]: float32[6, 35], which does not exist" in refused(half)


def test_a_run_writes_no_constant_and_no_input() -> None:
    program = replace(tiny(), inputs=(ProgramTensor("x", FLOAT32, (N, M)),))
    body = (Launch("relu", (piece("arena", 0), piece("input", 0))),)
    assert refused(replace(program, body=body)) == (
        "IRError: program: 'relu(arena[0]: float32[6, 35]; input[0]: float32[6, 35])' writes "
        "input[0]: float32[6, 35]; expected memory of output or arena. [program-space]"
    )


def test_prepare_touches_constants_alone() -> None:
    x, w1 = piece("input", 0, (N, K)), piece("constant", 0, (K, M))
    launch = Launch("mm1", (x, w1, piece("arena", 0)))
    assert "reads input[0]: float32[6, 20]; expected memory of constant." in refused(
        replace(tiny(), prepare=(launch,))
    )


def test_the_checks_of_a_program_are_those_of_its_launches_in_order() -> None:
    assert tiny().checks == ()
    assert embedding().checks == (
        ProgramCheck("word rows", IndexCheck("token", 10), word(2 * BYTES)),
        ProgramCheck("kind rows", IndexCheck("kind", 2), word(2 * BYTES + 8)),
    )
    verify_program(embedding())


def test_nothing_takes_the_place_of_a_check_and_it_lies_in_the_arena() -> None:
    program = embedding()
    first, second, *rest = program.body
    assert isinstance(second, Launch)
    shared = replace(second, arguments=(*second.arguments[:3], word(2 * BYTES)))
    assert refused(replace(program, body=(first, Sync(), shared, *rest))) == (
        "IRError: program: 'kinds(constant[1]: float32[2, 16]; input[1]: int64[6]; "
        "arena[384]: float32[6, 16]; arena[768]: uint64[()])  # kind rows' writes arena[768]: "
        "uint64[()], where the check of 'token' of word rows lies; expected memory of its own for "
        "it. [program-check]"
    )
    outputs = (*program.outputs, ProgramTensor("w", UINT64, ()))
    shown = replace(second, arguments=(*second.arguments[:3], Slice("output", 1, UINT64, ())))
    assert refused(replace(program, outputs=outputs, body=(first, shown, *rest))) == (
        "IRError: program: 'kinds(constant[1]: float32[2, 16]; input[1]: int64[6]; "
        "arena[384]: float32[6, 16]; output[1]: uint64[()])  # kind rows' leaves the check of "
        "'kind' in output[1]: uint64[()]; expected memory of the arena. [program-check-space]"
    )
