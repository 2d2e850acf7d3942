"""cli/doctor.py: it looks at everything, works on any machine, and lists every setting."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from tilewright.cli import examination
from tilewright.cli.settings import MEANINGS
from tilewright.runtime.cuda.device.availability import Available, Unavailable
from tilewright.runtime.cuda.driver.driver import describe
from tilewright.tir.target import kinds

from .conftest import Command

LABELS = (
    *("tilewright", "python", "packages", "compiler", "cpu", "threads", "gpu", "targets"),
    *("extensions", "cache", "settings"),
)


def labels(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^(\w+) ", text, re.MULTILINE))


@pytest.mark.needs_cc
def test_doctor_says_what_was_found(tilewright: Command) -> None:
    done = tilewright("doctor")
    assert (done.code, done.err) == (0, "")
    assert labels(done.out) == LABELS
    assert "numpy 2" in done.out
    assert "\ngpu " in done.out
    assert max(map(len, done.out.splitlines())) <= 100 or "/" in done.out


def test_doctor_finds_its_way_without_a_compiler(tilewright: Command, no_compiler: None) -> None:
    done = tilewright("doctor")
    assert done.code == 4
    assert labels(done.out) == LABELS
    assert "none works, so models run in the interpreter, slowly" in done.out
    assert "Hint: Debian, Ubuntu: sudo apt install gcc" in done.out


def test_doctor_shows_a_setting_that_is_wrong(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "many")
    done = tilewright("doctor")
    assert "TILEWRIGHT_NUM_THREADS is 'many'; expected a whole number" in done.out
    assert re.search(r"TILEWRIGHT_NUM_THREADS +many +threads of a run", done.out)


def test_doctor_without_a_cache(tilewright: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")
    assert "none: everything is compiled anew" in tilewright("doctor").out
    found = json.loads(tilewright("doctor", "--json").out)
    assert found["cache"]["folder"] is None


def test_doctor_as_json_holds_what_the_text_says(tilewright: Command, no_compiler: None) -> None:
    done = tilewright("doctor", "--json")
    found = json.loads(done.out)
    assert done.code == 4
    assert found["compiler"]["problem"].startswith("CompilerNotFound: ")
    assert found["packages"]["numpy"]
    assert found["host"]["instructions"][-1] == "scalar"
    assert found["threads"]["allowed"] >= 1
    assert [setting["name"] for setting in found["settings"]] == list(MEANINGS)
    assert found["limits"] is None


def test_doctor_says_why_there_is_no_gpu_and_what_compiles_for_one(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Unavailable("the driver shows no device", "buy one")
    monkeypatch.setattr(examination, "availability", lambda: found)
    monkeypatch.setenv("TILEWRIGHT_NVRTC", "no-such-library")
    monkeypatch.setattr(examination, "find_tool", lambda name: None)
    text = tilewright("doctor").out
    assert "gpu        none: the driver shows no device\n" in text
    assert "CUDA C: no NVRTC, which comes with the extra cuda\n" in text
    assert "reading cubins: no cuobjdump, no nvdisasm\n" in text
    monkeypatch.setattr(examination, "find_tool", lambda name: Path("bin", name))
    text = tilewright("doctor").out
    assert "reading cubins: bin/cuobjdump, bin/nvdisasm\n" in text


def test_doctor_lists_the_gpus(tilewright: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"L2_CACHE_SIZE": 60 << 20, "MULTIPROCESSOR_COUNT": 132, "MAX_BLOCK_DIM_Z": 64}
    capability = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0}
    device = describe(0, "A GPU", 80 << 30, lambda name: {**limits, **capability}.get(name, 1024))
    found = Available(SimpleNamespace(name="PyCUDA 1"), (device,))  # type: ignore[arg-type]
    monkeypatch.setattr(examination, "availability", lambda: found)
    text = tilewright("doctor").out
    assert "A GPU, sm_90a, 132 multiprocessors, 80 GiB, through PyCUDA 1\n" in text
    gpu = json.loads(tilewright("doctor", "--json").out)["gpu"]
    assert (gpu["problem"], gpu["driver"]) == (None, "PyCUDA 1")
    assert gpu["devices"][0]["max_block"] == [1024, 1024, 64]


def test_doctor_lists_the_targets(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those of packages beside ours; one that does not load is told in a line."""
    (tmp_path / "raising.py").write_text("raise RuntimeError('no\\n  licence')")
    monkeypatch.syspath_prepend(tmp_path)
    points = tuple(
        EntryPoint(name, f"{module}:BACKEND", kinds.GROUP)
        for name, module in (("lacks", "no_such_module"), ("raises", "raising"))
    )
    for module in (examination, kinds):
        monkeypatch.setattr(module, "package_entry_points", lambda group: points)
    done = tilewright("doctor")
    assert (
        "targets    built in: c, cuda, python, null\n"
        "           lacks, of a package: does not load: ModuleNotFoundError: No module named "
        "'no_such_module'\n"
        "           raises, of a package: does not load: RuntimeError: no licence\n"
    ) in done.out
    found = json.loads(tilewright("doctor", "--json").out)["targets"]
    assert found[0] == {"kind": "c", "package": None, "problem": None}
    assert [one["kind"] for one in found[4:]] == ["lacks", "raises"]


@pytest.mark.slow
@pytest.mark.needs_cc
def test_doctor_measures_the_machine(tilewright: Command) -> None:
    done = tilewright("doctor", "--measure")
    assert re.search(r"1 +fp32 multiply-adds +[\d.]+ GFLOP/s", done.out)
    assert re.search(r"1 +reading [\d.]+ KiB +[\d.]+ GB/s", done.out)
    assert "an empty region takes" in done.out


def test_every_variable_of_the_sources_is_listed(sources: tuple[Path, ...]) -> None:
    used = {
        name
        for path in sources
        for name in re.findall(r"\bTILEWRIGHT_[A-Z_]+", path.read_text(encoding="utf-8"))
    }
    assert used <= set(MEANINGS)
    assert {name for name in MEANINGS if name.startswith("TILEWRIGHT")} == used
