"""Engines some of whose indices are checked: runs, contexts, files and exported C say what lay
outside.
"""

from __future__ import annotations

import pickle
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilewright.driver.build_program import build_program
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.load import load
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.runtime.model.model import Model

from ..checked_program import LENGTH, WIDTH, embedding, expected, tables
from ..isas import HERE

pytestmark = [pytest.mark.needs_cc, pytest.mark.isa]

TOKEN = np.array([0, 9, 3, 3, 1, 8])
KIND = np.array([0, 1, 1, 0, 0, 1])


@cache
def engine(target: str) -> Engine:
    imported = Model(embedding(), tables()).stored()
    return build_program(embedding(), tables(), target, options=ProgramOptions(imported=imported))


WAYS: dict[str, Callable[[Engine, Path], Engine]] = {
    "built": lambda made, _: made,
    "pickled": lambda made, _: pickle.loads(pickle.dumps(made)),
    "saved": lambda made, folder: load(made.save(folder / "e.twe")),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", [*HERE, "python"])
@pytest.mark.parametrize("way", WAYS)
def test_a_run_names_the_node_the_value_and_the_range(
    target: str, way: str, tmp_path: Path
) -> None:
    made = WAYS[way](engine(target), tmp_path)
    for threads in (1, 2):
        y = made.run({"token": TOKEN, "kind": KIND}, threads=threads)["y"]
        assert np.array_equal(y, expected(TOKEN, KIND))
        for token, kind, said in (
            (-4, 0, "'token' of word rows is -4; expected 0 to 9"),
            (3, 2, "'kind' of kind rows is 2; expected 0 to 1"),
            (10, 7, "'token' of word rows is 10; expected 0 to 9"),  # the first check that failed
        ):
            tokens, kinds = TOKEN.copy(), KIND.copy()
            tokens[2], kinds[4] = token, kind
            out = np.zeros((LENGTH, WIDTH), np.float32)
            with pytest.raises(IndexRangeError) as caught:
                made.run({"token": tokens, "kind": kinds}, out={"y": out}, threads=threads)
            assert str(caught.value) == (
                f"IndexRangeError: embedding: {said}. [index-range]\n"
                "  Note: the outputs were computed with the nearest index that exists."
            )
            assert np.array_equal(out, expected(tokens, kinds))
        assert np.array_equal(made(TOKEN, KIND), expected(TOKEN, KIND))


@pytest.mark.parametrize("target", [HERE[0], "python"])
def test_a_context_raises_after_its_run_and_serves_the_next(target: str) -> None:
    token = TOKEN.copy()
    context = engine(target).context(threads=2).bind({"token": token, "kind": KIND})
    context.run()
    token[0] = 1 << 50
    with pytest.raises(IndexError, match="'token' of word rows is 1125899906842624; expected 0"):
        context.run()
    assert np.array_equal(context.outputs["y"], expected(token, KIND))
    token[0] = 5
    context.run()
    assert np.array_equal(context.outputs["y"], expected(token, KIND))


def test_checks_and_proofs_hold_and_what_is_drawn_at_random_lies_in_range() -> None:
    made = engine(HERE[0])
    assert all(kernel.check == "ok" for kernel in made.explain().kernels)
    assert all(kernel.proof.startswith("proved (") for kernel in made.explain().kernels)
    assert made.verify()
    assert made.profile(rounds=1)


MAIN = """\
#include <stdio.h>
#include "model.h"

int main(int count, char **words)
{
    int64_t token[6] = {0, 9, 3, 3, 1, 8}, kind[6] = {0, 1, 1, 0, 0, 1};
    static float y[96];
    embedding_model *model = count == 2 ? embedding_load(words[1]) : NULL;
    if (!model)
        return 9;
    for (int threads = 1; threads < 3; threads++) {
        if (embedding_run(model, token, kind, y, NULL, threads) != 0)
            return 2;
        token[2] = -1;
        if (embedding_run(model, token, kind, y, NULL, threads) != 1)
            return 3;
        token[2] = 3, kind[5] = 2;
        if (embedding_run(model, token, kind, y, NULL, threads) != 1)
            return 4;
        kind[5] = 1;
    }
    if (embedding_run(model, token, kind, y, NULL, 0) != -1)
        return 5;
    embedding_free(model);
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
def test_exported_c_returns_another_code(tmp_path: Path) -> None:
    folder = engine(HERE[0]).export_c(tmp_path / "exported")
    header = (folder / "model.h").read_text()
    assert "`threads` is below 1, or 1 where an index lay outside\n" in header
    compiler = next(name for name in ("gcc", "clang", "cc") if shutil.which(name))
    (folder / "main.c").write_text(MAIN)
    flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"]
    for command in (
        ["make", f"CC={compiler}"],
        [compiler, *flags, "main.c", "model.o", "-o", "main"],
        ["./main", "weights.bin"],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.returncode, done.stderr)
