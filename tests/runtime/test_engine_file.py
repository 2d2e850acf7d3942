"""The file of an engine, written and read, whole and damaged."""

from __future__ import annotations

import json
import random
import re
import stat
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.backends.table import read_code
from tilewright.runtime.arrays import address
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.format import EngineFileError, Requirements, platform_name
from tilewright.runtime.engine.reader import EngineFile
from tilewright.runtime.engine.writer import _Weights, to_bytes, write_file

from ..tiny_engine import tiny_engine
from ..tiny_program import image

pytestmark = pytest.mark.needs_cc


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tiny_engine().save(tmp_path / "tiny.twe")


def changed(path: Path, change: Callable[[dict[str, bytes]], object]) -> bytes:
    """The file with its sections changed, as a zip that is whole, its hashes as they were."""
    with zipfile.ZipFile(path) as archive:
        sections = {name: archive.read(name) for name in archive.namelist()}
    change(sections)
    made = path.with_name("changed.twe")
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in sections.items():
            archive.writestr(name, data)
    return made.read_bytes()


def rehashed(path: Path, name: str, change: Callable[[dict[str, object]], object]) -> bytes:
    """The file with one JSON section changed, and its hash too: what only bounds can refuse."""
    import hashlib

    def edit(sections: dict[str, bytes]) -> None:
        data = json.loads(sections[name])
        change(data)
        sections[name] = json.dumps(data).encode()
        manifest = json.loads(sections["manifest.json"])
        manifest["sections"][name] = {
            "bytes": len(sections[name]),
            "sha256": hashlib.sha256(sections[name]).hexdigest(),
        }
        if name != "manifest.json":
            sections["manifest.json"] = json.dumps(manifest).encode()

    return changed(path, edit)


def refused(data: bytes) -> str:
    with pytest.raises(EngineFileError) as caught:
        EngineFile(data).parts(read_code)
    return str(caught.value)


def test_an_engine_survives(path: Path) -> None:
    engine, parts = tiny_engine(), EngineFile(path).parts(read_code)
    assert parts.artifact == engine.parts.artifact
    assert (parts.report, parts.plan) == (engine.parts.report, engine.parts.plan)
    assert parts.code.shared is not None
    assert parts.code.shared.binary == engine.parts.code.shared.binary  # type: ignore[union-attr]
    twin = Engine(parts)
    assert np.array_equal(twin(image()), engine(image()))
    assert twin.verify()
    assert twin.source == engine.source


def test_weights_are_used_where_they_lie(path: Path) -> None:
    for array in EngineFile(path).parts(read_code).constants:
        if array is not None:
            assert not array.flags.owndata
            assert not array.flags.writeable
            assert address(array) % 64 == 0


