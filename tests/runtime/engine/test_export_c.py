from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.backends.table import read_code
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.reader import EngineFile

from ...tiny_engine import tiny_engine
from ...tiny_program import M, N, image

pytestmark = pytest.mark.needs_cc

MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

/* main weights input output threads: exits with 3 where the weights are refused */
int main(int count, char **words)
{
    static float x[120], y[210];
    _Alignas(64) static char scratch[1 << 16];
    tiny_model *model = count == 5 ? tiny_load(words[1]) : NULL;
    const int threads = count == 5 ? atoi(words[4]) : 0;
    if (!model)
        return 3;
    FILE *input = fopen(words[2], "rb"), *output = fopen(words[3], "wb");
    if (!input || !output || fread(x, sizeof x, 1, input) != 1)
        return 4;
    if (tiny_scratch_bytes(threads) > sizeof scratch || tiny_run(model, x, y, NULL, 0) != -1)
        return 5;
    for (int turn = 0; turn < 3; turn++)
        if (tiny_run(model, x, y, turn ? scratch : NULL, threads) != 0)
            return 6;
    tiny_free(model);
    return fwrite(y, sizeof y, 1, output) != 1 || fclose(output) != 0;
}
"""


def compilers() -> list[str]:
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    return found or ["cc"]


@pytest.fixture(params=compilers())
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The exported model, built by its own Makefile and linked with a C main."""
    folder = tiny_engine().export_c(tmp_path / "exported")
    built = subprocess.run(
        ["make", "-C", str(folder), f"CC={request.param}"], capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    (folder / "main.c").write_text(MAIN)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    linked = subprocess.run(
        [request.param, *flags, "main.c", "model.o", "-o", "main"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert linked.returncode == 0, linked.stderr
    return folder / "main"


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_a_c_program_gives_the_bits_of_the_engine(program: Path, tmp_path: Path) -> None:
    x, out = tmp_path / "x", tmp_path / "y"
    image().tofile(x)
    for threads in (1, 2):
        words = [str(program.with_name("weights.bin")), str(x), str(out), str(threads)]
        assert subprocess.run([str(program), *words]).returncode == 0
        y = np.fromfile(out, np.float32).reshape(N, M)
        assert np.array_equal(y, tiny_engine()(image(), threads=threads))
    weights = program.with_name("weights.bin")
    data = bytearray(weights.read_bytes())
    for damaged in (data[:-1], data + b"\0", data[:100] + b"\1" + data[101:]):
        weights.write_bytes(damaged)
        words = [str(weights), str(x), str(out), "1"]
        assert subprocess.run([str(program), *words]).returncode == 3


def test_it_writes_four_files_and_no_more(tmp_path: Path) -> None:
    folder = tiny_engine("c:scalar").export_c(tmp_path / "a" / "b")
    assert sorted(file.name for file in folder.iterdir()) == [
        "Makefile",
        "model.c",
        "model.h",
        "weights.bin",
    ]


def test_a_loaded_engine_exports_the_same(tmp_path: Path) -> None:
    engine = tiny_engine()
    engine.save(tmp_path / "tiny.twe")
    loaded = Engine(EngineFile(tmp_path / "tiny.twe").parts(read_code))
    first, second = engine.export_c(tmp_path / "first"), loaded.export_c(tmp_path / "second")
    for file in first.iterdir():
        assert (second / file.name).read_bytes() == file.read_bytes()
