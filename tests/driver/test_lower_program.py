from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewright.driver.lower_program import LoweredKernel, lower_program
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.program.evaluate import evaluate_program
from tilewright.tir.program.program import Launch, Program, ProgramTensor
from tilewright.tir.program.syncs import place_syncs, verify_program
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..tiny_program import K, N, constants, image, piece, tiny

TARGET = Target.parse("c:avx2")


def test_equal_functions_become_one_kernel() -> None:
    made = lower_program(tiny(), TARGET)
    assert list(made.kernels) == ["mm1", "relu", "add"]
    assert made.kernel_of == {"mm1": "mm1", "mm2": "mm1", "relu": "relu", "add": "add"}
    assert [launch.function for launch in made.program.launches] == ["mm1", "mm1", "relu", "add"]


def test_each_choice_of_constants_is_prepared_once() -> None:
    program = tiny()
    again = (*program.launches, replace(program.launches[0], label="again"))
    made = lower_program(place_syncs(replace(program, body=again)), TARGET).program
    verify_program(made)
    assert [launch.function for launch in made.prepare] == ["mm1.prepare"] * 2
    assert [tensor.name for tensor in made.constants] == [
        "w1",
        "w2",
        "w1.B_packed",
        "w2.B_packed",
    ]
    assert made.prepared == {2, 3}
    read = [launch.arguments[1].position for launch in made.launches if launch.function == "mm1"]
    assert read == [2, 3, 2]


def product(name: str, last: Callable[[Expr], Expr]) -> PrimFunc:
    """What a function makes of the elements of a product with weights."""
    x = te.placeholder((N, K), "float32", name="X")
    weights = te.placeholder((K, 64), "float32", name="W", constant=True)
    k = te.reduce_axis(K, name="k")
    y = te.compute((N, 64), lambda i, j: te.sum(x[i, k] * weights[k, j], axis=k), name="P")
    return te.func(
        x, weights, te.compute((N, 64), lambda i, j: last(y[i, j]), name=name), name=name
    )


def test_kernels_share_what_they_prepare_of_a_constant_in_the_same_way() -> None:
    functions = (product("plain", lambda x: x + 1.0), product("curved", te.tanh))
    source = ProgramTensor("x", FLOAT32, (N, K))
    results = tuple(ProgramTensor(name, FLOAT32, (N, 64)) for name in ("y", "z"))
    weights = tuple(ProgramTensor(name, FLOAT32, (K, 64)) for name in ("w", "v"))
    launches = tuple(
        Launch(
            function.name,
            (
                piece("input", 0, (N, K)),
                piece("constant", constant, (K, 64)),
                piece("output", number, (N, 64)),
            ),
            function.name,
        )
        for number, function in enumerate(functions)
        for constant in (0, 1)
    )
    program = Program("shared", (source,), results, weights, functions, launches, 0)
    made = lower_program(place_syncs(program), TARGET).program
    verify_program(made)
    assert [launch.function for launch in made.prepare] == ["plain.prepare"] * 2
    assert [tensor.name for tensor in made.constants] == ["w", "v", "w.W_packed", "v.W_packed"]
    assert [launch.arguments[1].position for launch in made.launches] == [2, 3, 2, 3]


def test_a_table_that_depends_on_nothing_is_prepared_too() -> None:
    x = te.placeholder((N, K), "float32", name="X")
    ramp = te.compute((K,), lambda i: te.sqrt(te.cast(i, "float32")), name="ramp")
    k = te.reduce_axis(K, name="k")
    y = te.compute((N,), lambda i: te.sum(x[i, k] * ramp[k], axis=k), name="Y")
    source, result = ProgramTensor("x", FLOAT32, (N, K)), ProgramTensor("y", FLOAT32, (N,))
    launch = Launch("scaled", (piece("input", 0, (N, K)), piece("output", 0, (N,))), "scaled")
    func = te.func(x, y, name="scaled")
    program = Program("tables", (source,), (result,), (), (func,), (launch,), 0)
    made = lower_program(program, TARGET).program
    verify_program(made)
    assert [tensor.name for tensor in made.constants] == ["scaled.prepare.ramp"]
    assert [len(launch.arguments) for launch in made.prepare] == [1]


def test_syncs_stand_where_they_must() -> None:
    program = tiny()
    unordered = lower_program(replace(program, body=program.launches), TARGET).program
    verify_program(unordered)
    assert list(map(type, unordered.body)) == list(map(type, program.body))


def test_kernels_that_are_known_are_not_made_again() -> None:
    known: dict[str, LoweredKernel] = {}
    first = lower_program(tiny(), TARGET, known=known)
    assert len(known) == 3
    second = lower_program(tiny("other"), TARGET, known=known)
    assert all(
        second.kernels[name].canonical is first.kernels[name].canonical for name in first.kernels
    )


def test_copies_and_shapes_stay() -> None:
    program = tiny()
    flat = replace(piece("arena", 0), shape=(210,))
    body = (replace(program.launches[0], arguments=(*program.launches[0].arguments[:2], flat)),)
    made = lower_program(replace(program, body=body), TARGET).program
    assert made.launches[0].arguments[-1] == flat
    assert isinstance(made.launches[0], Launch)


def test_the_program_before_is_untouched_and_means_the_same() -> None:
    program = tiny()
    before = evaluate_program(program, {"x": image()}, constants(), "float64")
    lower_program(program, TARGET)
    after = evaluate_program(program, {"x": image()}, constants(), "float64")
    assert np.array_equal(before["y"], after["y"])
