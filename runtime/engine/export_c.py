"""Write a model as C that needs neither Python nor anything else: model.c, model.h, Makefile and
weights.bin. Its thread pool is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...codegen.c.export import (
    FILE,
    ExportedVariant,
    WeightsFile,
    export_target,
    export_texts,
)
from ...tir.errors import TilewrightError
from ...tir.output_file import writing_folder
from ..arrays import ALIGNMENT, Array
from ..cpu.pool import pool_source
from ..machine.host import why_not_run
from ..toolchain.compilers import isa_flags
from .equal_arrays import EqualArrays
from .parts import EngineParts, Variant

WEIGHTS = "weights.bin"

_STRICT = ("-pthread", "-Wall", "-Wextra", "-Werror")


class ExportError(TilewrightError, ValueError):
    """An engine cannot be written as C."""


def export_c(parts: EngineParts, folder: Path) -> Path:
    """Write the files; the folder, which is made where it is not there.

    Raises: ExportError for an engine that was not compiled to C, and for one whose constants a
    machine that has its instructions is yet to compute; OutputFileError.
    """
    artifact = parts.code.c_program
    if artifact is None:
        raise ExportError(
            f"export: '{parts.artifact.name}' is built for target '{parts.artifact.target}'; "
            "expected 'c'.",
            code="export-target",
            hints=('tw.compile(model, target="c").export_c(folder)',),
        )
    if not all(one.are_prepared for one in (parts, *(v.parts for v in parts.variants))):
        raise ExportError(
            f"export: '{artifact.name}' is for {artifact.target}, {why_not_run(artifact.target)}; "
            "expected a machine that can pack its weights.",
            code="export-foreign",
            hints=("engine.save(path) here, tw.load(path).export_c(folder) on such a machine.",),
        )
    weights, data = _weights([parts, *(variant.parts for variant in parts.variants)])
    variants = [_exported(variant) for variant in parts.variants]
    isa = isa_flags(export_target(artifact, variants))
    flags = ("-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno", *isa, *_STRICT)
    texts = export_texts(artifact, pool_source(), flags, weights, variants)
    with writing_folder(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{FILE}.c").write_text(texts.source, encoding="utf-8")
        (folder / f"{FILE}.h").write_text(texts.header, encoding="utf-8")
        (folder / "Makefile").write_text(texts.makefile, encoding="utf-8")
        (folder / WEIGHTS).write_bytes(data.data)
    return folder


def _exported(variant: Variant) -> ExportedVariant:
    artifact = variant.parts.code.c_program
    assert artifact is not None  # as that of the whole
    return ExportedVariant(str(variant), variant.sizes, artifact)


def _weights(
    parts: Sequence[EngineParts],
) -> tuple[WeightsFile, np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    """The file of weights for some codes of a model: arrays of equal bits stand in it once."""
    equal, placed, size = EqualArrays(), dict[int, int](), 0
    arrays, offsets = list[Array](), list[tuple[int, ...]]()
    for one in parts:
        own = list[int]()
        for position in one.artifact.read:
            array = one.constants[position]
            assert array is not None, position
            bits = _bytes(array)
            first = equal.first(bits)
            if first is bits:
                placed[id(bits)] = size
                arrays.append(bits)
                size += -(-bits.nbytes // ALIGNMENT) * ALIGNMENT
            own.append(placed[id(first)])
        offsets.append(tuple(own))
    data = np.zeros(size, np.uint8)
    for array in arrays:
        data[placed[id(array)] :][: array.nbytes] = array
    return WeightsFile(tuple(offsets), size, _sums(data)), data


def _bytes(array: Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.asarray(array, order="C").reshape(-1).view(np.uint8)


def _sums(data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> tuple[int, int]:
    """The sum of the 64-bit words, and the sum of the running sums, both modulo 2**64."""
    words = data.view("<u8")
    weights = np.arange(words.size, 0, -1, dtype=np.uint64)
    return int(words.sum(dtype=np.uint64)), int((words * weights).sum(dtype=np.uint64))
