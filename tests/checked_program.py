"""A tiny model that gathers rows of two tables, 10 and 2 of them, at indices that are checked, and
adds them; and its arrays.
"""

from __future__ import annotations

import numpy as np

from tilewright import te
from tilewright.tir.dtype import FLOAT32, INT64, UINT64
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.program.syncs import place_syncs

LENGTH, WIDTH, WORDS, KINDS = 6, 16, 10, 2
BYTES = LENGTH * WIDTH * 4


def rows(name: str, count: int, what: str) -> PrimFunc:
    table = te.placeholder((count, WIDTH), "float32", name="T", constant=True)
    index = te.placeholder((LENGTH,), "int64", name="N")
    y = te.compute(
        (LENGTH, WIDTH), lambda i, j: table[te.checked(index[i], count, what=what), j], name="Y"
    )
    return te.func(table, index, y, name=name)


def add() -> PrimFunc:
    a, b = (te.placeholder((LENGTH, WIDTH), "float32", name=name) for name in "AB")
    s = te.compute((LENGTH, WIDTH), lambda i, j: a[i, j] + b[i, j], name="S")
    return te.func(a, b, s, name="add")


def word(position: int) -> Slice:
    return Slice("arena", position, UINT64, ())


def embedding() -> Program:
    def vectors(space: str, position: int) -> Slice:
        return Slice(space, position, FLOAT32, (LENGTH, WIDTH))

    tables = [Slice("constant", n, FLOAT32, (c, WIDTH)) for n, c in enumerate((WORDS, KINDS))]
    token, kind = (Slice("input", n, INT64, (LENGTH,)) for n in range(2))
    first, second = vectors("arena", 0), vectors("arena", BYTES)
    return place_syncs(
        Program(
            "embedding",
            (ProgramTensor("token", INT64, (LENGTH,)), ProgramTensor("kind", INT64, (LENGTH,))),
            (ProgramTensor("y", FLOAT32, (LENGTH, WIDTH)),),
            (
                ProgramTensor("words", FLOAT32, (WORDS, WIDTH)),
                ProgramTensor("kinds", FLOAT32, (KINDS, WIDTH)),
            ),
            (rows("rows", WORDS, "token"), rows("kinds", KINDS, "kind"), add()),
            (
                Launch("rows", (tables[0], token, first, word(2 * BYTES)), "word rows"),
                Launch("kinds", (tables[1], kind, second, word(2 * BYTES + 8)), "kind rows"),
                Launch("add", (first, second, vectors("output", 0)), "sum"),
            ),
            2 * BYTES + 16,
        )
    )


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {
        "words": rng.standard_normal((WORDS, WIDTH), dtype=np.float32),
        "kinds": rng.standard_normal((KINDS, WIDTH), dtype=np.float32),
    }


def expected(token: np.ndarray, kind: np.ndarray) -> np.ndarray:
    """What a run gives, the nearest index in place of one that does not exist."""
    made = tables()
    words = made["words"][np.clip(token, 0, WORDS - 1)]
    return words + made["kinds"][np.clip(kind, 0, KINDS - 1)]
