"""Files of safetensors give what their own package wrote, and layers of GPTQ and AWQ as blocks."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright as tw
from tilewright.graph.errors import ModelError
from tilewright.runtime.machine.timing import sample

from .written import Entry, safetensors_file, safetensors_of

Golden = Callable[[str, str], None]
Arrays = dict[str, NDArray[np.generic]]
HERE = Path(__file__).parent
WANTED = dict(np.load(HERE / "types.npz"))
DTYPES = {"int32": "I32", "float16": "F16", "float32": "F32", "float64": "F64"}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


@pytest.mark.parametrize("name", WANTED)
def test_numbers_of_each_type(name: str) -> None:
    found = tw.read_safetensors(HERE / "types.safetensors")[name]
    assert found.shape == (3, 4)
    assert np.array_equal(found.astype(np.float64), WANTED[name], equal_nan=True)
    assert not found.flags.writeable


def test_empty_tensors_scalars_and_metadata() -> None:
    weights = tw.read_safetensors(HERE / "types.safetensors")
    assert weights["empty"].shape == (0, 3)
    assert weights["scalar"].shape == ()
    assert weights["scalar"] == 2.5
    assert weights.metadata == {"format": "pt"}
    assert len(weights) == len(WANTED) + 2


def _file(folder: Path, arrays: Arrays, name: str = "model.safetensors") -> Path:
    """A file of these arrays."""
    entries: dict[str, Entry] = {
        key: (DTYPES[array.dtype.name], array.shape, array.tobytes())
        for key, array in arrays.items()
    }
    path = folder / name
    path.write_bytes(safetensors_of(entries))
    return path


def test_a_model_in_several_files(tmp_path: Path) -> None:
    one = _file(tmp_path, {"a": np.arange(3.0)}, "one.safetensors")
    two = _file(tmp_path, {"b": np.arange(4.0)}, "two.safetensors")
    weights = tw.read_safetensors(one, two)
    assert weights["b"].tolist() == [0, 1, 2, 3]
    assert repr(weights) == "one.safetensors, two.safetensors: 2 tensors (2 F64), 56 B"


def test_numbers_that_are_not_aligned_are_copied(tmp_path: Path) -> None:
    header = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    for spaces in range(8):
        padded = str(header).replace("'", '"').encode() + b" " * spaces
        path = tmp_path / "model.safetensors"
        path.write_bytes(safetensors_file(padded, np.float32([1, 2]).tobytes()))
        found = tw.read_safetensors(path)["a"]
        assert found.flags.aligned
        assert not found.flags.writeable
        assert found.tolist() == [1, 2]


def test_a_file_of_5_gb_opens_at_once(tmp_path: Path) -> None:
    path, size = tmp_path / "large.safetensors", 5_000_000_000
    entry = {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}
    header = json.dumps({"a": entry}).encode()
    head = safetensors_file(header + b" " * (-len(header) % 8))
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + size)  # without blocks on the disk
    tracemalloc.start()
    try:
        weights = tw.read_safetensors(path)
        assert weights["a"].shape == (size // 4,)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert min(sample(lambda: tw.read_safetensors(path), 1) for _ in range(5)) < 0.01  # seconds


def _words(levels: NDArray[np.int64], bits: int) -> NDArray[np.int32]:
    """Words of levels [..., n, 32 / bits], the first in the lowest bits."""
    moved = [level << (place * bits) for place, level in enumerate(np.moveaxis(levels, -1, 0))]
    return np.sum(moved, axis=0).astype(np.uint32).view(np.int32)


def _gptq(bits: int, steps: int, columns: int, group: int, *, act_order: bool) -> Arrays:
    """A layer of random levels, zeros, scales, and groups of rows."""
    rng, count = np.random.default_rng(bits), 32 // bits
    groups = np.arange(steps) // group
    levels = rng.integers(0, 1 << bits, (steps // count, count, columns))
    zeros = rng.integers(0, 1 << bits, (steps // group, columns // count, count))
    zeros[0, 0, 0] = (1 << bits) - 1  # the largest
    return {
        "up.qweight": _words(np.moveaxis(levels, 1, -1), bits),
        "up.qzeros": _words(zeros, bits),
        "up.scales": rng.standard_normal((steps // group, columns)).astype(np.float16),
        "up.g_idx": (rng.permutation(groups) if act_order else groups).astype(np.int32),
    }


def _gptq_by_definition(parts: Arrays, bits: int, less: int) -> NDArray[np.float32]:
    """The matrix, number by number: (level - (zero + less)) scale, of the group of the row."""
    words, zeros = parts["up.qweight"], parts["up.qzeros"]
    (_, columns), groups = words.shape, parts["up.g_idx"]
    count, mask = 32 // bits, (1 << bits) - 1
    made = np.empty((len(groups), columns), np.float32)
    for k, g in enumerate(groups):
        for n in range(columns):
            level = (int(words[k // count, n]) >> (bits * (k % count))) & mask
            zero = (int(zeros[g, n // count]) >> (bits * (n % count))) & mask
            made[k, n] = np.float32(level - (zero + less)) * np.float32(parts["up.scales"][g, n])
    return made


@pytest.mark.parametrize("act_order", [False, True])
@pytest.mark.parametrize(("gptq_format", "less"), [("gptq", 1), ("gptq_v2", 0)])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_layers_of_gptq(
    bits: int, gptq_format: str, less: int, act_order: bool, tmp_path: Path
) -> None:
    parts = _gptq(bits, 64, 32, 16, act_order=act_order)
    weights = tw.read_safetensors(_file(tmp_path, parts), gptq_format=gptq_format)
    assert list(weights) == ["up.weight"]
    found = weights["up.weight"]
    assert (found.shape, found.bits, found.group) == ((64, 32), bits, 16)
    assert (found.order is not None) == act_order
    assert np.array_equal(found.dequantized(), _gptq_by_definition(parts, bits, less))


def test_a_layer_of_gptq_needs_no_groups_of_rows(tmp_path: Path) -> None:
    parts = _gptq(4, 64, 32, 16, act_order=False)
    wanted = _gptq_by_definition(parts, 4, 1)
    del parts["up.g_idx"]
    parts |= {"up.bias": np.zeros(32, np.float32), "norm.scales": np.zeros(4, np.float32)}
    weights = tw.read_safetensors(_file(tmp_path, parts))
    assert sorted(weights) == ["norm.scales", "up.bias", "up.weight"]
    assert np.array_equal(weights["up.weight"].dequantized(), wanted)


def test_layers_of_awq(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    levels, zeros = rng.integers(0, 16, (64, 24)), rng.integers(0, 16, (4, 24))
    scales = rng.standard_normal((4, 24)).astype(np.float16)

    def words(numbers: NDArray[np.int64]) -> NDArray[np.int32]:
        return _words(numbers.reshape(-1, 3, 8)[..., AWQ_ORDER], 4)

    parts = {"up.qweight": words(levels), "up.qzeros": words(zeros), "up.scales": scales}
    found = tw.read_safetensors(_file(tmp_path, parts))["up.weight"]
    wanted = np.empty((64, 24), np.float32)
    for k in range(64):
        for n in range(24):
            wanted[k, n] = np.float32(levels[k, n] - zeros[k // 16, n]) * np.float32(
                scales[k // 16, n]
            )
    assert (found.shape, found.bits, found.group) == ((64, 24), 4, 16)
    assert np.array_equal(found.dequantized(), wanted)


def _changed(**parts: NDArray[np.generic] | None) -> Arrays:
    """A layer of GPTQ with other parts, or without them."""
    layer = {key.removeprefix("up."): a for key, a in _gptq(4, 64, 32, 16, act_order=True).items()}
    layer |= parts  # type: ignore[arg-type]
    return {f"up.{part}": array for part, array in layer.items() if array is not None}


GROUPS = np.arange(64, dtype=np.int32) // 16
MISFITS: dict[str, Arrays] = {
    "missing": _changed(qzeros=None, scales=None),
    "type": _changed(scales=np.zeros((4, 32), np.int32)),
    "rank": _changed(qweight=np.zeros(256, np.int32)),
    "columns": _changed(scales=np.zeros((4, 33), np.float16)),
    "bits": _changed(qzeros=np.zeros((4, 3), np.int32)),
    "groups": _changed(g_idx=np.where(GROUPS == 3, 2, GROUPS).astype(np.int32)),
    "negative_group": _changed(g_idx=GROUPS - 1),
    "rows": _changed(g_idx=GROUPS[:60]),
    "steps": _changed(scales=np.zeros((5, 32), np.float16), qzeros=np.zeros((5, 4), np.int32)),
    "awq_steps": _changed(
        qweight=np.zeros((62, 4), np.int32), g_idx=None, scales=np.zeros((4, 32), np.float16)
    ),
    "awq_zeros": _changed(qweight=np.zeros((64, 4), np.int32), qzeros=np.zeros((3, 4), np.int32)),
}


@pytest.mark.parametrize("name", MISFITS)
def test_parts_that_do_not_fit_together(name: str, tmp_path: Path, golden: Golden) -> None:
    weights = tw.read_safetensors(_file(tmp_path, MISFITS[name]))
    with pytest.raises(ModelError) as caught:
        weights["up.weight"]
    golden(f"errors/packed_{name}.txt", str(caught.value))


def test_names_formats_and_types_that_are_refused(tmp_path: Path, golden: Golden) -> None:
    layer = _gptq(4, 64, 32, 16, act_order=False) | {"up.weight": np.zeros(3)}
    both, one = _file(tmp_path, layer, "both.safetensors"), _file(tmp_path, {"a": np.zeros(3)})
    complex_ = tmp_path / "complex.safetensors"
    complex_.write_bytes(safetensors_of({"z": ("C64", (2,), bytes(16))}))
    mistakes: dict[str, Callable[[], object]] = {
        "format": lambda: tw.read_safetensors(one, gptq_format="v2"),
        "none": lambda: tw.read_safetensors(),
        "two": lambda: tw.read_safetensors(one, one),
        "weight": lambda: tw.read_safetensors(both),
        "kind": lambda: tw.read_safetensors(complex_)["z"],
    }
    for name, mistake in mistakes.items():
        with pytest.raises(ModelError) as caught:
            mistake()
        golden(f"errors/safetensors_{name}.txt", str(caught.value))
