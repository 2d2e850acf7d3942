"""cli/run.py, compile.py, export_c.py, explain.py: from a model on disk to results."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest

from tilewright.cli.compare.latency import HEADS, Latency, latency_table
from tilewright.driver.load import load
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.runtime.machine.host import CPU_VARIABLE, can_compile
from tilewright.runtime.machine.timing import Timing
from tilewright.tir.target.target import Target

from ..graph.open_models import perceptron
from .conftest import Command

QUICK = ("--target", "python", "--iterations", "0")


def test_a_run_shows_model_memory_and_outputs(tilewright: Command, tiny: Path) -> None:
    done = tilewright("run", tiny, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "tiny(image: float32[1, 3, 8, 8]) -> classes: float32[1, 10]" in done.out
    assert re.search(r"^outputs +classes: float32\[1, 10\], [\d.e-]+ to", done.out, re.MULTILINE)
    assert "latency" not in done.out


def test_inputs_come_from_a_file_and_outputs_go_to_one(tilewright: Command, tiny: Path) -> None:
    image = np.random.default_rng(3).standard_normal((1, 3, 8, 8), dtype=np.float32)
    np.savez("in.npz", image=image)
    done = tilewright("run", tiny, *QUICK, "--load-inputs", "in.npz", "--save-outputs", "out.npz")
    assert done.code == 0
    expected = evaluate(import_onnx(tiny), {"image": image})
    with np.load("out.npz") as saved:
        np.testing.assert_allclose(saved["classes"], expected["classes"], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "command",
    [
        ("run", *QUICK, "--save-outputs", "no/out.npz"),
        ("run", *QUICK, "--save-engine", "no/out.npz"),
        ("compile", "--target", "python", "-o", "no/out.npz"),
    ],
    ids=" ".join,
)
def test_what_has_no_folder_to_go_to_is_an_error_that_programs_read(
    tilewright: Command, tiny: Path, command: tuple[str, ...]
) -> None:
    verb, *options = command
    done = tilewright(verb, tiny, *options, "--json")
    error = json.loads(done.out)["error"]
    assert (done.code, error["exit"], error["code"]) == (2, 2, "output-parent")
    assert "'no/out.npz' cannot be written: there is no folder 'no'" in error["message"]


def test_a_single_input_may_come_from_npy(tilewright: Command, tiny: Path) -> None:
    np.save("in.npy", np.zeros((1, 3, 8, 8), np.float32))
    assert tilewright("run", tiny, *QUICK, "--load-inputs", "in.npy").code == 0


def test_the_seed_chooses_the_random_inputs(tilewright: Command, tiny: Path) -> None:
    outputs = [tilewright("run", tiny, *QUICK, "--seed", seed).out for seed in "001"]
    assert outputs[0] == outputs[1] != outputs[2]


def test_random_indices_lie_in_what_they_index(tilewright: Command, tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]>
        words (int64[4] ids) => (float[4, 3] rows)
        <float[2, 3] table = {0, 1, 2, 3, 4, 5}> { rows = Gather (table, ids) }
    """
    path = tmp_path / "words.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    assert tilewright("run", path, *QUICK, "--check").code == 0


def test_check_ends_with_0_when_equal_and_with_1_when_not(tilewright: Command, tiny: Path) -> None:
    assert "check      equal within bounds" in tilewright("run", tiny, *QUICK, "--check").out
    done = tilewright("run", tiny, *QUICK, "--atol", "1e-30", "--rtol", "0")
    assert done.code == 1
    assert "check      different" in done.out


def test_a_tolerance_is_handed_to_the_compiler_and_kept(tilewright: Command, tiny: Path) -> None:
    done = tilewright("run", tiny, *QUICK, "--tolerance", "1e-4", "--save-engine", "tiny.twe")
    assert (done.code, done.err) == (0, "")
    assert load("tiny.twe").explain().tolerance == 1e-4
    done = tilewright("run", tiny, *QUICK, "--tolerance", "2")
    assert (done.code, "[compile-tolerance]" in done.err) == (2, True)


def test_latency_has_a_line_per_number_of_threads(tilewright: Command, tiny: Path) -> None:
    done = tilewright(
        "run", tiny, "--target", "python", "--threads", "1,2", "--iterations", "2", "--json"
    )
    found = json.loads(done.out)
    assert [one["threads"] for one in found["latency"]] == [1, 2]
    assert len(found["latency"][0]["samples"]) == 2
    assert found["latency"][0]["peak_gflops"] is None
    assert found["check"] is None
    assert found["inputs"] == [{"name": "image", "dtype": "float32", "shape": [1, 3, 8, 8]}]


def test_a_latency_table_says_where_the_median_is_not_known() -> None:
    steady, vague = Timing(2e-3, 1.9e-3, 2.1e-3, (2e-3,)), Timing(2e-3, 1.6e-3, 2.1e-3, (2e-3,))
    one, two = Latency(1, steady, None, None), Latency(2, vague, None, None)
    assert "unreliable" not in latency_table([one])
    assert latency_table([one, two]).splitlines()[-1] == (
        "unreliable on 2 thread(s): the intervals are wide; is the machine busy?"
    )


