"""A tiny model that loops and branches, as a hand-made program; what it computes, by NumPy."""

from __future__ import annotations

import numpy as np

from tilewright import te
from tilewright.tir.dtype import BOOL, FLOAT32, INT64
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.program import (
    Branch,
    Copy,
    Launch,
    LoopRow,
    Program,
    ProgramTensor,
    Repeat,
    Slice,
    WriteIteration,
)
from tilewright.tir.program.syncs import place_syncs

SIZE, ROWS = 4, 3


def _add(name: str) -> PrimFunc:
    a, b = (te.placeholder((SIZE,), "float32", name=name) for name in "AB")
    return te.func(a, b, te.compute((SIZE,), lambda i: a[i] + b[i], name="S"), name=name)


def _scale(name: str, factor: float) -> PrimFunc:
    a = te.placeholder((SIZE,), "float32", name="A")
    return te.func(a, te.compute((SIZE,), lambda i: a[i] * factor, name="S"), name=name)


def _below(name: str) -> PrimFunc:
    """Whether the number of an iteration is below 2."""
    i = te.placeholder((), "int64", name="I")
    return te.func(i, te.compute((), lambda: i[()] < 2, name="S"), name=name)


def vector(space: str, position: int, *moves: LoopRow) -> Slice:
    return Slice(space, position, FLOAT32, (SIZE,), moves)


N = Slice("input", 0, INT64, ())
C = Slice("input", 1, BOOL, ())
X, Y = vector("input", 2), vector("output", 0)
SUM, MADE = vector("arena", 0), vector("arena", 64)
NUMBER, MORE = Slice("arena", 128, INT64, ()), Slice("arena", 192, BOOL, ())
TRUE = Slice("constant", 0, BOOL, ())


def looping() -> Program:
    """y = x, and x more in each of n iterations; z is y doubled or negated; of the rows of a table,
    from the last one on, z + row is stored from the first one on, for as long as that is below 2.
    """
    return place_syncs(
        Program(
            "looping",
            (
                ProgramTensor("n", INT64, ()),
                ProgramTensor("c", BOOL, ()),
                ProgramTensor("x", FLOAT32, (SIZE,)),
                ProgramTensor("table", FLOAT32, (ROWS, SIZE)),
            ),
            (ProgramTensor("y", FLOAT32, (SIZE,)), ProgramTensor("zs", FLOAT32, (ROWS, SIZE))),
            (ProgramTensor("yes", BOOL, ()),),
            (_add("add"), _scale("double", 2), _scale("negate", -1), _below("below")),
            (
                Copy(X, Y),
                Repeat(7, N, None, (Launch("add", (Y, X, SUM), "more"), Copy(SUM, Y)), "loop"),
                Branch(
                    C,
                    (Launch("double", (Y, MADE), "twice"),),
                    (Launch("negate", (Y, MADE), "less"),),
                    "choice",
                ),
                Repeat(8, ROWS, None, (rows("add"),), "all"),
                Copy(TRUE, MORE),
                Repeat(
                    9,
                    ROWS,
                    MORE,
                    (
                        WriteIteration(9, NUMBER),
                        Launch("below", (NUMBER, MORE), "until"),
                        rows("add", loop=9),
                    ),
                    "some",
                ),
            ),
            256,
        )
    )


def rows(function: str, loop: int = 8) -> Launch:
    """One row more."""
    table = vector("input", 3, LoopRow(loop, ROWS, reverse=True))
    return Launch(function, (MADE, table, vector("output", 1, LoopRow(loop, ROWS))), "row")


CONSTANTS = {"yes": np.array(True)}


def inputs(n: int, c: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    table = rng.standard_normal((ROWS, SIZE)).astype(np.float32)
    x = rng.standard_normal(SIZE).astype(np.float32)
    return {"n": np.array(n), "c": np.array(c), "x": x, "table": table}


def expected(n: int, c: bool) -> dict[str, np.ndarray]:
    given = inputs(n, c)
    y = given["x"] * (1 + max(0, n))
    z = y * 2 if c else -y
    return {"y": y, "zs": z + given["table"][::-1]}
