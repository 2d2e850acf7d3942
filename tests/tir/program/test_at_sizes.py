"""tir/program/at_sizes.py: a program at one choice of sizes."""

from __future__ import annotations

import numpy as np

from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.at_sizes import program_at
from tilewright.tir.program.evaluate import evaluate_program
from tilewright.tir.program.program import Launch, Program, ProgramTensor, Slice
from tilewright.tir.sizes import size_of
from tilewright.tir.te import te

M, N = Dim("m", low=1, high=4), Dim("n", low=1, high=4)


def scaled(name: str, axes: int, factor: float) -> PrimFunc:
    """A function of one array, all of whose axes a call decides."""
    dims = tuple(te.dim(f"d{axis}", 1, 4) for axis in range(axes))
    x = te.placeholder(dims, "float32", name="x")
    y = te.compute(dims, lambda *i: x[i] * factor, name="y")
    return te.func(x, y, name=name)


def test_functions_stay_apart_whose_names_end_in_numbers() -> None:
    m, n = size_of(M), size_of(N)
    shapes = {"a": (m, n), "b": (n,)}
    launches = tuple(
        Launch(
            name, (Slice("input", k, FLOAT32, shape), Slice("output", k, FLOAT32, shape)), "", shape
        )
        for k, (name, shape) in enumerate(zip(("scale", "scale_3"), shapes.values(), strict=True))
    )
    program = Program(
        "both",
        tuple(ProgramTensor(name, FLOAT32, shape) for name, shape in shapes.items()),
        tuple(ProgramTensor(f"{name}_out", FLOAT32, shape) for name, shape in shapes.items()),
        (),
        (scaled("scale", 2, 2.0), scaled("scale_3", 1, 5.0)),
        launches,
        0,
    )
    made = program_at(program, {M: 3, N: 2})
    assert [func.name for func in made.functions] == ["scale_at_3_2", "scale_3_at_2"]
    given = {"a": np.ones((3, 2), np.float32), "b": np.ones(2, np.float32)}
    first, second = evaluate_program(program, given, {}).values()
    assert (first == 2).all()
    assert (second == 5).all()