def test_a_latency_table_leaves_out_what_nobody_knows() -> None:
    timing = Timing(2e-3, 1e-3, 3e-3, (2e-3,))
    full, bare = Latency(1, timing, 10**7, 50.0), Latency(1, timing, None, None)
    assert full.share == pytest.approx(0.1)
    assert latency_table([full]).splitlines()[1].endswith("10% of 50")
    assert all(head in latency_table([full]) for head in HEADS)
    assert "GFLOP/s" not in latency_table([bare])
    assert "limit" not in latency_table([bare])


def test_sizes_that_a_model_leaves_open_are_assumed_or_given(
    tilewright: Command, open_model: Path
) -> None:
    done = tilewright("run", open_model, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "open(x: float32[batch, 4])" in done.out
    done = tilewright("run", open_model, *QUICK, "--shapes", "batch:3", "--json")
    assert json.loads(done.out)["outputs"][0]["shape"] == [3, 4]
    done = tilewright("run", open_model, *QUICK, "--shapes", "x:2x4", "--json")
    assert json.loads(done.out)["outputs"][0]["shape"] == [2, 4]


def test_the_sizes_of_a_run_are_added_to_a_log(
    tilewright: Command, open_model: Path, tmp_path: Path
) -> None:
    log = tmp_path / "sizes.jsonl"
    for batch in (3, 3, 7):
        done = tilewright(
            "run", open_model, *QUICK, "--sizes", f"batch:{batch}", "--shape-log", log
        )
        assert (done.code, done.err) == (0, "")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["sizes"] for line in lines] == [{"batch": 3}, {"batch": 3}, {"batch": 7}]
    done = tilewright("run", open_model, *QUICK, "--shape-log", tmp_path / "no" / "log")
    assert done.code != 0
    assert "[output-parent]" in done.err


def test_a_model_that_is_not_supported_ends_with_3(
    tilewright: Command, unknown_model: Path
) -> None:
    done = tilewright("run", unknown_model)
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("UnsupportedOperator: model: 1 of 1 nodes cannot be imported.")


def test_no_compiler_ends_with_4(
    tilewright: Command, tiny: Path, no_compiler: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")  # a cached engine would need no compiler
    done = tilewright("run", tiny)
    assert done.code == 4
    assert done.err.startswith("CompilerNotFound: compile: no C compiler runs here")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("run",),
            "UsageError: run: no model is given. [cli-model]\n  Hint: tilewright run MODEL.onnx\n",
        ),
        (
            ("run", "model.onnx", "--load-engine", "model.twe"),
            "UsageError: run: both 'model.onnx' and the engine 'model.twe' are given; expected one "
            "of them. [cli-both]\n",
        ),
        (
            ("explain", "old.twe", "--target", "c:avx2"),
            "UsageError: explain: --target is given with the engine 'old.twe', which was compiled "
            "before. [cli-fixed]\n"
            "  Hint: tilewright compile MODEL.onnx --target ... -o old.twe\n",
        ),
        (
            ("run", "--load-engine", "old.twe", "--tolerance", "1e-4"),
            "UsageError: run: --tolerance is given with the engine 'old.twe', which was compiled "
            "before. [cli-fixed]\n"
            "  Hint: tilewright compile MODEL.onnx --tolerance ... -o old.twe\n",
        ),
        (
            ("compile", "old.twe"),
            "UsageError: compile: 'old.twe' is an engine already; expected a model. [cli-engine]\n"
            "  Hint: tilewright run --load-engine old.twe\n",
        ),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(
    arguments: tuple[str, ...], message: str, tilewright: Command
) -> None:
    done = tilewright(*arguments)
    assert (done.code, done.out, done.err) == (2, "", message)


def test_a_file_that_holds_no_arrays_is_refused(tilewright: Command, tiny: Path) -> None:
    Path("in.npz").write_text("not arrays")
    done = tilewright("run", tiny, *QUICK, "--load-inputs", "in.npz")
    assert done.code == 2
    assert done.err == (
        "UsageError: --load-inputs: 'in.npz' is no file of arrays; expected .npz or .npy, no "
        "pickles. [cli-inputs-file]\n"
        "  Hint: np.savez('inputs.npz', **{name: array}) writes one.\n"
    )


def test_an_array_without_a_name_needs_a_single_input(tmp_path: Path) -> None:
    from tilewright.cli.errors import UsageError
    from tilewright.cli.tensors import load_inputs
    from tilewright.runtime.model.interface import TensorSpec

    np.save(tmp_path / "in.npy", np.zeros(2))
    specs = tuple(TensorSpec(name, np.dtype(np.float32), (2,)) for name in "ab")
    with pytest.raises(UsageError) as caught:
        load_inputs(str(tmp_path / "in.npy"), specs)
    assert str(caught.value).replace(str(tmp_path), "") == (
        "UsageError: --load-inputs: '/in.npy' holds one array without a name; expected "
        "a: float32[2], b: float32[2]. [cli-inputs-names]\n"
        "  Hint: np.savez('inputs.npz', **{name: array}) keeps names."
    )


