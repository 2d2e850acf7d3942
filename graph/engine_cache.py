"""Finished engines, kept from one process to the next: a hit reads files and builds nothing.

An engine is kept under what it was made of: the model's bytes, the target, the options, the C
compiler as its file is now, whether this machine ran its kernels, the code of tilewright itself,
and the sources of the passes and operators of others that took part. Which operators of others a
model asks for is known once it was read, and kept beside the engine. The bytes of a model file are
known again by what the file system says of it, so that a hit does not read them: path, size, file
number and both times of change, of which no program sets the second. A file that changed in the
last two seconds is read each time, because another change might leave those times as they are.
Models whose weights lie in other files are not kept, nor those that would take more than half of
the cache. Nothing here imports what is needed to build.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np

from ..driver.backends.table import backend_of, read_code
from ..driver.code_digest import code_digest
from ..runtime.engine.engine import Engine
from ..runtime.engine.format import EngineFileError
from ..runtime.engine.reader import EngineFile
from ..runtime.log import log
from ..runtime.machine.host import host
from ..runtime.toolchain.cache import cache_key, user_cache
from ..runtime.version import tool_version
from ..tir.dtype import NAMES
from ..tir.target.target import Target
from .importers.aten.program import ExportedProgram
from .importers.jaxpr.program import JaxProgram
from .options import LARGEST_MODEL

ENGINES, MODELS, REQUESTS = "engines", "models", "requests"  # kinds of entries
_PIECE = 1 << 22  # bytes of a model file that are read at a time
_LONG = 1 << 28  # bytes of one whose digest takes as long as what is needed to build
_SETTLED_NS = 2_000_000_000  # the coarsest clock of a file system that is in use
_ELSEWHERE = (
    b"location"  # stands in every model whose weights lie in other files, and in some others
)


def model_digest(model: object, meanwhile: Callable[[], object] = bool) -> str | None:
    """What identifies the contents of a model; None for one whose engine cannot be kept.

    model: a path, the bytes of a file, a message of protobuf, or a program of torch or of JAX.
    meanwhile: is called while a file is read that takes long.
    """
    if isinstance(model, JaxProgram):
        return model.digest()
    if isinstance(model, bytes):
        return _digest([model], lambda: model)
    if isinstance(model, str | os.PathLike):
        return _file_digest(Path(os.fspath(model)), meanwhile)
    if isinstance(model, ExportedProgram):
        return model.digest
    serialize = getattr(model, "SerializeToString", None)
    if serialize is None:
        return None
    data: bytes = serialize(deterministic=True)
    return _digest([data], lambda: data)


def constants_digest(constants: Mapping[str, object]) -> dict[str, str] | None:
    """What identifies the values of inputs; None where one is no array of numbers."""
    found = {}
    for name, value in constants.items():
        try:
            array = np.asarray(value)
        except ValueError:  # lists of different lengths
            return None
        if array.dtype.kind not in "biuf" and array.dtype.name not in NAMES:
            return None
        data = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        found[name] = f"{array.dtype.name}{array.dtype.str}{list(array.shape)} {data}"
    return found


def engine_key(digest: str, target: Target, options: Mapping[str, object]) -> str:
    """The key of the engine that these options make of a model. options: plain values."""
    values = json.dumps([target.to_json(), sorted(options.items())], default=list)
    made_by = backend_of(target).stamp(target)
    return cache_key(digest, values, made_by, tool_version(), code_digest())


def keep_requests(key: str, asked: Iterable[tuple[str, str, str]]) -> None:
    """Keep, beside the engine of a model, which operators of others the model asks for, if any."""
    user_cache().put(REQUESTS, key, json.dumps(sorted(asked)).encode())


def key_with_requests(key: str | None, base: str | None) -> str | None:
    """A key, and what identifies the operators of others that the model asks for, which are kept
    under the key of its plain engine, `base`; None where they are not known, or nothing identifies
    one of them.
    """
    known = user_cache().get(REQUESTS, base) if key and base else None
    if key is None or known is None:
        return None
    asked = json.loads(known)
    if not asked:
        return key
    # here, because few models have such operators, which are loaded by it
    from .extensions.lookup import Request, identity

    found = [identity(Request(*one)) for one in asked]
    texts = [text for text in found if text is not None]
    return cache_key(key, *texts) if len(texts) == len(found) else None


def kept_engine(key: str, target: Target, max_contexts: int | None) -> Engine | None:
    """The engine for a target that is kept under `key`; None where there is none that fits this
    machine, or that would fit if this machine had the target's instructions.
    """
    path = user_cache().path(ENGINES, key)
    if path is None or not path.exists():
        return None
    try:
        file = EngineFile(path)
        if file.missing((*host().instructions, target.instructions)):
            return None
        engine = Engine(file.parts(read_code), max_contexts=max_contexts)
    except (OSError, EngineFileError) as error:
        log.info("cache: the engine %s is damaged and is made anew: %s", path, error)
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        os.utime(path)
    return engine


def keep_engine(key: str, engine: Engine) -> None:
    """Keep an engine under `key`, where the cache can hold it."""
    cache = user_cache()
    path, plan = cache.path(ENGINES, key), engine.memory_plan
    if path is None or plan.weights_bytes + plan.kept_bytes > cache.max_bytes // 2:
        return
    # here, because a hit writes nothing
    from ..runtime.engine.writer import write_file

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(engine.parts, path, sync=False)  # a torn one fails its hashes
    except OSError as error:
        log.warning("cache: cannot keep the engine '%s' (%s)", engine.name, error)
        return
    cache.evict()


def _file_digest(path: Path, meanwhile: Callable[[], object]) -> str | None:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_MODEL:
            return None
        before = _identity(status)
        memo = cache_key(os.path.realpath(path), str(before))
        known = user_cache().get(MODELS, memo)
        if known is None:
            with path.open("rb") as file:
                pieces = iter(partial(file.read, _PIECE), b"")
                read = partial(_digest, pieces, path.read_bytes)
                found = read() if status.st_size < _LONG else _beside(read, meanwhile)
                known = (found or "").encode()
                after = os.fstat(file.fileno())
            latest = max(after.st_mtime_ns, after.st_ctime_ns)
            if _identity(after) == before and time.time_ns() - latest > _SETTLED_NS:
                user_cache().put(MODELS, memo, known)
    except (OSError, ValueError):
        return None  # the importer says what is wrong with the file
    return known.decode() or None


def _beside(read: Callable[[], str | None], meanwhile: Callable[[], object]) -> str | None:
    """What a thread reads while this one does something else."""
    # here, because a hit by what the file system says needs no thread
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, "tilewright-digest") as pool:
        found = pool.submit(read)
        meanwhile()
        return found.result()


def _identity(status: os.stat_result) -> tuple[int, ...]:
    """What changes when a file is written, by whatever means."""
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_size, *times, status.st_ino, status.st_dev)


def _digest(pieces: Iterable[bytes], whole: Callable[[], bytes]) -> str | None:
    """The SHA-256 of a model in pieces; None where weights lie in other files. `whole` gives all of
    it: it is read as a model where it holds the word by which other files are named.
    """
    digest, before, named = hashlib.sha256(), b"", False
    more = len(_ELSEWHERE) - 1
    for piece in pieces:
        named = named or _ELSEWHERE in piece or _ELSEWHERE in before + piece[:more]
        digest.update(piece)
        before = (before + piece[-more:])[-more:]
    return None if named and _has_external_data(whole()) else digest.hexdigest()


def _has_external_data(model: bytes) -> bool:
    """Whether a tensor of a model lies in another file; yes for what is no model."""
    # here, because few models hold the word, and a hit must not wait for what reads them
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from onnx import GraphProto, ModelProto, TensorProto

    def tensors(graph: GraphProto) -> Iterator[TensorProto]:
        yield from graph.initializer
        for attribute in (one for node in graph.node for one in node.attribute):
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from tensors(inner)

    parsed = ModelProto()
    try:
        parsed.ParseFromString(model)
    except DecodeError:
        return True
    return any(tensor.data_location == TensorProto.EXTERNAL for tensor in tensors(parsed.graph))
