"""Files of GGUF give the numbers that gguf makes of them, and what else they say."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright.graph.errors import ModelError
from tilewright.runtime.machine.timing import sample

from .written import gguf_file

Golden = Callable[[str, str], None]
HERE = Path(__file__).parent
WANTED = dict(np.load(HERE / "blocks.npz"))
READ = sorted(name for name in WANTED if name != "random.Q5_K")


def _bits(array: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The bits of each number; those of NaN, which processors make differently, are one pattern."""
    dense = np.where(np.isnan(array), np.float32(np.nan), array)
    return np.ascontiguousarray(dense).view(np.uint32)


@pytest.mark.parametrize("name", READ)
def test_numbers_are_those_of_gguf_bit_for_bit(name: str) -> None:
    found = tw.read_gguf(HERE / "blocks.gguf")[name]
    if isinstance(found, tw.BlockWeights):
        assert found.shape == WANTED[name].shape[::-1]
        found = found.dequantized().T
    assert np.array_equal(_bits(found.astype(np.float32)), _bits(WANTED[name].astype(np.float32)))


def test_random_blocks_have_odd_scales() -> None:
    numbers = np.concatenate([WANTED[name].ravel() for name in READ if "random" in name])
    assert np.isnan(numbers).any()
    assert np.isinf(numbers).any()
    assert (numbers == 0).any()


def test_types_that_numpy_has_are_the_bytes_of_the_file() -> None:
    weights = tw.read_gguf(HERE / "blocks.gguf")
    kinds = {"plain.F32": "float32", "quantised.F16": "float16", "quantised.BF16": "bfloat16"}
    for name, dtype in kinds.items():
        array = weights[name]
        assert array.dtype.name == dtype
        assert array.flags.aligned
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_levels_are_packed() -> None:
    weights = tw.read_gguf(HERE / "blocks.gguf")
    found = weights["random.Q4_0"]
    assert (found.bits, found.group, found.levels.shape) == (4, 32, (5, 3, 16))
    assert found.scales.dtype == np.float16
    assert weights["random.Q6_K"].group == 16
    assert weights["random.Q4_K"].offsets.shape == (5, 24)


def test_metadata_has_the_types_of_python() -> None:
    found = dict(tw.read_gguf(HERE / "blocks.gguf").metadata)
    assert found.pop("test.numbers").tolist() == [1, -2, 3]
    assert found.pop("test.truths").tolist() == [True, False]
    assert found == {
        "general.architecture": "test",
        "test.count": 3,
        "test.negative": -(1 << 40),
        "test.half": 0.5,
        "test.yes": True,
        "test.text": "größer",
        "test.words": ("a", "", "b ü"),
    }


def test_it_is_a_mapping() -> None:
    weights = tw.read_gguf(HERE / "blocks.gguf")
    assert sorted(weights) == sorted(WANTED)
    assert len(weights) == len(WANTED)
    assert "plain.F32" in weights
    assert weights.get("plain.F16") is None
    assert weights.kinds["random.Q4_K"] == "Q4_K"
    assert repr(weights) == (
        "blocks.gguf: 10 tensors (2 Q4_0, 2 Q8_0, 1 Q4_K, 1 Q6_K, 1 Q5_K, 1 BF16, 1 F16, 1 F32), "
        "9.81 KiB"
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [1, 8, 64])
def test_versions_and_alignments(version: int, alignment: int, tmp_path: Path) -> None:
    numbers = {name: np.arange(size, dtype=np.float32) for name, size in (("a", 3), ("b", 5))}
    keys = {"general.alignment": (4, np.uint32(alignment).tobytes())}
    tensors = [(name, 0, (len(a),), a.tobytes()) for name, a in numbers.items()]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(tensors, keys, version=version, alignment=alignment))
    weights = tw.read_gguf(path)
    for name, wanted in numbers.items():
        assert weights[name].tolist() == wanted.tolist()
        assert weights[name].flags.aligned


def test_a_tensor_has_its_rows_last(tmp_path: Path) -> None:
    numbers = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file([("a", 0, (4, 3, 2), numbers.tobytes())]))
    assert np.array_equal(tw.read_gguf(path)["a"], numbers)


def test_a_file_of_5_gb_opens_at_once(tmp_path: Path) -> None:
    path, count = tmp_path / "large.gguf", 1_250_000_000
    head = gguf_file([("a", 0, (count,), b"")])
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + 4 * count)  # without blocks on the disk
    tracemalloc.start()
    try:
        weights = tw.read_gguf(path)
        assert weights["a"][-1] == 0
        assert weights["a"].size == count
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert min(sample(lambda: tw.read_gguf(path), 1) for _ in range(5)) < 0.01  # seconds


def test_types_and_shapes_that_are_not_read(tmp_path: Path, golden: Golden) -> None:
    weights = tw.read_gguf(HERE / "blocks.gguf")
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file([("experts", 2, (32, 2, 2), bytes(72))]))
    for code, source, name in (
        ("kind", weights, "random.Q5_K"),
        ("name", weights, "random.Q4_1"),
        ("matrix", tw.read_gguf(path), "experts"),
    ):
        with pytest.raises(ModelError) as caught:
            source[name]
        golden(f"errors/gguf_{code}.txt", str(caught.value))
