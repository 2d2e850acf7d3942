"""Write a model as C that needs neither Python nor anything else: model.c, model.h, Makefile and
weights.bin. Its thread pool is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...codegen.c.export import FILE, export_texts, weight_offsets
from ...codegen.program_artifact import ProgramArtifact
from ...tir.errors import TilewrightError
from ...tir.output_file import writing_folder
from ..arrays import Array
from ..cpu.pool import pool_source
from ..machine.host import why_not_run
from ..toolchain.compilers import isa_flags
from .parts import EngineParts

WEIGHTS = "weights.bin"

_STRICT = ("-pthread", "-Wall", "-Wextra", "-Werror")


class ExportError(TilewrightError, ValueError):
    """An engine cannot be written as C."""


def export_c(parts: EngineParts, folder: Path) -> Path:
    """Write the files; the folder, which is made where it is not there.

    Raises: ExportError for an engine that was not compiled to C, for one that has variants, and for
    one whose constants a machine that has its instructions is yet to compute; OutputFileError.
    """
    artifact = parts.code.c_program
    if artifact is None:
        raise ExportError(
            f"export: '{parts.artifact.name}' is built for target '{parts.artifact.target}'; "
            "expected 'c'.",
            code="export-target",
            hints=('tw.compile(model, target="c").export_c(folder)',),
        )
    if parts.variants:
        listed = "; ".join(map(str, parts.variants))
        raise ExportError(
            f"export: '{artifact.name}' has variants for {listed}; its C has one code for all "
            "sizes.",
            code="export-variants",
            hints=(
                "tw.compile(model, shapes={...}) without specialise exports that; sizes that are "
                "numbers export a variant alone.",
            ),
        )
    if not parts.are_prepared:
        raise ExportError(
            f"export: '{artifact.name}' is for {artifact.target}, {why_not_run(artifact.target)}; "
            "expected a machine that can pack its weights.",
            code="export-foreign",
            hints=("engine.save(path) here, tw.load(path).export_c(folder) on such a machine.",),
        )
    weights = _weights(artifact, parts.constants)
    isa = isa_flags(artifact.target)
    flags = ("-std=c11", "-O2", "-ffp-contract=off", "-fno-math-errno", *isa, *_STRICT)
    texts = export_texts(artifact, pool_source(), flags, _sums(weights))
    with writing_folder(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{FILE}.c").write_text(texts.source, encoding="utf-8")
        (folder / f"{FILE}.h").write_text(texts.header, encoding="utf-8")
        (folder / "Makefile").write_text(texts.makefile, encoding="utf-8")
        (folder / WEIGHTS).write_bytes(weights.data)
    return folder


def _weights(
    artifact: ProgramArtifact, constants: Sequence[Array | None]
) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The bytes of the file of weights."""
    offsets, size = weight_offsets(artifact)
    data = np.zeros(size, np.uint8)
    for position, offset in zip(artifact.read, offsets, strict=True):
        array = constants[position]
        if array is not None:
            data[offset : offset + array.nbytes] = _bytes(array)
    return data


def _bytes(array: Array) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.asarray(array, order="C").reshape(-1).view(np.uint8)


def _sums(data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> tuple[int, int]:
    """The sum of the 64-bit words, and the sum of the running sums, both modulo 2**64."""
    words = data.view("<u8")
    weights = np.arange(words.size, 0, -1, dtype=np.uint64)
    return int(words.sum(dtype=np.uint64)), int((words * weights).sum(dtype=np.uint64))
