"""A shared object made by the C compiler, that stands for a library of NVIDIA's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tilewright.runtime.toolchain.compilers import find_compiler


def shared_library(source: str, path: Path, *flags: str) -> Path:
    """Compile C text into `path`, with a soname that is the file's name."""
    text = path.with_suffix(".c")
    text.write_text(source, encoding="utf-8")
    command = [*find_compiler().command, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += [f"-Wl,-soname,{path.name}", *flags, str(text), "-o", str(path)]
    subprocess.run(command, check=True)
    return path
