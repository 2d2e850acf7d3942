from __future__ import annotations

import re
from dataclasses import replace

from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import program_source
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.codegen.program_artifact import ProgramArtifact
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.program.program import Copy, Launch, Program, ProgramTensor, Sync
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.target.target import Target

from ...tiny_program import SIZE, M, N, piece, relu, tiny

SCALAR = Target.parse("c:scalar")
SAME = (ProgramTensor("x", FLOAT32, (N, M)),)  # an input of the shape that relu takes

# each thread has a row of its own, all share `total`
WITH_SCRATCH = """
def {name}(A: float32[6, 35], R: output(float32[6, 35])):
    total = alloc(float32[6], "global")
    for i in parallel(6):
        row = alloc(float32[35], "thread")
        for j in range(35):
            row[j] = A[i, j]
        total[i] = row[34]
        for j in range(35):
            R[i, j] = row[j] + total[i]
"""


def lowered(func: PrimFunc) -> PrimFunc:
    return lower(lower_to_nest(func), SCALAR)


def artifact(program: Program) -> ProgramArtifact:
    functions = tuple(map(lowered, program.functions))
    return emit_program(replace(program, functions=functions), SCALAR)


def test_the_entry_launches_in_order_with_barriers_where_syncs_are() -> None:
    assert artifact(tiny()).main == (
        "/* The whole model: every thread runs every launch, its share of each. */\n"
        "void tw_model_tiny"
        "(void *const *args, const struct tw_team *team, int thread, int threads)\n"
        "{\n"
        "    char *const scratch = args[4];\n"
        "    (void)scratch, (void)team, (void)thread, (void)threads;\n"
        "    {   /* first matmul */\n"
        "        void *const given[] = {args[0], args[1], scratch + 0, scratch + 2688};\n"
        "        tw_model_tiny_mm1(given, team, thread, threads);\n"
        "    }\n"
        "    {   /* second matmul */\n"
        "        void *const given[] = {args[0], args[2], scratch + 896, scratch + 2688};\n"
        "        tw_model_tiny_mm2(given, team, thread, threads);\n"
        "    }\n"
        "    team->barrier(team->state, thread);\n"
        "    {   /* relu */\n"
        "        void *const given[] = {scratch + 0, scratch + 1792, scratch + 2688};\n"
        "        tw_model_tiny_relu(given, team, thread, threads);\n"
        "    }\n"
        "    team->barrier(team->state, thread);\n"
        "    {   /* add */\n"
        "        void *const given[] = {scratch + 1792, scratch + 896, args[3], scratch + 2688};\n"
        "        tw_model_tiny_add(given, team, thread, threads);\n"
        "    }\n"
        "}\n"
    )


def test_the_artifact_says_what_the_entry_takes() -> None:
    made = artifact(tiny())
    assert [p.name for p in made.entry.parameters] == ["x", "w1", "w2", "y"]
    assert (made.arena_bytes, made.entry.workspace_bytes) == (2688, 2688)
    assert [kernel.symbol for kernel in made.kernels] == [
        f"tw_model_tiny_{name}" for name in ("mm1", "mm2", "relu", "add")
    ]
    assert [launch.function for launch in made.launches] == [k.symbol for k in made.kernels]


def test_only_constants_that_a_run_reads_are_arguments() -> None:
    program = tiny()
    first = program.launches[0]
    made = artifact(
        replace(
            program,
            body=(
                replace(
                    first,
                    arguments=(
                        first.arguments[0],
                        replace(first.arguments[1], position=1),
                        piece("output", 0),
                    ),
                ),
            ),
        )
    )
    assert made.read == (1,)
    assert [p.name for p in made.entry.parameters] == ["x", "w2", "y"]


def test_launches_that_may_overlap_have_scratch_memory_of_their_own() -> None:
    functions = tuple(parse(WITH_SCRATCH.format(name=name)) for name in ("one", "two"))
    body = (
        Launch("one", (piece("input", 0), piece("arena", SIZE))),
        Launch("two", (piece("input", 0), piece("arena", 2 * SIZE))),
        Sync(),
        Launch("one", (piece("arena", SIZE), piece("output", 0))),
    )
    program = replace(tiny(), inputs=SAME, functions=functions, body=body)
    made = emit_program(
        replace(program, functions=tuple(lower(f, SCALAR) for f in functions)), SCALAR
    )
    shared, own = 64, 192  # the parts of one launch: 6 and 35 floats, in whole cache lines
    assert [(k.workspace_bytes, k.thread_workspace_bytes) for k in made.kernels] == [
        (shared, own)
    ] * 2
    assert (made.workspace_bytes, made.thread_workspace_bytes) == (2 * shared, 2 * own)
    assert made.scratch_bytes(3) == 3 * SIZE + 2 * shared + 3 * 2 * own
    starts = re.findall(r"(scratch \+ 2688.*|scratch \+ 2752.*)}", made.main)
    assert starts == [
        "scratch + 2688",
        f"scratch + {2688 + shared} + (size_t)threads * {own}",
        "scratch + 2688",
    ]


def test_a_copy_is_shared_by_the_threads() -> None:
    program = tiny()
    copy = Copy(piece("arena", SIZE), piece("output", 0))
    made = artifact(place_syncs(replace(program, body=(*program.launches[:2], copy))))
    assert "static void tw_copy(" in made.main
    assert "    tw_copy(args[3], scratch + 896, 840, thread, threads);" in made.main


def test_names_of_a_model_never_reach_the_source_as_they_are() -> None:
    program = tiny("model */ int main(){}//")
    launches = tuple(replace(step, label='*/ #error "x" ??/ \\') for step in program.launches)
    source = program_source(artifact(place_syncs(replace(program, body=launches))))
    assert "tw_model_model_int_main(void" in source
    title = "/* model * / int main(){}// for c:scalar, generated by tilewright. */"
    assert source.splitlines()[0] == title
    assert '/* * / #error "x" __/ _ */' in source


def test_symbols_are_all_different_whatever_functions_are_called() -> None:
    names = ("a_body", "a", "a b", "a_b", "a_b_body")
    functions = tuple(replace(relu(), name=name) for name in names)
    body = tuple(Launch(name, (piece("input", 0), piece("output", 0))) for name in names)
    made = artifact(place_syncs(replace(tiny(), inputs=SAME, functions=functions, body=body)))
    symbols = [kernel.symbol for kernel in made.kernels]
    bodies = [f"{symbol}_body" for symbol in symbols]
    assert len({*symbols, *bodies}) == 2 * len(names)
