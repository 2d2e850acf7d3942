from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from tilewright.codegen.artifact import Entry, Parameter
from tilewright.codegen.program_artifact import ProgramArtifact, Scratch
from tilewright.runtime.artifact_json import (
    artifact_from_json,
    artifact_to_json,
    plan_from_json,
    plan_to_json,
    report_from_json,
    report_to_json,
    target_from_json,
)
from tilewright.runtime.model.precision_json import precision_from_json, precision_to_json
from tilewright.runtime.model.precision_report import (
    LayerPrecision,
    LayerTimes,
    PrecisionReport,
    SliceScore,
)
from tilewright.runtime.model.report import EngineReport, KernelReport, MemoryPlan
from tilewright.tir.dtype import FLOAT32, UINT64
from tilewright.tir.errors import IRError
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.json_reader import Json, Reader, parse_json
from tilewright.tir.program.program import Copy, Launch, ProgramCheck, Slice, Sync
from tilewright.tir.target.target import Target

X, W = Parameter("x", FLOAT32, (4,), "input"), Parameter("w", FLOAT32, (4,), "constant")
P, Y = Parameter("w.p", FLOAT32, (4,), "prepared"), Parameter("y", FLOAT32, (4,), "output")


def piece(space: str, position: int = 0) -> Slice:
    return Slice(space, position, FLOAT32, (4,))


MADE = ProgramArtifact(
    name="m",
    symbol="tw_model_m",
    target=Target.parse("c:avx2"),
    inputs=(X,),
    constants=(W, P),
    read=(1,),
    outputs=(Y,),
    kernels=(Entry("k", (X, P, Y), 64, 128), Entry("k_prepare", (W, replace(P, role="output")))),
    texts=("one", "two"),
    main="three",
    body=(
        Launch("k", (piece("input"), piece("constant", 1), piece("arena")), "node"),
        Sync(),
        Copy(piece("arena"), piece("output")),
    ),
    prepare=(Launch("k_prepare", (piece("constant"), piece("constant", 1))),),
    scratch=(Scratch(0, 0),),
    arena_bytes=64,
    workspace_bytes=64,
    thread_workspace_bytes=128,
)
PROOF = "proved (...)"
SOURCES = ("one", "two", "three")


def through_text(data: Json) -> Reader:
    return parse_json(json.dumps(data), "data")


def test_an_artifact_survives() -> None:
    assert artifact_from_json(through_text(artifact_to_json(MADE)), SOURCES) == MADE


WORD = Slice("arena", 56, UINT64, ())
CHECKED = replace(
    MADE,
    kernels=(
        Entry("k", (X, P, Y, Parameter("c", UINT64, (), "output", IndexCheck("token", 8)))),
        MADE.kernels[1],
    ),
    body=(
        Launch("k", (piece("input"), piece("constant", 1), piece("arena"), WORD), "node"),
        *MADE.body[1:],
    ),
)


@pytest.mark.parametrize(
    ("name", "field", "value", "expected"),
    [
        ("c:avx2", "features", ["bf16"], "features[0] is 'bf16'; expected 'vnni'."),
        ("c:avx512", "features", ["sse"], "features[0] is 'sse'; expected 'vnni' or 'bf16'."),
        ("c:avx2", "isa", "sm_90a", "isa is 'sm_90a'; expected 'scalar' or 'avx2'"),
        ("cuda:sm_90a", "isa", "avx2", "isa is 'avx2'; expected 'sm_80' or"),
        ("c:avx2", "isa", "", "isa is ''; expected 'scalar' or"),
    ],
)
def test_a_target_that_no_constructor_makes_is_refused(
    name: str, field: str, value: Json, expected: str
) -> None:
    written = {**Target.parse(name).to_json(), field: value}
    with pytest.raises(IRError) as caught:
        target_from_json(Reader(written, "target"))
    assert f"target.{expected}" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["c:scalar", "c:avx512+vnni", "c:avx2+vnni", "c:neon+dotprod", "python", "cuda:sm_90a"]
)
def test_a_target_survives(name: str) -> None:
    own = {"gb_per_s": 1.5} if name.startswith("cuda") else {"l1_bytes": 1}
    target = replace(Target.parse(name), threads=7, **own)
    assert target_from_json(through_text(target.to_json())) == target


def test_a_gpu_of_an_older_file_has_what_a_cpu_is_like_there_and_no_rates() -> None:
    written: dict[str, Json] = {
        **{"kind": "cuda", "isa": "sm_90a", "vector_bytes": 0, "vector_registers": 255},
        **{"fma_per_cycle": 2, "clock_ghz": 3.0, "l1_bytes": 32768, "l2_bytes": 1048576},
        **{"l3_bytes": 33554432, "dram_gb_per_s": 40.0, "threads": 3, "features": []},
    }
    target = target_from_json(Reader(written, "target"))
    assert target == Target("cuda", "sm_90a", threads=3)


def test_a_cpu_of_an_older_file_multiplies_bfloat16_at_the_nominal_rate() -> None:
    written = Target.parse("c:avx512+bf16").to_json()
    del written["bf16_per_cycle"]
    assert target_from_json(Reader(written, "target")) == Target.parse("c:avx512+bf16")


PRECISION = PrecisionReport(
    (
        LayerPrecision("conv", "bytes", "", 0.1, LayerTimes(narrow=1e-6, floats=3e-6)),
        LayerPrecision(
            "fc",
            "weights in float16",
            "as asked",
            None,
            LayerTimes(narrow=2e-6, floats=3e-6, is_estimate=True),
        ),
        LayerPrecision("y", "float32", "it has groups"),
    ),
    ("1 of 2 products multiply bytes",),
    (
        SliceScore("top1", "all", 10, 0.9, 0.8, 0.2),
        SliceScore("top1", "low confidence", 1, 1.0, 0.0, None),
    ),
    ("beside the model in float64",),
)


