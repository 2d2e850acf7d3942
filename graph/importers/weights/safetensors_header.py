"""What a file of safetensors says before its tensors: a type, a shape and a place for each.

The format is that of its README: the length of a header in 8 bytes, the header in JSON, then the
tensors without a gap. Nothing is trusted.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from ...errors import ModelError

HEADER_BYTES = 100_000_000  # at most, as the format says
SIZE_BYTES = 8
RANK = 16
NAME = 1024  # characters
ELEMENTS = 1 << 48  # of a shape, sizes of 0 counted as 1
METADATA = "__metadata__"

# bits of the types of the format, and the names of those that are read
BITS: Mapping[str, int] = {
    **{"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8},
    **{"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8},
    **{"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32},
    **{"I64": 64, "U64": 64, "F64": 64},
    # not read:
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "F8_E8M0": 8, "C64": 64},
}


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor: its type as the format names it, its shape, and its bytes in the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_entries(source: str, data: memoryview) -> tuple[list[TensorEntry], Mapping[str, str]]:
    """The tensors of a file in the order of their places, and its metadata. Raises: ModelError."""
    if len(data) < SIZE_BYTES:
        raise ModelError(
            f"model: '{source}' has {len(data)} bytes; expected {SIZE_BYTES} with the length of a "
            "header, and the header.",
            code="safetensors-short",
        )
    size = int.from_bytes(data[:SIZE_BYTES], "little")
    begin = SIZE_BYTES + size
    if not 2 <= size <= HEADER_BYTES or begin > len(data):
        raise ModelError(
            f"model: '{source}' says that its header has {size} bytes; expected 2 to "
            f"{max(2, min(HEADER_BYTES, len(data) - SIZE_BYTES))}.",
            code="safetensors-header-size",
        )
    table = _parsed(source, data[SIZE_BYTES:begin])
    metadata = _metadata(source, table.pop(METADATA, {}))
    entries = [_entry(source, name, item, begin) for name, item in table.items()]
    entries.sort(key=lambda entry: (entry.start, entry.end))
    place, before = begin, "the header"
    for entry in entries:
        if entry.start != place:
            raise ModelError(
                f"model: '{source}': '{entry.name}' begins at byte {entry.start - begin} of the "
                f"tensors; expected {place - begin}, where {before} ends.",
                code="safetensors-gap",
            )
        place, before = entry.end, f"'{entry.name}'"
    if place != len(data):
        raise ModelError(
            f"model: '{source}': the tensors end at byte {place} of {len(data)}; expected the end "
            "of the file.",
            code="safetensors-end",
        )
    return entries, metadata


def _parsed(source: str, data: memoryview) -> dict[str, object]:
    """The object that a header is. Raises: ModelError."""

    def table(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
            raise ModelError(
                f"model: the header of '{source}' has '{twice:.80}' twice.",
                code="safetensors-twice",
            )
        return made

    try:
        found = json.loads(str(data, "utf-8"), object_pairs_hook=table)
    except ModelError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "is no UTF-8" if isinstance(error, UnicodeDecodeError) else "is no JSON"
        raise ModelError(
            f"model: the header of '{source}' {reason}: {type(error).__name__}.",
            code="safetensors-json",
        ) from error
    if not isinstance(found, dict):
        raise ModelError(
            f"model: the header of '{source}' is a {type(found).__name__}; expected an object.",
            code="safetensors-object",
        )
    return found


def _metadata(source: str, item: object) -> dict[str, str]:
    if not isinstance(item, dict) or not all(isinstance(text, str) for text in item.values()):
        raise ModelError(
            f"model: '{source}': '{METADATA}' is {item!r:.80}; expected texts by their keys.",
            code="safetensors-metadata",
        )
    return item


def _entry(source: str, name: str, item: object, begin: int) -> TensorEntry:
    """A tensor of the header. Raises: ModelError."""
    if len(name) > NAME:
        raise ModelError(
            f"model: '{source}': a tensor, '{name:.40}...', has a name of {len(name)} characters; "
            f"expected at most {NAME}.",
            code="safetensors-name",
        )
    fields = item if isinstance(item, dict) else {}
    dtype, shape = fields.get("dtype"), fields.get("shape")
    offsets = fields.get("data_offsets")
    if (
        set(fields) != {"dtype", "shape", "data_offsets"}
        or not isinstance(dtype, str)
        or not _are_sizes(shape)
        or not _are_sizes(offsets)
        or len(offsets) != 2
    ):
        raise ModelError(
            f"model: '{source}': '{name}' is {item!r:.120}; expected its dtype, a shape of sizes "
            "of 0 or more, and two data_offsets.",
            code="safetensors-entry",
        )
    if dtype not in BITS:
        raise ModelError(
            f"model: '{source}': '{name}' has dtype {dtype!r:.40}; expected one of "
            f"{', '.join(BITS)}.",
            code="safetensors-dtype",
        )
    if len(shape) > RANK or math.prod(max(1, size) for size in shape) > ELEMENTS:
        raise ModelError(
            f"model: '{source}': '{name}' has shape {shape!r:.120}; expected at most {RANK} sizes "
            f"and {ELEMENTS} elements.",
            code="safetensors-shape",
        )
    start, end = offsets
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8 or end - start != bits // 8:
        raise ModelError(
            f"model: '{source}': '{name}' has bytes {start} to {end}; {dtype} of shape {shape} "
            f"takes {bits} bits.",
            code="safetensors-size",
        )
    return TensorEntry(name, dtype, tuple(shape), begin + start, begin + end)


def _are_sizes(found: object) -> TypeGuard[list[int]]:
    return isinstance(found, list) and all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in found
    )
