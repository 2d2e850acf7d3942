"""Files of weights that are damaged or hostile: each is refused or right, within its memory."""

from __future__ import annotations

import json
import os
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import ModelError

from ..mutated_bytes import mutated
from .written import (
    gguf_file,
    gguf_head,
    gguf_info,
    gguf_key,
    safetensors_file,
    text,
)

Golden = Callable[[str, str], None]
Reader = Callable[[Path], object]
HERE = Path(__file__).parent
READERS: dict[str, Reader] = {"gguf": tw.read_gguf, "safetensors": tw.read_safetensors}
U32, TEXTS = struct.Struct("<I").pack, 8
FLOATS = bytes(16)


def _info(kind: int = 0, sizes: tuple[int, ...] = (4,), place: int = 0, name: str = "a") -> bytes:
    """A file with one tensor of 16 bytes, of which it says this."""
    head = gguf_head([gguf_info(name, kind, sizes, place)])
    return head + bytes(-len(head) % 32) + FLOATS


def _key(kind: int, value: bytes, name: str | bytes = "key") -> bytes:
    """A file with one key."""
    return gguf_head([], [gguf_key(name, kind, value)])


def _two(place: int, name: str = "b") -> bytes:
    """A file of two tensors of 16 bytes; the place of the second one."""
    head = gguf_head([gguf_info("a", 0, (4,), 0), gguf_info(name, 0, (4,), place)])
    return head + bytes(-len(head) % 32) + bytes(64)


def _array(kind: int, count: int, values: bytes = b"") -> bytes:
    """A file with one key, an array."""
    return _key(9, struct.pack("<IQ", kind, count) + values)


GGUF: dict[str, Callable[[], bytes]] = {
    "no_magic": lambda: b"GGML" + bytes(40),
    "short": lambda: b"GG",
    "version_1": lambda: gguf_head([], version=1),
    "big_endian": lambda: gguf_head([], version=3 << 24),
    "cut_head": lambda: gguf_head([])[:-3],
    "cut_key": lambda: _key(TEXTS, text("value"))[:-2],
    "cut_info": lambda: gguf_head([gguf_info("a", 0, (4,), 0)])[:-3],
    "cut_data": lambda: _info()[:-1],
    "huge_tensors": lambda: gguf_head([], counts=(1 << 63, 0)),
    "huge_keys": lambda: gguf_head([], counts=(0, 1 << 40)),
    "huge_text": lambda: _key(TEXTS, struct.pack("<Q", 1 << 62)),
    "huge_array": lambda: _array(4, 1 << 60),
    "many_texts": lambda: _array(TEXTS, 1000),
    "text_in_array": lambda: _array(TEXTS, 2, text("a") + text(b"\xff")),
    "cut_array": lambda: _array(TEXTS, 2, text("abcdefgh") + struct.pack("<Q", 9)),
    "huge_texts": lambda: _array(TEXTS, 1 << 60),
    "long_name": lambda: _key(4, U32(1), name="k" * 1025),
    "no_utf8": lambda: _key(4, U32(1), name=b"k\xff"),
    "value_type": lambda: _key(13, b""),
    "array_type": lambda: _array(9, 1, struct.pack("<IQ", 4, 0)),
    "key_twice": lambda: gguf_head([], [gguf_key("key", 4, U32(1))] * 2),
    "alignment_0": lambda: gguf_file([], {"general.alignment": (4, U32(0))}),
    "alignment_24": lambda: gguf_file([], {"general.alignment": (4, U32(24))}),
    "alignment_text": lambda: gguf_file([], {"general.alignment": (TEXTS, text("32"))}),
    "alignment_truth": lambda: gguf_file([], {"general.alignment": (7, b"\x01")}),
    "rank": lambda: _info(sizes=(1, 1, 1, 2, 2)),
    "huge_rank": lambda: gguf_head([text("a") + U32(1 << 31) + bytes(16)]),
    "size_0": lambda: _info(sizes=(4, 0)),
    "size_huge": lambda: _info(sizes=(1 << 63, 1 << 63)),
    "block": lambda: _info(kind=2, sizes=(33,)),
    "type": lambda: _info(kind=77),
    "misaligned": lambda: _two(16),
    "beyond": lambda: _two(1 << 40),
    "wraps": lambda: _info(place=(1 << 64) - 32),
    "overlap": lambda: _two(0),
    "name_twice": lambda: _two(32, "a"),
}


