"""A tiny model as a hand-made program: y = relu(x w1) + x w2, two launches of one kernel among its
four; and its arrays.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright import te
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.program.syncs import place_syncs

N, K, M = 6, 20, 35
SIZE = -(-N * M * 4 // 64) * 64  # bytes of a tensor in the arena


def matmul(name: str) -> PrimFunc:
    a = te.placeholder((N, K), "float32", name="A")
    b = te.placeholder((K, M), "float32", name="B", constant=True)
    k = te.reduce_axis(K, name="k")
    c = te.compute((N, M), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name=name)


def relu(name: str = "relu") -> PrimFunc:
    a = te.placeholder((N, M), "float32", name="A")
    return te.func(
        a, te.compute((N, M), lambda i, j: te.maximum(a[i, j], 0.0), name="R"), name=name
    )


def add(name: str = "add") -> PrimFunc:
    a, b = (te.placeholder((N, M), "float32", name=name) for name in "AB")
    return te.func(a, b, te.compute((N, M), lambda i, j: a[i, j] + b[i, j], name="S"), name=name)


def piece(space: str, position: int, shape: tuple[int, ...] = (N, M)) -> Slice:
    return Slice(space, position, FLOAT32, shape)


def tiny(name: str = "tiny") -> Program:
    x, w1, w2 = (
        piece("input", 0, (N, K)),
        piece("constant", 0, (K, M)),
        piece("constant", 1, (K, M)),
    )
    first, second, third = (piece("arena", index * SIZE) for index in range(3))
    return place_syncs(
        Program(
            name,
            (ProgramTensor("x", FLOAT32, (N, K)),),
            (ProgramTensor("y", FLOAT32, (N, M)),),
            (ProgramTensor("w1", FLOAT32, (K, M)), ProgramTensor("w2", FLOAT32, (K, M))),
            (matmul("mm1"), matmul("mm2"), relu(), add()),
            (
                Launch("mm1", (x, w1, first), "first matmul"),
                Launch("mm2", (x, w2, second), "second matmul"),
                Launch("relu", (first, third), "relu"),
                Launch("add", (third, second, piece("output", 0)), "add"),
            ),
            3 * SIZE,
        )
    )


def overlapping() -> Program:
    """The same with a place that is given away too early: the result of relu reaches into that of
    the second product, which add still reads.
    """
    program = tiny()
    early = piece("arena", 2 * SIZE - 64)
    first, second, relu, add = program.launches
    relu = replace(relu, arguments=(relu.arguments[0], early))
    add = replace(add, arguments=(early, *add.arguments[1:]))
    return place_syncs(replace(program, body=(first, second, relu, add)))


def constants() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal((K, M), dtype=np.float32) for name in ("w1", "w2")}


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, K), dtype=np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    weights = constants()
    wide = x.astype(np.float64)
    return np.maximum(wide @ weights["w1"], 0) + wide @ weights["w2"]