def test_the_sections_are_readable_by_any_tool(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    assert names[0] == "program.json"
    assert names[-1] == "manifest.json"
    assert {"plain.json", "reference.json", "binary/model.so", "binary/pool.so"} <= set(names)


def test_equal_engines_give_equal_files(path: Path) -> None:
    assert path.read_bytes() == to_bytes(tiny_engine().parts)
    assert to_bytes(EngineFile(path).parts(read_code)) == path.read_bytes()


def test_without_the_weights_the_file_is_smaller(path: Path) -> None:
    small = to_bytes(tiny_engine().parts, keep_weights=False)
    assert len(small) < path.stat().st_size
    parts = EngineFile(small).parts(read_code)
    assert (parts.plain, parts.reference) == (None, None)
    assert np.array_equal(Engine(parts)(image()), tiny_engine()(image()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_that_only_a_rebuild_needs_take_no_memory_after_a_load(tmp_path: Path) -> None:
    parts = tiny_engine().parts
    assert parts.plain is not None
    many = np.arange(3 << 20, dtype=np.float32)
    plain = replace(parts.plain, constants={**parts.plain.constants, "many": many})
    path = tmp_path / "large.twe"
    path.write_bytes(to_bytes(replace(parts, plain=plain)))
    file = EngineFile(path)
    _, _, after = Path("/proc/self/smaps").read_text().partition(str(path))
    resident = re.search(r"Rss: +(\d+) kB", after)
    assert resident is not None
    assert int(resident[1]) * 1024 < many.nbytes // 4
    found = file.parts(read_code).plain
    assert found is not None
    np.testing.assert_array_equal(found.constants["many"], many)


def test_equal_arrays_stand_in_it_once(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        plain, reference = (json.loads(archive.read(f"{n}.json")) for n in ("plain", "reference"))
    assert plain["constants"] == reference["constants"]


def test_a_repeated_value_is_kept_as_one(tmp_path: Path) -> None:
    parts = tiny_engine().parts
    assert parts.plain is not None
    splat = np.broadcast_to(np.float32(0.25), (1 << 20, 8))
    plain = replace(parts.plain, constants={**parts.plain.constants, "splat": splat})
    data = to_bytes(replace(parts, plain=plain))
    assert len(data) < 1 << 20
    found = EngineFile(data).parts(read_code).plain
    assert found is not None
    assert found.constants["splat"].shape == splat.shape
    assert float(found.constants["splat"][-1, -1]) == 0.25


def test_a_file_is_replaced_in_one_step(path: Path) -> None:
    path.write_bytes(b"old")
    write_file(tiny_engine().parts, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    EngineFile(path)


def test_a_write_that_fails_leaves_nothing(path: Path) -> None:
    broken = replace(tiny_engine().parts, constants=(np.zeros(2, np.complex64),) * 3)
    before = path.read_bytes()
    with pytest.raises(KeyError):
        write_file(broken, path)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK", "File is not a zip file"),
        (b"\0" * 4096, "File is not a zip file"),
        (b"PK\x05\x06" + b"\0" * 18, "it has no manifest"),
    ],
)
def test_what_is_no_engine_is_refused(data: bytes, reason: str) -> None:
    assert refused(data) == (
        f"EngineFileError: engine file: 'bytes' is not an engine: {reason}. [engine-file-format]\n"
        "  Hint: engine.save(path) writes one; copy it again if it was cut short.\n"
        "  Hint: tilewright.compile(path) takes a model."
    )


def test_an_empty_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty.twe"
    empty.touch()
    with pytest.raises(EngineFileError, match="it is empty"):
        EngineFile(empty)
    with pytest.raises(OSError, match="directory"):
        EngineFile(tmp_path)
    missing = tmp_path / "missing.twe"
    with pytest.raises(FileNotFoundError) as refusal:
        EngineFile(missing)
    assert str(refusal.value) == (
        f"EngineFileMissing: engine file: there is no file '{missing}'; expected one that "
        "engine.save wrote. [engine-file-missing]\n"
        "  Hint: tilewright.compile(model).save(path) writes one."
    )


def with_a_bit_changed(path: Path, name: str, position: int) -> bytes:
    def flip(sections: dict[str, bytes]) -> None:
        data = bytearray(sections[name])
        data[position] ^= 1
        sections[name] = bytes(data)

    return changed(path, flip)


@pytest.mark.parametrize(
    ("name", "what"),
    [("binary/model.so", "SHA-256 differs"), ("weights.safetensors", "sums differ")],
)
def test_a_changed_section_is_found_by_its_hash_or_sums(path: Path, name: str, what: str) -> None:
    assert refused(with_a_bit_changed(path, name, -1)) == (
        f"EngineFileError: engine file: the section '{name}' of 'bytes' is not what "
        f"was written: its {what}. [engine-file-hash]\n"
        "  Hint: the file is damaged or was changed; get it again."
    )


def test_changed_weights_that_no_run_reads_are_found_when_they_are_asked_for(path: Path) -> None:
    engine = Engine(EngineFile(with_a_bit_changed(path, "kept.safetensors", -1)).parts(read_code))
    assert np.array_equal(engine(image()), tiny_engine()(image()))
    for use in (engine.verify, lambda: engine.save(path), engine.verify):
        with pytest.raises(EngineFileError, match=r"'kept\.safetensors' of 'bytes' is not what"):
            use()


def test_a_newer_format_is_refused(path: Path) -> None:
    assert refused(rehashed(path, "manifest.json", lambda m: m.update(format=7))) == (
        "EngineFileError: engine file: 'bytes' has format 7; this version of tilewright reads "
        "formats 5 and 6. [engine-file-version]\n"
        "  Hint: write it anew: tilewright.compile(model).save(path)"
    )


def test_an_older_format_that_has_all_is_read(path: Path) -> None:
    older = rehashed(path, "manifest.json", lambda m: m.update(format=5))
    assert EngineFile(older).parts(read_code).artifact == tiny_engine().parts.artifact


def test_a_missing_and_an_added_section_are_found(path: Path) -> None:
    assert refused(changed(path, lambda s: s.pop("source/0.c"))) == (
        "EngineFileError: engine file: 'bytes' is malformed: the section 'source/0.c' is in the "
        "manifest alone. [engine-file-content]"
    )
    text = refused(changed(path, lambda s: s.update(extra=b"")))
    assert "the section 'extra' is in the file alone." in text


def without(data: dict[str, object], *names: str) -> None:
    for name in names[:-1]:
        data = data[name]  # type: ignore[assignment]
    del data[names[-1]]


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("manifest.json", lambda d: without(d, "requires"), "expected an object with 'requires'"),
        ("manifest.json", lambda d: d["requires"].update(abi="1"), "manifest.requires.abi is '1'"),
        ("manifest.json", lambda d: d["sections"].update(x=[]), "'x' is in the manifest alone"),
        ("program.json", lambda d: without(d, "artifact", "symbol"), "an object with 'symbol'"),
        ("program.json", lambda d: d["artifact"]["read"].append(99), "a constant that does not"),
        ("program.json", lambda d: d["artifact"].update(arena_bytes=64), "does not exist"),
        ("program.json", lambda d: d["artifact"].update(kernels=[]), "0 kernels have"),
        ("program.json", lambda d: d["artifact"]["target"].update(isa="z"), "expected 'scalar'"),
        ("program.json", lambda d: d["constants"].pop(), "are not those of the program"),
        ("program.json", lambda d: d["constants"][-1].update(key="9"), "names no array"),
        ("program.json", lambda d: d["constants"][-1].update(value="zz"), "is no value of"),
        ("program.json", lambda d: d["artifact"]["constants"][-1].update(shape=[1]), "are not tho"),
        ("plain.json", lambda d: d.update(program=1), "plain.json.program is 1"),
        ("plain.json", lambda d: d["constants"].update(w1=[]), "an object with 'dtype'"),
    ],
)
def test_sections_that_contradict_each_other_are_refused(
    path: Path, name: str, change: Callable[[dict[str, object]], object], message: str
) -> None:
    text = refused(rehashed(path, name, change))
    assert message in text
    assert "[engine-file-content]" in text


def test_a_launch_of_what_does_not_exist_is_refused(path: Path) -> None:
    def change(data: dict[str, object]) -> None:
        data["artifact"]["body"][0]["function"] = "system"  # type: ignore[index]

    assert refused(rehashed(path, "program.json", change)) == (
        "EngineFileError: engine file: 'bytes' is malformed: program: a launch of 'system' does "
        "not fit the kernels. [engine-file-content]"
    )


def test_a_compressed_section_is_refused(path: Path) -> None:
    made = path.with_name("compressed.twe")
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b" " * 4096)
    assert "the section 'manifest.json' is compressed or encrypted" in refused(made.read_bytes())


