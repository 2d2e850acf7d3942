"""The cache on disk: bytes kept by key, shared by many processes, never trusted without its hash.

An entry is one file, `entries/<kind>/<key>`: the payload first (so that a shared object can be
loaded from where it lies), then its length, the SHA-256 of kind, key and payload, and a magic word.
It is written beside its place and moved there in one step, so a reader sees a whole entry or none;
nothing is synced, because a torn entry fails its hash and is a miss. The folder is the user's alone
(0700, owner checked); one that cannot be used means one logged warning and no cache. Entries used
least recently go when the cap on bytes is passed.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..log import log

FOLDER_VARIABLE = "TILEWRIGHT_CACHE"  # a folder, or "off"
BYTES_VARIABLE = "TILEWRIGHT_CACHE_BYTES"
DEFAULT_BYTES = 8 << 30  # several models of a gigabyte, with what they are built from

_MAGIC = b"tilewrt1"
_TRAILER = 8 + 32 + len(_MAGIC)


def cache_key(*parts: str | bytes) -> str:
    """SHA-256, in hex, of the parts in order; ("ab", "c") and ("a", "bc") have different keys."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What a cache holds: folder (None: no cache), entries, their bytes and the cap on these."""

    folder: Path | None
    entries: int
    bytes: int
    max_bytes: int


class Cache:
    """A cache in one folder, or, where `folder` is None, one that keeps nothing."""

    def __init__(self, folder: Path | None, max_bytes: int = DEFAULT_BYTES) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._unseen_bytes = (
            max_bytes  # written since the last look at the total: look at the first put
        )
        self._warned = False

    def get(self, kind: str, key: str) -> bytes | None:
        """The payload kept under `key`, or None.

        An entry that fails its hash is removed and counts as missing.
        """
        path = self.path(kind, key)
        if path is None:
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = data[:-_TRAILER]
        if data[-_TRAILER:] != _trailer(kind, key, payload):
            log.info("cache: the entry %s is damaged and is made anew", path)
            with suppress(OSError):
                path.unlink()
            return None
        with suppress(OSError):
            os.utime(path)
        return payload

    def put(self, kind: str, key: str, payload: bytes) -> Path | None:
        """Keep `payload` under `key`; the file that holds it, None where it could not be kept."""
        path = self.path(kind, key)
        if path is None:
            return None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(path, payload + _trailer(kind, key, payload))
        except OSError as error:
            if not self._warned:
                self._warned = True
                log.warning(
                    "cache: cannot write below '%s' (%s); going on without", self.folder, error
                )
            return None
        self._unseen_bytes += len(payload)
        if self._unseen_bytes > self.max_bytes // 16:
            self._unseen_bytes = 0
            self.evict()
        return path

    def path(self, kind: str, key: str) -> Path | None:
        """Where the entry of `key` lies or would lie."""
        return None if self.folder is None else self.folder / "entries" / kind / key

    def private_folder(self, name: str) -> Path | None:
        """A folder for a tool's own files, not counted, not evicted; None where there is none."""
        if self.folder is None:
            return None
        folder = self.folder / name
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        return folder if os.access(folder, os.W_OK) else None

    def evict(self) -> int:
        """Remove the entries used least recently until a quarter of the cap is free; how many went.

        Does nothing below the cap, nor while another process evicts.
        """
        if self.folder is None:
            return 0
        with _try_lock(self.folder / "lock") as locked:
            entries = sorted(self._entries()) if locked else []
            total = sum(size for _, size, _ in entries)
            if total <= self.max_bytes:
                return 0
            removed = 0
            for _, size, path in entries:
                if total <= self.max_bytes * 3 // 4:
                    break
                with suppress(OSError):
                    path.unlink()
                    removed += 1
                total -= size
            return removed

    def info(self) -> CacheInfo:
        """Count what is kept."""
        sizes = [size for _, size, _ in self._entries()]
        return CacheInfo(self.folder, len(sizes), sum(sizes), self.max_bytes)

    def clear(self) -> None:
        """Remove every entry and every tool's folder."""
        if self.folder is not None:
            for child in self.folder.iterdir():
                if child.is_dir() and not child.is_symlink():
                    shutil.rmtree(child, ignore_errors=True)

    def _entries(self) -> Iterator[tuple[int, int, Path]]:
        """Each entry as (nanoseconds of last use, bytes, file), forgotten temporary files too."""
        if self.folder is None:
            return
        for path in (self.folder / "entries").glob("*/*"):
            with suppress(OSError):
                status = path.lstat()
                yield status.st_mtime_ns, status.st_size, path


def user_cache() -> Cache:
    """The cache of this user: TILEWRIGHT_CACHE, else the user's cache folder; at most
    TILEWRIGHT_CACHE_BYTES.
    """
    return _open(os.environ.get(FOLDER_VARIABLE, ""), os.environ.get(BYTES_VARIABLE, ""))


@lru_cache(maxsize=8)
def _open(folder: str, max_bytes: str) -> Cache:
    known = max_bytes.isdecimal() and len(max_bytes) < 20  # more bytes than any disk has
    limit = int(max_bytes) if known else DEFAULT_BYTES
    if folder == "off":
        return Cache(None, limit)
    path = Path(folder or _usual_folder())
    reason = _why_not(path)
    if reason is not None:
        log.warning("cache: '%s' %s; going on without", path, reason)
        return Cache(None, limit)
    return Cache(path, limit)


def _usual_folder() -> str:
    # here, because who names a folder need not wait for it
    from platformdirs import user_cache_dir

    return user_cache_dir("tilewright")


def _why_not(folder: Path) -> str | None:
    """Make the folder, and say why it cannot hold a cache, or None."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        return f"cannot be made ({error.strerror})"
    if not stat.S_ISDIR(status.st_mode):
        return "is a link, not a folder"
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}, not to {os.geteuid()}"
    if status.st_mode & 0o022:
        return f"can be written by others (mode {status.st_mode & 0o777:o}; chmod 700)"
    return None


def _trailer(kind: str, key: str, payload: bytes) -> bytes:
    digest = hashlib.sha256(f"{kind}/{key}/".encode())
    digest.update(payload)
    return len(payload).to_bytes(8, "little") + digest.digest() + _MAGIC


def _replace(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 beside `path`, then move it there in one step."""
    descriptor, name = tempfile.mkstemp(prefix=".new-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise


@contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock file if nobody else does."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)