def test_what_products_compute_with_survives() -> None:
    report = EngineReport((), precision=PRECISION, allow=("x",))
    assert report_from_json(through_text(report_to_json(report))) == report


def test_of_what_was_rounded_older_files_have_lines() -> None:
    data = report_to_json(EngineReport(()))
    assert isinstance(data, dict)
    del data["precision"], data["allow"]
    assert report_from_json(through_text(data)) == EngineReport(())
    data["rounded"] = ["node 'fc' (Gemm): weights in float16"]
    data["notes"] = ["precision: 'a': bytes: error 1.0e-01 of the power of its result"]
    found = report_from_json(through_text(data))
    assert found.precision == PrecisionReport(remarks=("node 'fc' (Gemm): weights in float16",))
    assert found.notes == ("precision: 'a': bytes: error 1.0e-01 of the power of its result",)


@pytest.mark.parametrize(
    ("part", "name", "value", "expected"),
    [
        ("layers", "layer", 3, "layers[0].layer is 3; expected a text of at most"),
        ("layers", "error", "much", "layers[0].error is 'much'; expected a number"),
        ("layers", "times", 1.0, "layers[0].times is 1.0; expected an object with 'narrow'"),
        ("scores", "count", -1, "scores[0].count is -1; expected a whole number"),
        ("scores", "most_drop", True, "scores[0].most_drop is True; expected a number"),
    ],
)
def test_what_no_writer_makes_of_a_precision_is_refused(
    part: str, name: str, value: object, expected: str
) -> None:
    data = precision_to_json(PRECISION)
    data[part][0][name] = value  # type: ignore[index,call-overload]
    with pytest.raises(IRError, match=re.escape(expected)):
        precision_from_json(through_text(data))


def test_a_check_survives_and_tells_where_its_word_lies() -> None:
    twin = artifact_from_json(through_text(artifact_to_json(CHECKED)), SOURCES)
    assert twin == CHECKED
    assert twin.checks == (ProgramCheck("node", IndexCheck("token", 8), WORD),)
    assert MADE.checks == ()


def test_a_check_whose_word_is_something_else_is_refused() -> None:
    data = artifact_to_json(CHECKED)
    data["body"][0]["arguments"][3]["dtype"] = "uint8"  # type: ignore[index,call-overload]
    with pytest.raises(IRError) as caught:
        artifact_from_json(through_text(data), SOURCES)
    assert str(caught.value) == ("IRError: program: a check is no single uint64. [artifact-json]")


def test_an_artifact_from_before_says_nothing_of_scratch_memory() -> None:
    data = artifact_to_json(MADE)
    del data["scratch"]
    assert artifact_from_json(through_text(data), SOURCES) == replace(MADE, scratch=())


def test_an_artifact_whose_memory_is_used_wrongly_is_refused() -> None:
    data = artifact_to_json(MADE)
    data["scratch"] = [[64, 0]]
    with pytest.raises(IRError, match="memory of a run: the scratch memory of"):
        artifact_from_json(through_text(data), SOURCES)


def test_a_report_and_a_plan_survive() -> None:
    kernel = KernelReport("k", "s", ("a", "b"), "rule", "tuned", PROOF, 0.1, "ok", 0.2, 0.3, "data")
    unchecked = KernelReport("l", "t", (), "rule", "rule", "unknown (...)")
    logged = replace(kernel, state="candidate")
    report = EngineReport((kernel, unchecked, logged), ("note",), (("lower", 0.5),))
    for one in (report, replace(report, tolerance=1e-4), replace(report, whole="ok on 1 thread")):
        assert report_from_json(through_text(report_to_json(one))) == one
    for plan in (MemoryPlan(1, 2, 3, 4, 5, 6), MemoryPlan(1, 2, 3, 4)):
        assert plan_from_json(through_text(plan_to_json(plan))) == plan


def test_a_report_from_before_states_were_kept_has_none() -> None:
    kernel = KernelReport("k", "s", (), "rule", "tuned", PROOF, state="confirmed")
    data = through_text(report_to_json(EngineReport((kernel,)))).value
    assert isinstance(data, dict)
    assert isinstance(data["kernels"], list)
    (one,) = data["kernels"]
    assert isinstance(one, dict)
    assert one.pop("state") == "confirmed"
    assert str(report_from_json(through_text(data)).coverage) == "kernels 1: tuned 1"


def test_a_report_from_before_whole_engines_were_run_says_that_none_was() -> None:
    data = report_to_json(EngineReport((), whole="ok"))
    assert isinstance(data, dict)
    del data["whole"]
    assert report_from_json(through_text(data)).whole == "off"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("read", [2], "'read' names a constant that does not exist"),
        ("arena_bytes", 8, "arena[0]: float32[4] does not exist"),
        ("outputs", [], "output[0]: float32[4] does not exist"),
        ("kernels", [], "0 kernels have 2 sources"),
        ("prepare", "body", "'prepare' touches more than constants"),
        ("scratch", [[0, 0]] * 2, "1 launches have scratch memory in 2 places"),
    ],
)
def test_an_artifact_that_contradicts_itself_is_refused(
    name: str, value: Json, message: str
) -> None:
    data = artifact_to_json(MADE)
    data[name] = [data["body"][0]] if value == "body" else value  # type: ignore[index]
    with pytest.raises(IRError) as caught:
        artifact_from_json(through_text(data), SOURCES)
    assert str(caught.value) == f"IRError: program: {message}. [artifact-json]"
