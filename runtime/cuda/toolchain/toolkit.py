"""Where NVIDIA's libraries and tools lie: in wheels, in a toolkit, or where the system looks."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

HOME_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
INSTALL_HINT = "anywhere: python -m pip install 'tilewright[cuda]'"

_LIBRARY_FOLDERS = ("lib64", "lib")  # of a toolkit
_MAJOR_VERSIONS = (13, 12)  # of libraries that the loader is asked for


def wheel_roots() -> tuple[Path, ...]:
    """The folders nvidia/* of site-packages, the newest CUDA version's first."""
    spec = find_spec("nvidia")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    return tuple(
        folder
        for place in places
        for folder in sorted(Path(place).iterdir(), key=_numbers, reverse=True)
    )


def toolkit_roots() -> tuple[Path, ...]:
    """The folders that CUDA_HOME and CUDA_PATH name."""
    return tuple(Path(os.environ[name]) for name in HOME_VARIABLES if os.environ.get(name))


def library_candidates(name: str) -> Iterator[str]:
    """What to give to the loader for lib<name>, best first: wheels, toolkits, the loader's own
    path; where a folder has several versions, the newest first.
    """
    folders = [root / "lib" for root in wheel_roots()]
    folders += [root / part for root in toolkit_roots() for part in _LIBRARY_FOLDERS]
    for folder in folders:
        found = sorted(folder.glob(f"lib{name}.so*"), key=_numbers, reverse=True)
        yield from map(str, found)
    yield from (f"lib{name}.so.{major}" for major in _MAJOR_VERSIONS)
    yield f"lib{name}.so"


def find_tool(name: str) -> Path | None:
    """A command of the toolkit: of a wheel, of CUDA_HOME or CUDA_PATH, of the PATH; None: nowhere.

    A wheel's may lack its permission to be run, and is then passed over.
    """
    folders = [str(root / "bin") for root in (*wheel_roots(), *toolkit_roots())]
    path = os.environ.get("PATH", "")
    found = shutil.which(name, path=os.pathsep.join([*folders, path]))
    return None if found is None else Path(found)


def _numbers(path: Path) -> tuple[int, ...]:
    """The numbers in a file's name: libnvrtc.so.13 comes after libnvrtc.so.12 and .so.9."""
    return tuple(int(number) for number in re.findall(r"\d+", path.name))
