"""Read the file of an engine: see format.py. What it says is believed only within bounds."""

from __future__ import annotations

import hashlib
import io
import mmap
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...tir.errors import IRError
from ...tir.json_reader import Reader, parse_json
from ..arrays import ALIGNMENT, Array, address, empty_aligned
from ..artifact_json import plan_from_json, report_from_json
from ..cpu.pages import ask_for_large_pages
from ..files.regular_file import open_regular
from ..model.model import StoredModel
from .block_sums import block_sums
from .engine_code import Constants, EngineCode, ReadCode, Sections
from .format import (
    BINARY,
    KEPT,
    MANIFEST,
    PLAIN,
    PROGRAM,
    READABLE,
    REFERENCE,
    SUMMED,
    VARIANTS,
    WEIGHTS,
    EngineFileError,
    EngineFileMissing,
    Malformed,
    Requirements,
    check_name,
    variant_section,
)
from .parts import EngineParts, Padding, Variant
from .safetensors import read_safetensors, stored_type
from .variants import fits

_MOST_VARIANTS, _MOST_SIZES = 1 << 10, 64
_MOST_SECTIONS = 1 << 14  # one for each kernel's source, and few others
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, lengths of the name and of the extra field
_SIGNATURE = b"PK\x03\x04"
_LARGEST_MANIFEST = 1 << 22  # bytes


class _Kept(Mapping[str, Array]):
    """Constants that nobody reads to run: the sums of their section are checked before the first
    is handed out, so that a start does not read what it does not need.
    """

    def __init__(self, arrays: Mapping[str, Array], verify: Callable[[], None]) -> None:
        self._arrays = arrays
        self._verify: Callable[[], None] | None = verify

    def __getitem__(self, name: str) -> Array:
        if self._verify is not None:
            self._verify()
            self._verify = None
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


