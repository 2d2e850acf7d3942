"""tir/target.py: targets are pure values with names."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest

from tilewright.tir.dtype import FLOAT32, FLOAT64, dtype
from tilewright.tir.errors import TargetError, TargetTypeError
from tilewright.tir.gpu import GPUS
from tilewright.tir.target import ISAS, Target, covers, named


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


@pytest.mark.parametrize("kind", ["c", "cuda"])
def test_a_target_that_names_no_machine_is_open_and_keeps_what_it_gives(kind: str) -> None:
    target = Target(kind, threads=3)
    assert target.is_open
    assert (str(target), target.instructions, target.threads) == (kind, "", 3)
    assert (target.vector_bytes, target.l1_bytes, target.features) == (0, 0, ())
    assert Target.parse(kind) == Target(kind) != target
    assert pickle.loads(pickle.dumps(target)) == target
    assert named(replace(target, isa="avx2" if kind == "c" else "sm_80")).threads == 3


def test_an_open_target_is_refused_where_nobody_can_complete_it() -> None:
    with pytest.raises(TargetError) as caught:
        named(Target("c", threads=2))
    assert str(caught.value) == (
        "TargetError: target: 'c' names no instruction set; expected a target that was resolved, "
        "or one such as 'c:avx2'. [target-open]\n"
        "  Hint: tw.build, tw.compile and tw.tune resolve it: this machine is meant."
    )


@pytest.mark.parametrize("kind", ["python", "null"])
def test_what_compiles_nothing_has_the_scalar_machine_model(kind: str) -> None:
    target = Target(kind)
    assert target == Target.parse(kind) == replace(ISAS["scalar"], kind=kind)
    assert (target.is_open, target.threads, target.l1_bytes) == (False, 2, 32 << 10)


@pytest.mark.parametrize("isa", ISAS)
def test_a_target_by_its_fields_is_the_target_by_its_name(isa: str) -> None:
    assert Target("c", isa=isa) == Target.parse(f"c:{isa}") == ISAS[isa]
    assert Target("c", isa=isa, threads=5) == replace(ISAS[isa], threads=5)
    assert not Target("c", isa=isa).is_open


def test_a_gpu_by_its_fields_has_the_registers_of_its_architecture() -> None:
    assert Target("cuda", "sm_90a") == Target.parse("cuda:sm_90a")
    assert Target("cuda", "sm_90a").vector_registers == GPUS["sm_90a"].registers_per_thread


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"kind": "cpu"}, "target-kind"),
        ({"isa": "avx3"}, "target-isa"),
        ({"kind": "cuda", "isa": "avx2"}, "target-gpu"),
        ({"isa": "avx2", "features": ("vnni",)}, "target-feature"),
    ],
)
def test_fields_are_checked_as_names_are(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target(**fields)
    assert caught.value.code == code


def test_features_without_an_instruction_set_are_refused() -> None:
    with pytest.raises(TargetError) as caught:
        Target("c", features=("vnni",))
    assert str(caught.value) == (
        "TargetError: target: 'c:+vnni' has features and no instruction set; expected one before "
        "them, as in 'c:avx512+vnni'. [target-feature-alone]"
    )


def test_features_have_one_order() -> None:
    target = Target(isa="avx512", features=("bf16", "vnni"))
    assert target == Target.parse("c:avx512+vnni+bf16") == Target.parse("c:avx512+bf16+vnni")


def test_lanes_are_those_of_one_vector_register() -> None:
    wide = Target.parse("c:avx512")
    assert wide.lanes(FLOAT32) == 16
    assert wide.lanes(FLOAT64) == 8
    assert wide.lanes(dtype("uint8")) == 64
    assert Target.parse("c:avx2").lanes(FLOAT32) == 8
    assert ISAS["scalar"].lanes(FLOAT32) == 1


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
        "'c', 'python', 'null'. [target-kind]\n"
        "  Hint: a package may bring it, as an entry point of the group 'tilewright.targets'."
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
