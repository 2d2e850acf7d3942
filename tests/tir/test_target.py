"""tir/target.py: targets are pure values with names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tilewright.tir.dtype import FLOAT32, FLOAT64, dtype
from tilewright.tir.errors import TargetError, TargetTypeError
from tilewright.tir.target import ISAS, Target, covers


@pytest.mark.parametrize(
    "text",
    [
        *("c:scalar", "c:avx2", "c:avx512", "c:avx512+vnni", "c:avx512+bf16"),
        *("c:avx512+vnni+bf16", "python", "null"),
    ],
)
def test_a_target_prints_as_the_text_that_names_it(text: str) -> None:
    assert str(Target.parse(text)) == text
    assert Target.parse(str(Target.parse(text))) == Target.parse(text)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("c:avx512+vnmi", "'vnni', 'bf16'"),
        ("c:avx512+bf61", "'bf16', 'vnni'"),
        ("c:avx2+vnni", "none"),
    ],
)
def test_an_unknown_feature_is_refused(text: str, known: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    isa, _, feature = text[2:].partition("+")
    assert str(caught.value) == (
        f"TargetError: target: '{isa}' has no feature '{feature}' in '{text}'; expected {known}. "
        "[target-feature]"
    )


def test_a_target_keeps_the_features_that_code_uses() -> None:
    target = Target.parse("c:avx512+vnni")
    assert target.using(()) == Target.parse("c:avx512")
    assert target.using(("vnni", "other")) == target


@pytest.mark.parametrize(
    ("needed", "runs"),
    [
        ("avx512", True),
        ("avx512+vnni", True),
        ("avx2", True),
        ("avx2+vnni", False),
        ("avx512+bf16", False),
        ("neon", False),
    ],
)
def test_a_machine_covers_what_it_has(needed: str, runs: bool) -> None:
    assert covers(("avx512+vnni", "avx2", "scalar"), needed) == runs


def test_c_alone_is_the_scalar_target() -> None:
    assert Target.parse("c") == Target()
    assert str(Target()) == "c:scalar"


def test_lanes_are_those_of_one_vector_register() -> None:
    wide = Target.parse("c:avx512")
    assert wide.lanes(FLOAT32) == 16
    assert wide.lanes(FLOAT64) == 8
    assert wide.lanes(dtype("uint8")) == 64
    assert Target.parse("c:avx2").lanes(FLOAT32) == 8
    assert Target().lanes(FLOAT32) == 1


def test_only_vector_targets_have_a_fused_multiply_add() -> None:
    assert [Target.parse(f"c:{isa}").has_fma for isa in ISAS] == [False, True, True, True]


def test_every_field_goes_into_json() -> None:
    target = replace(Target.parse("c:avx512+vnni"), threads=7)
    read = json.loads(json.dumps(target.to_json()))
    assert Target(**{**read, "features": tuple(read["features"])}) == target


def test_an_unknown_back_end_is_refused_with_those_that_exist() -> None:
    with pytest.raises(TargetError) as refusal:
        Target.parse("cpu:avx2")
    assert str(refusal.value) == (
        "TargetError: target: unknown back end 'cpu' in 'cpu:avx2'; expected one of 'cuda', "
        "'c', 'python', 'null'. [target-kind]"
    )


def test_what_is_no_text_names_no_target() -> None:
    with pytest.raises(TargetTypeError) as refusal:
        Target.parse(3)  # type: ignore[arg-type]
    assert isinstance(refusal.value, TypeError)
    assert str(refusal.value) == (
        "TargetTypeError: target: got 3; expected a Target or its name, such as 'c:avx2' or "
        "'python'. [target-type]"
    )


def test_an_unknown_instruction_set_is_refused_with_those_that_exist() -> None:
    with pytest.raises(TargetError) as refusal:
        Target.parse("c:avx3")
    assert str(refusal.value) == (
        "TargetError: target: unknown instruction set 'avx3' in 'c:avx3'; expected one of 'avx2', "
        "'avx512', 'scalar', 'neon'. [target-isa]"
    )


def test_a_gpu_is_named_by_its_architecture() -> None:
    target = Target.parse("cuda:sm_90a")
    assert (str(target), target.gpu is not None, target.has_fma) == ("cuda:sm_90a", True, True)
    with pytest.raises(TargetError) as refusal:
        Target.parse("cuda:sm_9000")
    assert str(refusal.value) == (
        "TargetError: target: unknown architecture 'sm_9000' in 'cuda:sm_9000'; expected one of "
        "'sm_90', 'sm_90a', 'sm_100', 'sm_80', 'sm_86', 'sm_89', 'sm_120'. [target-gpu]\n"
        "  Hint: cuda:sm_80 is an A100, cuda:sm_90a an H100 or H200."
    )
    with pytest.raises(TargetError, match="target: no architecture in 'cuda'; expected one of"):
        Target.parse("cuda")