class EngineFile:
    """An engine's file, its bounds checked, and all that a run reads compared with what was
    written.
    """

    def __init__(self, source: Path | bytes, *, copy: bool = False) -> None:
        """Open and verify the file, or the bytes of one.

        copy: read the file into memory. Otherwise it is mapped: what becomes of its bytes becomes
        of the engine's weights.
        Raises: OSError where the file cannot be read; EngineFileError.
        """
        self.title = str(source) if isinstance(source, Path) else "bytes"
        self._sections = self._read(source, copy)
        if MANIFEST not in self._sections or len(self._sections[MANIFEST]) > _LARGEST_MANIFEST:
            raise self._no_engine("it has no manifest")
        try:
            manifest = parse_json(bytes(self._sections.pop(MANIFEST)), "manifest")
            self._check_format(manifest)
            self.name = manifest["name"].text()
            self.requirements = _requirements(manifest["requires"])
            self._expected = self._listed(manifest["sections"])
            for name in self._sections:
                if name != KEPT:
                    self._verify(name)
        except (IRError, Malformed) as error:
            raise self._malformed(error) from error

    def missing(self, isas: tuple[str, ...]) -> tuple[str, ...]:
        """What a machine with these instruction sets lacks for the compiled code, one line each."""
        return () if BINARY not in self._sections else self.requirements.missing(isas)

    def parts(self, read: ReadCode) -> EngineParts:
        """The parts of the engine; its weights stay where the file was mapped or read.

        read: makes the code of its sections, as the kind of its target does.
        The constants of the plain program and of the reference raise EngineFileError when they are
        first read from a file whose kept weights are damaged.
        Raises: EngineFileError for sections that contradict each other.
        """
        try:
            program = parse_json(bytes(self._section(PROGRAM)), "program")
            weights = read_safetensors(self._section(WEIGHTS))
            if KEPT in self._sections:
                weights |= read_safetensors(self._sections[KEPT])
            parts = self._parts(program, self._sections, weights, read)
            listed = program.optional(VARIANTS)
            variants = () if listed is None else listed.items(_MOST_VARIANTS)
            for number, data in enumerate(variants):
                start = variant_section(number, "")
                sections = {
                    name.removeprefix(start): section
                    for name, section in self._sections.items()
                    if name.startswith(start)
                }
                variant = Variant(
                    _named_sizes(data["sizes"]),
                    self._parts(data, sections, weights, read),
                    _padding(data),
                )
                if not fits(parts, variant):
                    raise Malformed(f"the variant for {variant} is not one of its program.")
                parts = replace(parts, variants=(*parts.variants, variant))
            return parts
        except (IRError, Malformed) as error:
            raise self._malformed(error) from error

    def _parts(
        self, data: Reader, sections: Sections, weights: dict[str, Array], read: ReadCode
    ) -> EngineParts:
        """The parts of the engine, or of a variant of it, without variants."""
        code = read(data["artifact"], sections, self.requirements.compiler)
        constants = tuple(
            None if item.value is None else _aligned(_constant(item, weights))
            for item in data["constants"].items()
        )
        _check_constants(code, constants)
        return EngineParts(
            code,
            constants,
            report_from_json(data["report"]),
            plan_from_json(data["plan"]),
            self._model(PLAIN, sections, weights),
            self._model(REFERENCE, sections, weights),
        )

    # -- the zip ---------------------------------------------------------------------------------

    def _read(self, source: Path | bytes, copy: bool) -> dict[str, memoryview]:
        """Every section by name."""
        try:
            if isinstance(source, bytes):
                with zipfile.ZipFile(io.BytesIO(source)) as archive:
                    return _sections(memoryview(source), archive)
            with open_regular(source) as file:
                if file is None:
                    raise self._no_engine("it is not a regular file")
                size = file.seek(0, 2)
                if not size:
                    raise self._no_engine("it is empty")
                data = _copied(file, size) if copy else _mapped(file)
                with zipfile.ZipFile(file) as archive:
                    return _sections(data, archive)
        except FileNotFoundError as error:
            raise EngineFileMissing(
                f"engine file: there is no file '{self.title}'; expected one that engine.save "
                "wrote.",
                code="engine-file-missing",
                hints=("tilewright.compile(model).save(path) writes one.",),
            ) from error
        except (zipfile.BadZipFile, ValueError, RuntimeError, struct.error, OverflowError) as error:
            if isinstance(error, EngineFileError):
                raise
            raise self._no_engine(str(error)) from error

    def _section(self, name: str) -> memoryview:
        if name not in self._sections:
            raise Malformed(f"the section '{name}' is missing.")
        return self._sections[name]

    # -- the manifest ----------------------------------------------------------------------------

    def _check_format(self, manifest: Reader) -> None:
        found = manifest["format"].integer()
        if found not in READABLE:
            raise EngineFileError(
                f"engine file: '{self.title}' has format {found}; this version of tilewright reads "
                f"formats {' and '.join(map(str, READABLE))}.",
                code="engine-file-version",
                hints=("write it anew: tilewright.compile(model).save(path)",),
            )

    def _listed(self, listed: Reader) -> dict[str, tuple[int, str]]:
        """What the manifest says of every section: its length, and its hash or sums."""
        expected = dict(listed.fields(_MOST_SECTIONS))
        for name in expected.keys() ^ self._sections.keys():
            where = "manifest" if name in expected else "file"
            raise Malformed(f"the section '{name}' is in the {where} alone.")
        return {
            name: (entry["bytes"].integer(), entry[check_name(name)].text(64))
            for name, entry in expected.items()
        }

    def _verify(self, name: str) -> None:
        """Compare a section with its length and its hash or sums."""
        data = self._sections[name]
        found = block_sums(data) if name in SUMMED else hashlib.sha256(data).hexdigest()
        if self._expected[name] != (len(data), found):
            what = "sums differ" if name in SUMMED else "SHA-256 differs"
            raise EngineFileError(
                f"engine file: the section '{name}' of '{self.title}' is not what was written: "
                f"its {what}.",
                code="engine-file-hash",
                hints=("the file is damaged or was changed; get it again.",),
            )

    # -- the sections ----------------------------------------------------------------------------

    def _model(
        self, name: str, sections: Sections, weights: dict[str, Array]
    ) -> StoredModel | None:
        if name not in sections:
            return None
        data = parse_json(bytes(sections[name]), name)
        constants = {
            constant: _constant(place, weights) for constant, place in data["constants"].fields()
        }
        return StoredModel(data["program"].text(1 << 28), _Kept(constants, self._verify_kept))

    def _verify_kept(self) -> None:
        if KEPT in self._sections:
            self._verify(KEPT)

    def _no_engine(self, reason: str) -> EngineFileError:
        return EngineFileError(
            f"engine file: '{self.title}' is not an engine: {reason}.",
            code="engine-file-format",
            hints=(
                "engine.save(path) writes one; copy it again if it was cut short.",
                "tilewright.compile(path) takes a model.",
            ),
        )

    def _malformed(self, error: IRError | Malformed) -> EngineFileError:
        reason = error.message if isinstance(error, IRError) else str(error)
        return EngineFileError(
            f"engine file: '{self.title}' is malformed: {reason}",
            code="engine-file-content",
        )


