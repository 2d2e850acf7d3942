from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.load import LoadError, load
from tilewright.runtime.engine.engine_code import EngineError
from tilewright.runtime.engine.format import EngineFileError, platform_name
from tilewright.runtime.machine.host import CPU_VARIABLE, host

from ..tiny_engine import tiny_engine
from ..tiny_program import image

pytestmark = [pytest.mark.needs_cc, pytest.mark.isa]
BEST = host().isa  # of this machine, before a test hides it

FAST = """
import sys, numpy as np
from tilewright.driver.load import load
engine = load(sys.argv[1], on_mismatch="refuse")
np.save(sys.argv[3], engine(np.load(sys.argv[2])))
heavy = ("onnx", "networkx", "islpy", "tilewright.schedule", "tilewright.graph")
print([name for name in heavy if name in sys.modules])
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny_engine().save(tmp_path / "tiny.twe")


@pytest.fixture
def poorer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, without the instruction sets that it has beyond the scalar one, once the engine
    is built for those that it has.
    """
    monkeypatch.setenv(CPU_VARIABLE, "scalar")


def test_a_loaded_engine_gives_the_same_bits(path: Path) -> None:
    engine = load(path)
    assert np.array_equal(engine(image()), tiny_engine()(image()))
    assert engine.explain() == tiny_engine().explain()
    assert engine.memory_plan == tiny_engine().memory_plan
    assert engine.verify()


def test_the_number_of_threads_may_be_set(path: Path) -> None:
    assert load(str(path), threads=1).context().threads == 1


def test_an_unknown_way_out_of_a_mismatch_is_refused(path: Path) -> None:
    with pytest.raises(LoadError) as caught:
        load(path, on_mismatch="zzz")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "LoadError: load: on_mismatch is 'zzz'; expected 'rebuild' or 'refuse'. [load-mismatch]"
    )


def test_loading_needs_neither_a_compiler_nor_a_cache_nor_a_builder(
    path: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", image())
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **os.environ,
        "TILEWRIGHT_CACHE": str(home / "cache"),
        "CC": "no-such-compiler",
        "HOME": str(home),
    }
    words = [str(path), str(tmp_path / "x.npy"), str(tmp_path / "y.npy")]
    done = subprocess.run(
        [sys.executable, "-c", FAST, *words], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert np.array_equal(np.load(tmp_path / "y.npy"), tiny_engine()(image()))
    assert list(home.iterdir()) == []


def test_a_loaded_engine_bounds_its_runs_where_that_is_asked_for(path: Path) -> None:
    assert load(path).max_contexts is None
    assert load(path, max_contexts=2).max_contexts == 2
    with pytest.raises(EngineError, match="max_contexts is 0; expected at least 1"):
        load(path, max_contexts=0)


@pytest.mark.usefixtures("poorer")
def test_an_engine_of_another_machine_is_built_anew(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = load(path, max_contexts=2)
    assert engine.verify()
    if BEST != "scalar":
        assert engine.max_contexts == 2
        assert [record.getMessage() for record in caplog.records] == [
            f"load: '{path}' does not fit this machine and is built anew, by the rules' schedules: "
            f"it was built for {BEST}; this machine has scalar."
        ]
        notes = engine.explain().notes
        assert notes[-1] == f"built anew: it was built for {BEST}; this machine has scalar."
        assert engine.memory_plan.lower_bound_bytes == 2688
        assert engine.explain().whole.startswith("ok on 1, 2 and 3 threads, equal bits")


@pytest.mark.usefixtures("poorer")
@pytest.mark.skipif(BEST == "scalar", reason="this machine is the poorest")
def test_an_engine_of_another_machine_may_be_refused(path: Path) -> None:
    with pytest.raises(EngineFileError) as caught:
        load(path, on_mismatch="refuse")
    assert str(caught.value) == (
        f"EngineFileError: load: '{path}' does not fit this machine: it was built for "
        f"{BEST}; this machine has scalar. [engine-mismatch]\n"
        '  Hint: tw.load(path, on_mismatch="rebuild") builds it anew from the kept weights.'
    )


@pytest.mark.usefixtures("poorer")
@pytest.mark.skipif(BEST == "scalar", reason="this machine is the poorest")
def test_without_weights_it_cannot_be_built_anew(path: Path) -> None:
    tiny_engine().save(path, keep_weights=False)
    with pytest.raises(EngineFileError) as caught:
        load(path)
    assert str(caught.value) == (
        f"EngineFileError: load: '{path}' does not fit this machine and keeps no weights to build "
        f"from: it was built for {BEST}; this machine has scalar. [engine-rebuild]\n"
        "  Hint: write it with engine.save(path, keep_weights=True)."
    )


def test_another_platform_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.runtime.engine.format.platform_name", lambda: "beos-alpha")
    with pytest.raises(EngineFileError, match=f"built for {platform_name()}; this is beos-alpha"):
        load(path, on_mismatch="refuse")


def test_engines_keep_the_file_that_they_were_loaded_from(path: Path) -> None:
    engine = load(path)
    expected = engine(image())
    descriptor = os.stat(path).st_ino
    tiny_engine().save(path)  # in one step, under the same name
    assert os.stat(path).st_ino != descriptor
    assert np.array_equal(engine(image()), expected)
    assert np.array_equal(load(path)(image()), expected)


@pytest.mark.parametrize("size", [0, None])
def test_a_copy_may_lose_its_file(path: Path, size: int | None) -> None:
    engine = load(path, copy=True)
    expected = tiny_engine()(image())
    data = path.read_bytes()
    if size is None:
        path.write_bytes(bytes(255 - byte for byte in data))
    else:
        os.truncate(path, size)
    assert np.array_equal(engine(image()), expected)
    assert engine.verify()
    constants = [array for array in engine.parts.constants if array is not None]
    assert not any(array.flags.writeable for array in constants)


def test_a_link_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "live.twe"
    link.symlink_to(path.name)
    before = path.read_bytes()
    tiny_engine().save(link, keep_weights=False)
    assert link.is_symlink()
    assert path.read_bytes() != before
    assert sorted(os.listdir(tmp_path)) == ["live.twe", "tiny.twe"]


def test_a_name_of_any_length_is_saved(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250 + ".twe")
    assert np.array_equal(load(tiny_engine().save(path))(image()), tiny_engine()(image()))


def test_what_has_no_end_is_no_engine(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(EngineFileError, match=r"is not an engine: it is not a regular file\."):
            load(path)
    with pytest.raises(EngineFileError, match="embedded null byte"):
        load("engine\0.twe")