def _entry(**fields: object) -> bytes:
    """A file with one tensor of 16 bytes, of which it says this."""
    return safetensors_file(
        {"a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16], **fields}}, FLOATS
    )


def _places(*places: tuple[int, int]) -> bytes:
    """A file of tensors of bytes that lie there."""
    header = {
        name: {"dtype": "U8", "shape": [end - start], "data_offsets": [start, end]}
        for name, (start, end) in zip("abcd", places, strict=False)
    }
    return safetensors_file(header, FLOATS)


SAFETENSORS: dict[str, Callable[[], bytes]] = {
    "short": lambda: b"{}",
    "header_huge": lambda: safetensors_file({}, size=1 << 63),
    "header_cut": lambda: _entry()[:20],
    "header_by_1": lambda: safetensors_file({}, size=3),
    "header_0": lambda: safetensors_file({}, size=0),
    "no_utf8": lambda: safetensors_file(b'{"\xff": 1}'),
    "no_json": lambda: safetensors_file(b"{]"),
    "deep_json": lambda: safetensors_file(b"[" * 100_000),
    "long_number": lambda: safetensors_file(b'{"a": ' + b"1" * 5000 + b"}"),
    "no_object": lambda: safetensors_file(b"[1]"),
    "twice": lambda: safetensors_file(b'{"a": {}, "a": {}}'),
    "field_twice": lambda: safetensors_file(b'{"a": {"dtype": "U8", "dtype": "I8"}}'),
    "metadata": lambda: safetensors_file({"__metadata__": {"a": 1}}),
    "long_name": lambda: safetensors_file({"a" * 1025: {}}),
    "no_entry": lambda: safetensors_file({"a": [1]}),
    "field_missing": lambda: safetensors_file({"a": {"dtype": "F32", "shape": [4]}}),
    "field_other": lambda: _entry(more=1),
    "dtype": lambda: _entry(dtype="F33"),
    "dtype_number": lambda: _entry(dtype=3),
    "negative": lambda: _entry(shape=[-4]),
    "truth": lambda: _entry(shape=[True, 4]),
    "fraction": lambda: _entry(shape=[4.0]),
    "huge": lambda: _entry(shape=[1 << 62, 1 << 62]),
    "huge_empty": lambda: _entry(shape=[0, 1 << 62], data_offsets=[0, 0]),
    "rank": lambda: _entry(shape=[1] * 16 + [4]),
    "size": lambda: _entry(shape=[5]),
    "bits": lambda: _entry(dtype="F4", shape=[31], data_offsets=[0, 15]),
    "negative_place": lambda: _entry(data_offsets=[-16, 0]),
    "backwards": lambda: _entry(data_offsets=[16, 0]),
    "three_places": lambda: _entry(data_offsets=[0, 8, 16]),
    "overlap": lambda: _places((0, 10), (6, 16)),
    "gap": lambda: _places((0, 6), (10, 16)),
    "late": lambda: _places((2, 16)),
    "rest": lambda: _places((0, 10)),
    "cut": lambda: _entry()[:-1],
}
DAMAGED = {"gguf": GGUF, "safetensors": SAFETENSORS}
CASES = [(form, name) for form, cases in DAMAGED.items() for name in cases]


@pytest.mark.parametrize(("form", "name"), CASES, ids=map("_".join, CASES))
def test_damage_is_refused(form: str, name: str, tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / f"model.{form}"
    path.write_bytes(DAMAGED[form][name]())
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as caught:
            READERS[form](path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 23
    finally:
        tracemalloc.stop()
    golden(f"errors/{form}_damage_{name}.txt", str(caught.value))


@pytest.mark.parametrize("whole", [_info(), _two(32), _key(4, U32(1)), _array(4, 0)])
def test_what_damage_was_done_to_is_read(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(whole)
    assert all(tw.read_gguf(path)[name].size == 4 for name in tw.read_gguf(path))


def test_entries_that_damage_was_done_to_are_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for whole, sizes in ((_entry(), [4]), (_places((0, 6), (6, 16), (6, 6)), [6, 0, 10])):
        path.write_bytes(whole)
        weights = tw.read_safetensors(path)
        assert [weights[name].size for name in weights] == sizes


@pytest.mark.parametrize("form", READERS)
def test_files_that_cannot_be_read(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("empty").touch()
    for name in ("pipe", "empty", "none", "a\0b"):
        with pytest.raises(ModelError) as caught:
            READERS[form](Path(name))
        assert isinstance(caught.value, OSError)
        if form == "gguf":
            golden(f"errors/gguf_file_{name.partition(chr(0))[0]}.txt", str(caught.value))


def _mutated_header(data: bytes, rng: random.Random) -> bytes:
    """A file of safetensors with one value of its header changed."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    entry = header[rng.choice(sorted(set(header) - {"__metadata__"}))]
    holder, key = entry, rng.choice(sorted(entry))
    if isinstance(holder[key], list) and holder[key] and rng.random() < 0.8:
        holder, key = holder[key], rng.randrange(len(holder[key]))
    holder[key] = rng.choice((None, -1, 0, 3, 10**12, 1 << 70, "", "F16", [], {}, True, 1e300))
    return safetensors_file(header, data[8 + size :])


def _outcome(read: Reader, path: Path) -> set[str]:
    """The codes of what is refused, and whether anything is read."""
    try:
        weights = read(path)
    except ModelError as error:
        return {error.code}
    found = set[str]()
    for name in weights:  # type: ignore[attr-defined]
        try:
            one = weights[name]  # type: ignore[index]
        except ModelError as error:
            found.add(error.code)
            continue
        whole = one.dequantized() if isinstance(one, tw.BlockWeights) else np.array(one)
        found.add("read")
        assert whole.size < 1 << 20
    return found


@pytest.mark.parametrize("part", range(10))
@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", READERS)
def test_1000_mutated_files(form: str, part: int, tmp_path: Path) -> None:
    rng = random.Random(part)
    source = {"gguf": "blocks.gguf", "safetensors": "types.safetensors"}[form]
    data, path = (HERE / source).read_bytes(), tmp_path / source
    head = 1024 if form == "gguf" else len(data)  # where most of a file of GGUF is decided
    outcomes = set[str]()
    for number in range(50):
        if form == "safetensors" and number % 2:
            path.write_bytes(_mutated_header(data, rng))
        elif number % 3:
            path.write_bytes(mutated(data[:head], rng) + data[head:])
        else:
            path.write_bytes(mutated(data, rng))
        outcomes |= _outcome(READERS[form], path)
    assert form == "safetensors" or "read" in outcomes
    assert len(outcomes) > 3  # refusals differ