def _mapped(file: BinaryIO) -> memoryview:
    """The bytes of the file, wherever they are when they are read."""
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    ask_for_large_pages(mapped)
    return memoryview(mapped)


def _copied(file: BinaryIO, size: int) -> memoryview:
    """The bytes of the file as they are now, aligned as in the file."""
    array = empty_aligned((size,), np.dtype(np.uint8))
    file.seek(0)
    if file.readinto(array.data) != size:  # type: ignore[attr-defined]
        raise ValueError("it became shorter while it was read")
    array.flags.writeable = False
    return memoryview(array.data)


def _sections(data: memoryview, archive: zipfile.ZipFile) -> dict[str, memoryview]:
    """The bytes of every member, which must be stored as they are and lie in the file."""
    members = archive.infolist()
    if len(members) > _MOST_SECTIONS:
        raise ValueError(f"it has {len(members)} sections")
    found: dict[str, memoryview] = {}
    for member in members:
        name, at = member.filename[:80], member.header_offset
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise ValueError(f"the section '{name}' is compressed or encrypted")
        if name in found:
            raise ValueError(f"the section '{name}' stands in it twice")
        if not 0 <= at <= len(data) - _LOCAL_HEADER.size:
            raise ValueError(f"the section '{name}' does not lie in it")
        signature, *lengths = _LOCAL_HEADER.unpack_from(data, at)
        start = at + _LOCAL_HEADER.size + sum(lengths)
        if signature != _SIGNATURE or not 0 <= member.file_size <= len(data) - start:
            raise ValueError(f"the section '{name}' does not lie in it")
        found[name] = data[start : start + member.file_size]
    return found


def _named_sizes(data: Reader) -> tuple[tuple[str, int], ...]:
    pairs = [list(item.items(2)) for item in data.items(_MOST_SIZES)]
    return tuple((pair[0].text(), pair[-1].integer()) for pair in pairs if pair)


def _padding(data: Reader) -> Padding | None:
    padding = data.optional("padding")  # older files have none
    if padding is None or padding.value is None:
        return None
    return Padding(padding["dim"].text(), padding["least"].integer())


def _requirements(data: Reader) -> Requirements:
    return Requirements(
        data["abi"].integer(),
        data["platform"].text(80),
        data["isa"].text(80),
        data["compiler"].text(),
        data["tool"].text(80),
    )


def _constant(place: Reader, weights: dict[str, Array]) -> Array:
    """The array that a place names."""
    kind, shape = place["dtype"].dtype().numpy, place["shape"].shape()
    if isinstance(place.value, dict) and "value" in place.value:
        text = place["value"].text(32)
        try:
            value = np.frombuffer(bytes.fromhex(text), kind)
        except ValueError:
            value = np.empty(0, kind)
        if value.size != 1:
            raise Malformed(f"{place.where} is no value of {kind.name}.")
        return np.broadcast_to(value.reshape(()), shape)
    array = weights.get(place["key"].text(80))
    if array is None or array.dtype != stored_type(kind) or array.shape != shape:
        raise Malformed(f"{place.where} names no array of the weights of its type.")
    return array.view(kind)


def _aligned(array: Array) -> Array:
    """The array where it is, or a copy where it does not start at a multiple of 64 bytes."""
    if array.flags.c_contiguous and address(array) % ALIGNMENT == 0:
        return array
    copy = empty_aligned(array.shape, array.dtype)
    copy[...] = array
    return copy


def _check_constants(code: EngineCode, constants: Constants) -> None:
    """Refuse an engine whose code would read constants that are not there, or are shorter."""
    wanted = [(parameter.shape, parameter.dtype.numpy) for parameter in code.artifact.constants]
    found = [None if array is None else (array.shape, array.dtype) for array in constants]
    fits = len(found) == len(wanted) and any(
        _agree(found, wanted, positions) for positions in code.sufficient
    )
    if not fits:
        raise Malformed("the constants are not those of the program.")


def _agree(found: Sequence[object], wanted: Sequence[object], positions: Iterable[int]) -> bool:
    return all(found[position] == wanted[position] for position in positions)
