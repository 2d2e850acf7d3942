from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.program_artifact import ProgramArtifact
from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError
from tilewright.runtime.model.interface import Interface
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.target.target import ISAS

A, B = (Parameter(name, FLOAT32, (2,), "input") for name in ("first", "second"))
Y, Z = (Parameter(name, FLOAT32, (3,), "output") for name in ("y", "z"))
ARTIFACT = ProgramArtifact(
    name="m",
    symbol="",
    target=ISAS["scalar"],
    inputs=(A, B),
    constants=(),
    read=(),
    outputs=(Y, Z),
    kernels=(),
    texts=(),
    main="",
    body=(),
)
INTERFACE = Interface(ARTIFACT)
GIVEN = {"first": np.zeros(2, np.float32), "second": np.ones(2, np.float32)}


def refused(inputs: object, out: object = None) -> str:
    with pytest.raises(ArgumentTypeError) as caught:
        INTERFACE.accept(inputs, out)  # type: ignore[arg-type]
    return str(caught.value)


def test_arrays_are_put_in_order() -> None:
    inputs, outputs = INTERFACE.accept(dict(reversed(GIVEN.items())))
    assert [array[0] for array in inputs] == [0, 1]
    assert [array.shape for array in outputs] == [(3,), (3,)]


def test_some_outputs_may_be_given() -> None:
    z = np.zeros(3, np.float32)
    _, outputs = INTERFACE.accept(GIVEN, {"z": z})
    assert outputs[1] is z
    assert outputs[0] is not z
    assert INTERFACE.named(outputs, ["z"]) == {"z": z}


def test_an_output_may_share_no_memory_with_an_input() -> None:
    shared = Interface(replace(ARTIFACT, outputs=(replace(Y, shape=(2,)),)))
    with pytest.raises(ArgumentValueError, match="argument-overlap"):
        shared.accept(GIVEN, {"y": GIVEN["first"]})


def test_it_prints_as_a_signature() -> None:
    assert str(INTERFACE) == (
        "m(first: float32[2], second: float32[2]) -> y: float32[3], z: float32[3]"
    )


def test_inputs_come_by_name() -> None:
    assert refused(GIVEN["first"]) == (
        "ArgumentTypeError: m: inputs are a ndarray; expected a dict of arrays. [engine-inputs]\n"
        "  Hint: {'first': ..., 'second': ...}"
    )


def test_every_input_is_needed() -> None:
    assert refused({"first": GIVEN["first"]}) == (
        "ArgumentTypeError: m: input 'second' is missing; expected second: float32[2]. "
        "[engine-missing]"
    )


def test_outputs_never_stand_for_inputs_that_are_missing() -> None:
    for given in ({}, defaultdict(lambda: GIVEN["first"])):
        for out in (None, {"y": np.zeros(3, np.float32), "z": np.zeros(3, np.float32)}):
            assert "input 'first' is missing" in refused(given, out)


def test_a_name_must_exist() -> None:
    assert refused({**GIVEN, "secnd": 0}) == (
        "ArgumentTypeError: m: there is no input 'secnd'; the inputs are: 'second', 'first'. "
        "[engine-name]"
    )
    assert "there is no output 'x'; the outputs are: 'y', 'z'" in refused(GIVEN, {"x": 0})
