"""Packages of others, as wheels that a build tool would make, installed without the network."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

Groups = Mapping[str, Mapping[str, str]]  # entry points by group and name


def wheel(
    folder: Path, name: str, files: Mapping[str, bytes], groups: Groups, version: str = "1.0"
) -> Path:
    """A wheel of files and entry points."""
    title = name.replace("-", "_")
    info = f"{title}-{version}.dist-info"
    points = "\n".join(
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in of.items())])
        for group, of in groups.items()
    )
    held = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"{points}\n".encode(),
    }
    rows = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in held.items()]
    held[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,\n"]).encode()
    made = folder / f"{title}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, data in held.items():
            archive.writestr(path, data)
    return made


def project_wheel(folder: Path, project: Path) -> Path:
    """The wheel of a project with a pyproject.toml, of the packages that it lists."""
    config = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    files = {
        path.relative_to(project).as_posix(): path.read_bytes()
        for package in config["tool"]["setuptools"]["packages"]
        for path in sorted((project / package).glob("*.py"))
    }
    of = config["project"]
    return wheel(folder, of["name"], files, of["entry-points"], of["version"])


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def install(*wheels: Path, python: str = sys.executable, options: tuple[str, ...] = ()) -> None:
    """Install wheels for a Python, without the network."""
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index")
    command = [*pip, "--no-deps", "--disable-pip-version-check", *options, *map(str, wheels)]
    subprocess.run(command, check=True)
