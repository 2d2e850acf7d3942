from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from tilewright.codegen.c.export import Export, ExportedVariant, WeightsFile, export_texts
from tilewright.codegen.c.program import emit_program
from tilewright.codegen.program_artifact import ProgramArtifact
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.cpu.pool import pool_source
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.compilers import isa_flags
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.program import Program, ProgramTensor
from tilewright.tir.sizes import size_of
from tilewright.tir.target.target import Target

from ...tiny_program import K, M, N, tiny

FLAGS = ("-std=c11", "-O2", "-mavx2", "-mfma", "-mf16c")


@cache
def emitted(program: Program | None = None, isa: str = "avx2") -> ProgramArtifact:
    target = Target.parse(f"c:{isa}")
    return emit_program(lower_program(program or tiny(), target).program, target)


def texts(
    made: ProgramArtifact,
    pool: str = "",
    flags: Sequence[str] = FLAGS,
    variants: Sequence[ExportedVariant] = (),
) -> Export:
    """The texts of a model whose constants stand one after the other, 4096 bytes each."""
    codes = [made, *(variant.artifact for variant in variants)]
    offsets = tuple(tuple(4096 * n for n, _ in enumerate(code.read)) for code in codes)
    return export_texts(made, pool, flags, WeightsFile(offsets, 1 << 20, (1, 2)), variants)


def test_the_header_declares_what_a_user_calls() -> None:
    header = texts(emitted()).header
    declared = [line for line in header.splitlines() if line.endswith(";") and line[0] != " "]
    assert declared == [
        "typedef struct tiny_model tiny_model;",
        "tiny_model *tiny_load(const char *path);",
        "void tiny_free(tiny_model *model);",
        "size_t tiny_scratch_bytes(int threads);",
        "int tiny_run(const tiny_model *model, const float *x, float *y, void *scratch, "
        "int threads);",
    ]
    assert " *   input x: float32[6, 20] (x)" in header
    assert "#ifndef TILEWRIGHT_TINY_H" in header


def test_the_source_asks_for_its_instruction_set() -> None:
    source = texts(emitted()).source
    assert '#if !defined(__AVX2__)\n#error "compile with -mavx2 -mfma -mf16c"\n#endif' in source
    assert "#error" not in texts(emitted(isa="scalar")).source


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    ("name", "macros"),
    [
        ("c:avx512+vnni+bf16", ["__AVX512F__", "__AVX512VNNI__", "__AVX512BF16__"]),
        ("c:avx2+vnni", ["__AVX2__", "__AVXVNNI__"]),
    ],
)
def test_the_flags_of_features_define_what_the_source_asks_for(
    name: str, macros: list[str]
) -> None:
    target = Target.parse(name)
    made = replace(emitted(isa=target.isa), target=target)
    source = texts(made, flags=isa_flags(target)).source
    asked = re.findall(r"!defined\((\w+)\)", source)
    assert asked == macros
    missing = " || ".join(f"!defined({macro})" for macro in asked)
    compile_shared(f"#if {missing}\n#error\n#endif\nint nothing;\n", target, name="macros")


def test_the_pool_is_the_models_own() -> None:
    source = texts(emitted(), pool_source()).source
    assert "int tiny_pool_run(tw_entry entry" in source
    assert "tw_pool_" not in source
    assert source.count("struct tw_team {") == 1


def test_a_variant_has_symbols_of_its_own_and_the_larger_scratch_memory() -> None:
    made = emitted()
    small = replace(made, arena_bytes=0, thread_workspace_bytes=1 << 20)
    variants = [
        ExportedVariant("n 1", (("n", 1),), replace(small, target=Target.parse("c:avx2+vnni"))),
        ExportedVariant("n 2, m 3", (("n", 2), ("m", 3)), small),
    ]
    n, m = (Dim(name, 1, 64) for name in "nm")
    opened = replace(made, inputs=(replace(made.inputs[0], shape=(size_of(n), size_of(m))),))
    found = texts(opened, variants=variants)
    assert re.findall(r" if \((.*)\) \{   /\* (.*) \*/", found.source) == [
        ("n == 1", "n 1"),
        ("n == 2 && m == 3", "n 2, m 3"),
    ]
    entries = re.findall(r"tiny_pool_run\((\w+), args, threads\);", found.source)
    assert entries == ["tw_variant1_tiny", "tw_variant2_tiny", "tw_model_tiny"]
    defined = re.findall(r"^static void (\w+)\(void \*const \*args", found.source, re.MULTILINE)
    assert len(defined) == len(set(defined)) == 4 * len(entries)
    assert f"SCRATCH = {made.scratch_bytes(0)}, SCRATCH_OF_A_THREAD = {1 << 20}" in found.source
    assert "#if !defined(__AVXVNNI__)" in found.source
    assert " *   n 1\n *   n 2, m 3\n */" in found.header


def test_names_of_tensors_become_names_of_c() -> None:
    program = replace(
        tiny("2 models"),
        inputs=(ProgramTensor("threads", FLOAT32, (N, K)),),
        outputs=(ProgramTensor("model/y:0", FLOAT32, (N, M)),),
    )
    header = texts(emitted(program)).header
    assert "int v_2_models_run(const v_2_models_model *model, const float *v_threads" in header
    assert "float *model_y_0, void *scratch, int threads);" in header
    assert "(model/y:0)" in header


def test_the_makefile_has_the_flags() -> None:
    makefile = texts(emitted()).makefile
    assert "CFLAGS = -std=c11 -O2 -mavx2 -mfma -mf16c\n" in makefile
    assert "model.o: model.c model.h\n\t$(CC) $(CFLAGS) -c model.c -o $@\n" in makefile
