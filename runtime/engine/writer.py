"""Write the parts of an engine as a file: see format.py."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from ...tir.errors import IRError
from ...tir.json_reader import Json, Reader
from ..arrays import ALIGNMENT, Array
from ..artifact_json import plan_from_json, plan_to_json, report_from_json, report_to_json
from ..files.replacement import replacing
from ..model.model import StoredModel
from ..version import tool_version
from .block_sums import BlockSums
from .equal_arrays import EqualArrays, repeats_one_value
from .format import (
    ABI,
    FORMAT,
    KEPT,
    MANIFEST,
    PLAIN,
    PROGRAM,
    REFERENCE,
    SUMMED,
    VARIANTS,
    WEIGHTS,
    EngineFileError,
    Requirements,
    check_name,
    platform_name,
    variant_section,
)
from .parts import EngineParts
from .safetensors import SafetensorsWriter

_PADDING_FIELD = 0xD935  # the extra field by which zipalign aligns
_ZIP64_FROM = 1 << 31
_ZIP64_FIELD = 20  # bytes that zipfile adds to a local header
_LOCAL_HEADER = 30


def write_file(
    parts: EngineParts, path: Path, *, keep_weights: bool = True, sync: bool = True
) -> None:
    """Write the file beside its place, then move it there in one step.

    keep_weights: with the plain program, its weights and the reference. sync: see that it is on the
    disk before it takes the place of another.
    """
    place = Path(os.path.realpath(path))
    with replacing(place, sync=sync) as file:
        _write(parts, file, keep_weights)


def to_bytes(parts: EngineParts, *, keep_weights: bool = True) -> bytes:
    """The bytes of the file."""
    file = io.BytesIO()
    _write(parts, file, keep_weights)
    return file.getvalue()


def _write(parts: EngineParts, file: BinaryIO, keep_weights: bool) -> None:
    weights = _Weights()
    program = _program(parts, weights)
    if parts.variants:
        program[VARIANTS] = [
            {
                "sizes": [list(pair) for pair in one.sizes],
                "padding": None if one.padding is None else dict(asdict(one.padding)),
                **_program(one.parts, weights),
            }
            for one in parts.variants
        ]
    run = dict(weights.arrays)
    texts = _models(parts, weights) if keep_weights else {}
    sections = dict(parts.code.sections())
    for number, variant in enumerate(parts.variants):
        own = dict(variant.parts.code.sections())
        sections |= {variant_section(number, name): data for name, data in own.items()}
        if keep_weights:
            models = _models(variant.parts, weights)
            texts |= {variant_section(number, name): text for name, text in models.items()}
    kept = {key: array for key, array in weights.arrays.items() if key not in run}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as opened:
        archive = _Archive(file, opened)
        archive.add(PROGRAM, json.dumps(program).encode())
        for name, text in texts.items():
            archive.add(name, text.encode())
        for name, data in sections.items():
            archive.add(name, data)
        for name, arrays in ((WEIGHTS, run), (KEPT, kept)):
            if arrays or name == WEIGHTS:
                writer = SafetensorsWriter(arrays)
                archive.add_pieces(name, writer.pieces(), writer.size)
        archive.add(MANIFEST, archive.manifest(parts.artifact.name, _requirements(parts)))


def _program(parts: EngineParts, weights: _Weights) -> dict[str, Json]:
    """What an engine is, without texts and what was compiled of them."""
    program: dict[str, Json] = {
        "artifact": parts.code.to_json(),
        "report": report_to_json(parts.report),
        "plan": plan_to_json(parts.plan),
        "constants": [None if array is None else weights.place(array) for array in parts.constants],
    }
    _check_readable(parts, program)
    return program


def _models(parts: EngineParts, weights: _Weights) -> dict[str, str]:
    """The models that are kept to build from and to verify against, by section."""
    models = {PLAIN: parts.plain, REFERENCE: parts.reference}
    return {name: _model(model, weights) for name, model in models.items() if model is not None}


def _check_readable(parts: EngineParts, program: dict[str, Json]) -> None:
    """Raise EngineFileError for what a reader would not take, before it is written."""
    try:
        data = Reader(program, "program")
        sections = {name: memoryview(section) for name, section in parts.code.sections()}
        parts.code.read(data["artifact"], sections, parts.code.compiler)
        report_from_json(data["report"])
        plan_from_json(data["plan"])
    except IRError as error:
        raise EngineFileError(
            f"engine file: '{parts.artifact.name[:40]}' cannot be kept: {error.message}",
            code="engine-file-unreadable",
        ) from error


def _requirements(parts: EngineParts) -> Requirements:
    isa = parts.artifact.target.instructions
    return Requirements(ABI, platform_name(), isa, parts.code.compiler, tool_version())


def _model(model: StoredModel, weights: _Weights) -> str:
    constants = {name: weights.place(array) for name, array in model.constants.items()}
    return json.dumps({"program": model.text, "constants": constants})


class _Weights:
    """The arrays of the file: equal ones once, repeated values as one value."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self._equal = EqualArrays()
        self._names: dict[int, str] = {}  # of arrays that are kept

    def place(self, array: Array) -> Json:
        """Where the array stands: its type, and its key, or the one value that it repeats."""
        described: dict[str, Json] = {"dtype": array.dtype.name, "shape": list(array.shape)}
        if repeats_one_value(array):
            return {**described, "value": array.flat[0].tobytes().hex()}
        first = self._equal.first(array)
        name = self._names.setdefault(id(first), str(len(self.arrays)))
        self.arrays.setdefault(name, first)
        return {**described, "key": name}


class _Archive:
    """A zip under construction; every section starts at a multiple of 64 bytes."""

    def __init__(self, file: BinaryIO, opened: zipfile.ZipFile) -> None:
        self._file = file
        self._zip = opened
        self._sections: dict[str, Json] = {}

    def add(self, name: str, data: bytes) -> None:
        """A section."""
        self.add_pieces(name, (data,), len(data))

    def add_pieces(self, name: str, pieces: Iterable[bytes | memoryview], size: int) -> None:
        """A section of `size` bytes, in pieces."""
        wide = size >= _ZIP64_FROM
        info = zipfile.ZipInfo(name)  # of a fixed date: equal engines give equal files
        info.external_attr = 0o644 << 16
        info.extra = self._padding(name, _ZIP64_FIELD if wide else 0)
        digest = BlockSums() if name in SUMMED else hashlib.sha256()
        with self._zip.open(info, "w", force_zip64=wide) as section:
            for piece in pieces:
                digest.update(piece)
                section.write(piece)
        self._sections[name] = {"bytes": size, check_name(name): digest.hexdigest()}

    def manifest(self, name: str, requirements: Requirements) -> bytes:
        """The text of the manifest: every section so far."""
        manifest: dict[str, Json] = {
            "format": FORMAT,
            "name": name,
            "requires": dict(asdict(requirements)),
            "sections": dict(self._sections),
        }
        return json.dumps(manifest, indent=1).encode()

    def _padding(self, name: str, added: int) -> bytes:
        """An extra field that moves the section's first byte to a multiple of 64."""
        start = self._file.tell() + _LOCAL_HEADER + len(name) + added
        size = -(start + 6) % ALIGNMENT
        field = _PADDING_FIELD.to_bytes(2, "little") + (2 + size).to_bytes(2, "little")
        return field + ALIGNMENT.to_bytes(2, "little") + bytes(size)
