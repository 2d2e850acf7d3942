"""Where a class or a function of others comes from: the distribution that brings it, and a digest
of its source.

What is made with it may be kept from one process to the next only under that digest. It covers the
file, and where that is a module of a package all Python files of the package, since one may call
the other. It is unknown of what no file holds, of what a function makes, which may hold anything,
and of files that changed after tilewright was loaded: then they may not be what runs here.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING

from ...tir.extensions import installed_entry_points
from .. import LOADED

if TYPE_CHECKING:
    from importlib.metadata import Distribution

OPERATORS, PASSES, IMPORTERS = "tilewright.operators", "tilewright.passes", "tilewright.importers"
GROUPS = (OPERATORS, PASSES, IMPORTERS)
_OURS = __name__.partition(".")[0]
Definition = type | FunctionType


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a definition comes from.

    package: the distribution with its version, "my-ops 1.0"; "" where none brings it. place: the
    module and the name in it. digest: of the source; "" where it is unknown, and `unknown` says
    why.
    """

    package: str
    place: str
    digest: str
    unknown: str = ""

    def __str__(self) -> str:
        return self.package or f"'{self.place}'"

    @property
    def key(self) -> str | None:
        """What identifies it from one process to the next; None where nothing does."""
        return f"{self.package} {self.place} {self.digest}" if self.digest else None


def is_ours(definition: Definition) -> bool:
    """Whether tilewright itself brings a class or a function."""
    return definition.__module__.partition(".")[0] == _OURS


@cache
def origin_of(definition: Definition) -> Origin:
    """Where a class or a function comes from, as it was when that was asked first."""
    name, qualified = definition.__module__, definition.__qualname__
    module = sys.modules.get(name)
    file = _file_of(module)
    package = "" if file is None else _package_title(name.partition(".")[0], file)
    place = f"{name}.{qualified}"
    if "<" in qualified:
        return Origin(package, place, "", "a function made it")
    if module is None or file is None:
        return Origin(package, place, "", "no file holds its source")
    digest = hashlib.sha256()
    for path, title in _sources(module, file):
        try:
            if path.stat().st_mtime > LOADED:
                return Origin(package, place, "", f"'{title}' changed while this process ran")
            digest.update(f"{title}\0".encode() + path.read_bytes() + b"\0")
        except OSError:
            return Origin(package, place, "", f"'{title}' cannot be read")
    return Origin(package, place, digest.hexdigest())


def _file_of(module: ModuleType | None) -> Path | None:
    """The file of a module, where there is one."""
    file = getattr(module, "__file__", None)
    return Path(file) if file and Path(file).is_file() else None


def _sources(module: ModuleType, file: Path) -> Iterator[tuple[Path, str]]:
    """The files that a module's meaning depends on, each with its name, in order."""
    root = _package_folder(module)
    if root is None:
        yield file, file.name
        return
    found = {file}
    for folder, _, names in os.walk(root):
        found.update(Path(folder, name) for name in names if name.endswith(".py"))
    for path in sorted(found):
        yield path, os.path.relpath(path, root)


def _package_folder(module: ModuleType) -> Path | None:
    """The folder of the outermost package around a module that has an `__init__`; None of a module
    that is in no package.
    """
    name = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    found = None
    while name:
        file = _file_of(sys.modules.get(name))
        if file is None:
            break
        found, name = file.parent, name.rpartition(".")[0]
    return found


@cache
def _package_title(top: str, file: Path) -> str:
    """The distribution of a file of a package or module, with its version; "" where none has it."""
    for distribution in _distributions(top):
        if _holds(distribution, file):
            return f"{distribution.name} {distribution.version}"
    return ""


def _distributions(top: str) -> Iterator[Distribution]:
    """The distributions that may bring a top-level package or module, likely ones first."""
    for entry in (entry for group in GROUPS for entry in installed_entry_points(group)):
        if entry.dist is not None and entry.module.partition(".")[0] == top:
            yield entry.dist
    if top == "__main__" or find_spec(top) is None:
        return
    from importlib.metadata import distribution, packages_distributions  # slow

    yield from map(distribution, packages_distributions().get(top, ()))


def _holds(distribution: Distribution, file: Path) -> bool:
    """Whether a file is one that a distribution installed, or of the folder of an editable one."""
    installed = (Path(str(one.locate())) for one in distribution.files or ())
    if any(one.name == file.name and _same(one, file) for one in installed):
        return True
    origin = distribution.read_text("direct_url.json") or ""
    return '"editable": true' in origin and _is_within(file, origin)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _is_within(file: Path, origin: str) -> bool:
    """Whether a file lies in the folder that the origin of an editable distribution names."""
    import json  # of few packages
    from urllib.parse import unquote, urlsplit

    folder = Path(unquote(urlsplit(str(json.loads(origin).get("url", ""))).path))
    return file.resolve().is_relative_to(folder.resolve())
