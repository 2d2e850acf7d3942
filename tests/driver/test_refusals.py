"""What tw.build and tw.prove refuse, word for word."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.build import BuildError
from tilewright.driver.lower import DefinitionError
from tilewright.runtime.engine.engine import Engine
from tilewright.runtime.engine.engine_code import EngineError

from ..tiny_engine import tiny_engine


def read(column: int, *, name: str = "f") -> tw.PrimFunc:
    a = te.placeholder((4, 5), "float32", name="A")
    return te.func(a, te.compute((4,), lambda i: a[i, column], name="y"), name=name)


@pytest.mark.parametrize("target", ["c:scalar", "c:avx512", "cuda:sm_90a", "python"])
def test_a_definition_that_reads_outside_of_a_tensor_is_the_user_s_error(target: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        tw.build(read(7), target)
    assert isinstance(caught.value, IndexError)
    assert str(caught.value) == (
        "DefinitionError: build: the definition of 'f' is wrong: block 'y' loads A[0, 7]; 'A' has "
        "shape [4, 5]. [definition-refuted]\n"
        "  Note: found by P4; y(i=0).\n"
        "  Hint: te.select(inside, tensor[...], value) reads only where `inside` holds."
    )


def test_the_interpreter_refuses_a_wrong_definition_whatever_its_schedule() -> None:
    sch = tw.Schedule(read(5))
    sch.split(sch.loops("y")[0], (None, 2))
    with pytest.raises(DefinitionError, match=r"block 'y' loads A\[0, 5\]"):
        tw.build(sch, "python", verify="off")


def test_what_is_no_function_is_refused() -> None:
    tensor = te.placeholder((4,), "float32", name="A")
    with pytest.raises(BuildError) as caught:
        tw.build(tensor)  # type: ignore[arg-type]
    assert isinstance(caught.value, TypeError)
    assert str(caught.value) == (
        "BuildError: build: got a Tensor; expected a PrimFunc or a Schedule. [build-what]\n"
        "  Hint: te.func(inputs..., outputs..., name=...) makes a PrimFunc of tensors."
    )
    with pytest.raises(BuildError, match="prove: got a NoneType; expected a PrimFunc"):
        tw.prove(None)  # type: ignore[arg-type]


def test_an_unknown_way_to_verify_is_refused() -> None:
    with pytest.raises(BuildError) as caught:
        tw.build(read(0), verify="some")  # type: ignore[arg-type]
    assert str(caught.value) == (
        "BuildError: build: verify is 'some'; expected one of 'all', 'rewrites', 'kernels', 'off'. "
        "[build-verify]"
    )


def test_what_is_allowed_is_an_instruction_that_takes_a_liberty() -> None:
    cases = ((("vpdpbusd",), "vpdpbusd"), ("vdpbf16ps", "vdpbf16ps"))
    for given, named in cases:
        with pytest.raises(BuildError) as caught:
            tw.build(read(0), allow=given)
        assert str(caught.value) == (
            f"BuildError: build: allow names '{named}'; expected a tuple of instructions that take "
            "a liberty: 'vdpbf16ps', 'mma_m16n8k8_tf32'. [build-allow]"
        )


def test_a_strict_build_allows_no_liberty() -> None:
    with pytest.raises(BuildError) as caught:
        tw.build(read(0), strict=True, allow=("vdpbf16ps",))
    assert str(caught.value) == (
        "BuildError: build: allow names 'vdpbf16ps', which adds the second of two products first "
        "and takes subnormal numbers as zero; expected no such instruction, since the build is "
        "strict. [build-allow-strict]\n"
        "  Hint: leave out allow, or build without strict."
    )


def test_a_function_is_proved_as_it_stands() -> None:
    assert tw.prove(read(0)).status == "proved"
    assert tw.prove(read(7)).status == "refuted"


@pytest.mark.needs_cc
def test_an_engine_without_contexts_is_refused_and_does_not_wait_for_ever() -> None:
    with pytest.raises(EngineError) as caught:
        Engine(tiny_engine().parts, max_contexts=0)
    assert str(caught.value) == (
        "EngineError: engine: max_contexts is 0; expected at least 1, or None. [engine-contexts]"
    )


@pytest.mark.needs_cc
def test_a_kernel_may_have_any_name() -> None:
    kernel = tw.build(read(1, name='x"*/\n#include <a> ' + "long" * 100))
    values = np.arange(20, dtype=np.float32).reshape(4, 5)
    np.testing.assert_array_equal(kernel(values), values[:, 1])
    assert "vmov" in kernel.assembly or "mov" in kernel.assembly
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(values), values[:, 1])
