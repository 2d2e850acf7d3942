"""Engines that are kept: a second compile reads one file, builds nothing and has the same bits."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from tilewright.graph import engine_cache
from tilewright.graph.compile import compile
from tilewright.graph.engine_cache import engine_key, model_digest
from tilewright.graph.samples import samples
from tilewright.runtime.machine.host import CPU_VARIABLE, host, host_target
from tilewright.runtime.toolchain.cache import FOLDER_VARIABLE, user_cache
from tilewright.schedule.rules.default import default_schedule
from tilewright.tir.target.target import ISAS, Target

needs_cc = pytest.mark.needs_cc
TINY = samples.tiny_model()


@pytest.fixture(autouse=True)
def cache_folder(shared_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without engines and models."""
    monkeypatch.setenv(FOLDER_VARIABLE, str(shared_folder))
    for kind in (engine_cache.ENGINES, engine_cache.MODELS):
        shutil.rmtree(shared_folder / "entries" / kind, ignore_errors=True)
    return shared_folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The tiny model as a file."""
    path = tmp_path / "tiny.onnx"
    onnx.save(TINY.model, path)
    return path


def kept(folder: Path) -> list[Path]:
    return sorted((folder / "entries" / engine_cache.ENGINES).glob("*"))


def built(model: object, **options: object) -> bool:
    """Whether a compile of `model` had to build."""
    stages: list[str] = []
    engine = compile(model, progress=stages.append, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(engine.run(TINY.inputs)["classes"], expected_classes())
    return "build" in stages


@cache
def expected_classes() -> np.ndarray:
    return compile(TINY.model, cache=False).run(TINY.inputs)["classes"]


FRESH = """
import sys
import numpy as np
import tilewright as tw
engine = tw.compile(sys.argv[1])
image = np.ones((1, 3, 8, 8), np.float32)
print(engine.run({"image": image})["classes"].tobytes().hex())
print(sorted({"onnx", "networkx", "islpy"} & set(sys.modules)))
"""


@needs_cc
def test_a_fresh_process_builds_nothing_and_has_the_same_bits(model: Path) -> None:
    first, second = (
        subprocess.run(
            [sys.executable, "-c", FRESH, str(model)],
            check=True,
            capture_output=True,
            text=True,
            cwd=model.parent,
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("['islpy', 'networkx', 'onnx']", "[]")


@needs_cc
def test_path_bytes_and_message_are_one_model(model: Path, cache_folder: Path) -> None:
    assert built(model)
    assert not built(str(model))
    assert not built(onnx.load(model))
    assert not built(onnx.load(model).SerializeToString(deterministic=True))
    assert len(kept(cache_folder)) == 1


@needs_cc
def test_a_kept_engine_can_be_verified_saved_and_explained(model: Path) -> None:
    before, after = compile(model), compile(model)
    assert after.verify(TINY.inputs)
    assert after.parts.plain is not None
    assert after.explain() == before.explain()
    assert after.memory_plan == before.memory_plan


@needs_cc
def test_a_changed_file_is_compiled_anew(model: Path) -> None:
    assert built(model)
    onnx.save(samples.tiny_model(seed=1).model, model)
    stages: list[str] = []
    compile(model, progress=stages.append)
    assert "build" in stages


@needs_cc
def test_a_damaged_entry_is_made_anew(
    model: Path, cache_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert built(model)
    (path,) = kept(cache_folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    with caplog.at_level(logging.INFO, logger="tilewright.runtime"):
        assert built(model)
    assert "is damaged and is made anew" in caplog.text
    assert not built(model)


@needs_cc
def test_without_the_cache_nothing_is_looked_for_or_kept(model: Path, cache_folder: Path) -> None:
    assert built(model, cache=False)
    assert kept(cache_folder) == []
    assert built(model)
    assert built(model, cache=False)


@needs_cc
def test_what_a_source_of_schedules_made_is_not_kept(model: Path, cache_folder: Path) -> None:
    assert built(model, schedules=lambda func, target: default_schedule(func, target))
    assert kept(cache_folder) == []


@needs_cc
def test_a_limit_holds_for_a_kept_engine_too(model: Path) -> None:
    compile(model)
    with pytest.raises(MemoryError, match="compile-memory"):
        compile(model, max_bytes=100)


@needs_cc
def test_an_engine_that_would_fill_the_cache_is_not_kept(
    model: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected_classes()
    monkeypatch.setenv("TILEWRIGHT_CACHE_BYTES", "10000")
    assert built(model)
    assert kept(cache_folder) == []


@needs_cc
def test_a_folder_that_cannot_be_written_is_one_warning(
    model: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("tilewright.runtime.engine.writer.write_file", full)
    assert built(model)
    assert "cannot keep the engine 'tiny' (no space left)" in caplog.text


def test_every_option_is_part_of_the_key() -> None:
    target, options = Target.parse("c:avx2"), {"strict": False, "shapes": {"x": (1, 2)}}
    keys = {
        engine_key("digest", target, options),
        engine_key("other", target, options),
        engine_key(
            "digest", host_target() if str(host_target()) != "c:avx2" else ISAS["scalar"], options
        ),
        engine_key("digest", target, {**options, "strict": True}),
        engine_key("digest", target, {**options, "shapes": {"x": (1, 3)}}),
    }
    assert len(keys) == 5
    assert engine_key("digest", target, options) in keys


def test_the_compiler_that_is_asked_for_is_part_of_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CC", "gcc")
    first = engine_key("digest", ISAS["scalar"], {})
    monkeypatch.setenv("CC", "clang")
    assert engine_key("digest", ISAS["scalar"], {}) != first


@pytest.mark.isa
@needs_cc
@pytest.mark.skipif(host().isa == "scalar", reason="this CPU has nothing that can be hidden")
def test_an_engine_whose_kernels_were_not_run_is_kept_apart_from_one_whose_were(
    model: Path, cache_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (best, *_), target = host().instructions, f"c:{host().isa}"

    def compiled(cpu: str) -> tuple[bool, set[str]]:
        """Whether a compile had to build, and what the checks of the kernels say."""
        monkeypatch.setenv(CPU_VARIABLE, cpu)
        stages: list[str] = []
        engine = compile(model, target, progress=stages.append)
        checks = {kernel.check.partition(":")[0] for kernel in engine.explain().kernels}
        return "build" in stages, checks

    assert compiled("scalar") == (True, {"not run"})
    assert compiled(best) == (True, {"ok"})
    assert compiled("scalar") == (False, {"not run"})
    assert compiled(best) == (False, {"ok"})
    assert len(kept(cache_folder)) == 2


def test_a_model_whose_weights_lie_elsewhere_has_no_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_cache, "_SETTLED_NS", -1)
    path = tmp_path / "outside.onnx"
    onnx.save(
        TINY.model, path, save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    assert model_digest(path) is None
    assert model_digest(tmp_path / "missing.onnx") is None
    assert model_digest(object()) is None
    assert len(list((user_cache().folder / "entries" / engine_cache.MODELS).glob("*"))) == 1  # type: ignore[operator]


def test_a_word_between_two_pieces_of_a_file_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_cache, "_PIECE", 5)
    for before in range(6):
        path = tmp_path / f"{before}.onnx"
        path.write_bytes(b"x" * before + b"location" + b"y" * 9)
        assert model_digest(path) is None
        assert model_digest(path.read_bytes()) is None
        path.write_bytes(b"x" * before + b"locatiom" + b"y" * 9)
        assert model_digest(path) == model_digest(path.read_bytes()) is not None


def test_a_file_that_changed_long_ago_is_read_once(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_cache, "_SETTLED_NS", -1)
    first = model_digest(model)
    monkeypatch.setattr(engine_cache, "_digest", lambda *_: pytest.fail("read again"))
    assert model_digest(model) == first


def test_a_file_that_has_just_changed_is_read_each_time(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = model_digest(model)
    status = model.stat()
    monkeypatch.setattr(engine_cache, "_identity", lambda status: ())  # as a coarse clock has it
    assert model_digest(model) == first
    model.write_bytes(b"x" * status.st_size)
    assert model_digest(model) != first


def test_a_change_is_seen_whose_times_were_set_back(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_cache, "_SETTLED_NS", -1)
    first, status = model_digest(model), model.stat()
    time.sleep(0.02)  # longer than a tick of the file system's clock
    model.write_bytes(b"x" * status.st_size)
    os.utime(model, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert model_digest(model) != first


def test_a_change_of_the_code_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    first = engine_key("digest", ISAS["scalar"], {})
    monkeypatch.setattr(engine_cache, "code_digest", lambda: "other")
    assert engine_key("digest", ISAS["scalar"], {}) != first


def test_the_key_of_an_engine_changes_with_the_compiler_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade puts another file in the place of the compiler: another size or time."""
    own = tmp_path / "cc"
    own.write_text("#!/bin/sh\nexit 1\n")
    own.chmod(0o755)
    for named in (str(own), f"env {own}", ""):
        monkeypatch.setenv("CC", named)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        target = Target.parse("c:scalar")
        first = engine_key("digest", target, {})
        assert engine_key("digest", target, {}) == first
        os.utime(own, ns=(1, time.time_ns()))
        assert engine_key("digest", target, {}) != first
    monkeypatch.setenv("CC", "no 'such compiler")
    assert engine_key("digest", target, {})


def test_only_weights_in_other_files_keep_a_model_from_being_kept() -> None:
    """Not a word in a name."""
    model = samples.tiny_model().model
    model.graph.node[0].name = "allocation"
    model.graph.initializer[0].doc_string = "location"
    assert model_digest(model) is not None
    assert model_digest(model.SerializeToString()) is not None
    inner = model.graph.node[0].attribute.add(name="body", type=onnx.AttributeProto.GRAPH)
    tensor = inner.g.node.add().attribute.add(name="value", type=onnx.AttributeProto.TENSOR).t
    tensor.external_data.add(key="location", value="w.bin")
    assert model_digest(model) is not None
    tensor.data_location = onnx.TensorProto.EXTERNAL
    assert model_digest(model) is None
    assert model_digest(b"location, but no model") is None


def test_a_large_file_is_read_beside_what_a_build_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, done = tmp_path / "model.onnx", list[str]()
    path.write_bytes(samples.tiny_model().model.SerializeToString())
    plain = model_digest(path, lambda: done.append("small"))
    assert not done
    path.write_bytes(path.read_bytes())  # not known again
    monkeypatch.setattr(engine_cache, "_LONG", 1)
    assert model_digest(path, lambda: done.append("large")) == plain is not None
    assert done == ["large"]
