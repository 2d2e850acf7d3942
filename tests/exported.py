"""An engine's exported C as a library, built as its Makefile says: any warning is an error."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

from tilewright.runtime.engine.engine import Engine


def exported(engine: Engine, folder: Path) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The library of a model, and its weights, loaded."""
    made = engine.export_c(folder / "c")
    flags = re.search(r"^CFLAGS = (.*)$", (made / "Makefile").read_text(), re.MULTILINE)
    assert flags is not None
    assert {"-Wall", "-Wextra", "-Werror"} <= set(flags[1].split())
    built = subprocess.run(
        ["gcc", *flags[1].split(), "-shared", "-fPIC", "model.c", "-o", "model.so"],
        cwd=made,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    library = ctypes.CDLL(str(made / "model.so"))
    load = library[f"{engine.name}_load"]
    load.restype = ctypes.c_void_p
    return library, ctypes.c_void_p(load(str(made / "weights.bin").encode()))