def test_a_missing_file_of_inputs_ends_with_2(tilewright: Command, tiny: Path) -> None:
    done = tilewright("run", tiny, *QUICK, "--load-inputs", "nosuch.npz")
    assert done.code == 2
    assert "nosuch.npz" in done.err


@pytest.mark.needs_cc
def test_an_engine_file_runs_without_model_and_without_compiler(
    tilewright: Command, tiny: Path, request: pytest.FixtureRequest
) -> None:
    first = tilewright("run", tiny, "--iterations", "0", "--save-engine", "kept.twe")
    assert first.code == 0
    done = tilewright("compile", tiny, "-o", "b.twe", "--json")
    made = json.loads(done.out)
    assert made["file"] == "b.twe"
    assert made["bytes"] == Path("b.twe").stat().st_size
    assert made["proofs"] == {"proved": made["kernels"]}
    request.getfixturevalue("no_compiler")
    for file in ("kept.twe", "b.twe"):
        again = tilewright("run", "--load-engine", file, "--iterations", "0")
        assert (again.code, again.out) == (0, first.out)
    assert tilewright("run", "b.twe", "--iterations", "2").code == 0


@pytest.mark.needs_cc
def test_an_engine_runs_without_the_libraries_of_compiling(
    tilewright: Command, tiny: Path, tmp_path: Path
) -> None:
    tilewright("compile", tiny, "-o", "lean.twe")
    heavy = ("onnx", "networkx", "islpy", "rich", "tilewright.graph", "tilewright.schedule")
    code = (
        "import sys\nfrom tilewright.cli.main import main\n"
        "assert main(['run', '--load-engine', 'lean.twe', '--iterations', '2']) == 0\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == "[]\n"


@pytest.mark.needs_cc
def test_compile_names_the_engine_after_the_model(tilewright: Command, tiny: Path) -> None:
    done = tilewright("compile", tiny)
    assert re.search(r"^written +tiny.twe \([\d.]+ KiB\)$", done.out, re.MULTILINE)
    assert re.search(r"^kernels +4 in 4 launches: 4 proved\ntuning", done.out, re.MULTILINE)
    assert Path("tiny.twe").exists()


@pytest.mark.needs_cc
def test_compile_says_that_kernels_beyond_this_cpu_were_not_run(
    tilewright: Command, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    target = next(one for one in ("c:avx2", "c:neon") if can_compile(Target.parse(one)))
    done = tilewright("compile", tiny, "--target", target)
    said = re.sub(r"\s+", " ", done.out)
    assert f"check of 4: not run: for {target}, which this machine lacks; it has scalar" in said
    refused = tilewright("run", tiny, "--target", target)
    assert refused.code != 0
    assert f"run: 'tiny' is for {target}, which this machine lacks; it has scalar." in refused.err


@pytest.mark.needs_cc
def test_export_c_writes_a_folder_of_files(tilewright: Command, tiny: Path) -> None:
    done = tilewright("export-c", tiny, "-o", "out", "--json")
    found = json.loads(done.out)
    assert set(found["files"]) == {"Makefile", "model.c", "model.h", "weights.bin"}
    assert found["files"]["model.c"] == Path("out/model.c").stat().st_size
    assert "out/model.h (" in tilewright("export-c", tiny, "-o", "out").out


@pytest.mark.needs_cc
def test_export_c_writes_variants_also_of_an_engine_that_has_them(
    tilewright: Command, tmp_path: Path
) -> None:
    model = tmp_path / "open.onnx"
    model.write_bytes(perceptron().SerializeToString())
    asked = ["--shapes", "batch:1-4-16", "--specialise", "batch:1", "--specialise", "batch:8"]
    assert tilewright("export-c", model, *asked, "-o", "out").code == 0
    assert " *   batch 1\n *   batch 8\n" in Path("out/model.h").read_text()
    assert tilewright("compile", model, *asked, "-o", "open.twe").code == 0
    assert tilewright("export-c", "open.twe", "-o", "again").code == 0
    for file in Path("out").iterdir():
        assert Path("again", file.name).read_bytes() == file.read_bytes()
    refused = tilewright("export-c", "open.twe", "--specialise", "batch:2", "-o", "third")
    assert "--specialise is given with the engine 'open.twe'" in refused.err
    several = tilewright("compile", model, *asked[:2], "--specialise", "batch:1-2-3")
    assert "--specialise: 'batch' has several sizes; expected one. [cli-sizes]" in several.err


@pytest.mark.needs_cc
def test_explain_tells_what_was_fused_proved_and_checked(tilewright: Command, tiny: Path) -> None:
    done = tilewright("explain", tiny)
    assert done.code == 0
    assert "fused: Conv+Relu: conv, relu" in done.out
    assert "proofs: proved 4" in done.out
    found = json.loads(tilewright("explain", tiny, "--json").out)
    assert len(found["report"]["kernels"]) == found["kernels"] == 4
    assert any(note.startswith("fused: ") for note in found["report"]["notes"])