def test_no_damage_does_more_than_raise(path: Path) -> None:
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.3:
            del data[rng.randrange(len(data)) :]
        if bytes(data) != whole:
            try:
                parts = EngineFile(bytes(data)).parts(read_code)
            except EngineFileError:
                continue
            assert parts.artifact == tiny_engine().parts.artifact  # only padding was hit


def test_damage_to_the_directory_does_no_more_than_raise(path: Path) -> None:
    whole = path.read_bytes()
    start = whole.rindex(b"PK\x01\x02") - 2000
    rng = random.Random(1)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(start, len(data))] = rng.randrange(256)
        try:
            EngineFile(bytes(data)).parts(read_code)
        except EngineFileError:
            continue


def test_requirements_say_what_differs() -> None:
    here = Requirements(1, platform_name(), "avx2", "gcc", "0.1.0")
    assert here.missing(("avx2", "scalar")) == ()
    assert here.missing(("scalar",)) == ("it was built for avx2; this machine has scalar.",)
    assert replace(here, platform="beos-alpha", abi=9).missing(("avx2",)) == (
        f"it was built for beos-alpha; this is {platform_name()}.",
        "its code follows convention 9 of tilewright 0.1.0; this version follows 1.",
    )


def test_equal_weights_stand_once_wherever_they_lie() -> None:
    weights = _Weights()
    one = np.arange(600, dtype=np.float32).reshape(20, 30)
    other = one.copy()
    other[-1, -1] = -0.0
    zero = other.copy()
    zero[-1, -1] = 0.0
    places = [weights.place(a) for a in (one, one.copy(), other, zero, one.T, one.T.copy().T)]
    keys = [place["key"] for place in places]  # type: ignore[call-overload, index]
    assert keys == ["0", "0", "1", "2", "3", "0"]
    assert [array.shape for array in weights.arrays.values()] == [(20, 30)] * 3 + [(30, 20)]
