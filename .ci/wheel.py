"""Build a wheel from the tracked files alone and compare what is in it with `git ls-files`."""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
import tempfile
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def expected(files: list[str]) -> set[str]:
    """Names inside the wheel: each package's modules and the data that setup.cfg lists."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    data = dict(parser["options.package_data"])
    names = set()
    for package in parser["options"]["packages"].split():
        folder = PurePosixPath(*package.split(".")[1:])
        patterns = ["*.py", *data.get(package, "").split()]
        for path in map(PurePosixPath, files):
            if path.parent == folder and any(fnmatch(path.name, pattern) for pattern in patterns):
                names.add(str("tilewright" / path))
    return names


def built(files: list[str]) -> set[str]:
    with tempfile.TemporaryDirectory() as scratch:
        clone, out = Path(scratch, "clone"), Path(scratch, "out")
        for name in files:
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), "."]
        subprocess.run(command, cwd=clone, check=True)
        (wheel,) = out.glob("*.whl")
        names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def main() -> int:
    files = tracked()
    want, have = expected(files), built(files)
    for name in sorted(want - have):
        print(f"not in the wheel: {name}")
    for name in sorted(have - want):
        print(f"only in the wheel: {name}")
    print(f"wheel: {len(have)} files, {len(want)} expected")
    return int(want != have or not want)


if __name__ == "__main__":
    sys.exit(main())
