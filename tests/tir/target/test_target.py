"""tir/target/target.py: targets are pure values with names."""

from __future__ import annotations

import json
import pickle
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tilewright.tir.dtype import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, dtype
from tilewright.tir.errors import TargetError, TargetTypeError
from tilewright.tir.target.gpu import GPUS
from tilewright.tir.target.target import ISAS, CpuTarget, GpuTarget, Target, covers, named


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
        ("c:avx2+bf16", "'vnni'"),
        ("c:neon+vnni", "'dotprod', 'i8mm'"),
        ("c:scalar+vnni", "none"),
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
    assert (target.features, target.limits) == ((), None)
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


TARGETS = (
    *(Target(), Target("c", threads=3), Target.parse("c:avx512+vnni"), Target("python")),
    *(Target("cuda"), Target("cuda", "sm_90a"), Target("cuda", "sm_80", gb_per_s=1555)),
)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_target_is_of_the_class_that_its_names_ask_for(target: Target) -> None:
    made = GpuTarget if target.kind == "cuda" else CpuTarget
    assert type(target) is made
    assert made.of(target) is target
    assert target.has_grid == (made is GpuTarget)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_copy_of_a_target_is_the_target(target: Target) -> None:
    copies = (pickle.loads(pickle.dumps(target)), copy(target), deepcopy(target), replace(target))
    for made in copies:
        assert made == target
        assert (hash(made), repr(made), type(made)) == (hash(target), repr(target), type(target))


def test_a_gpu_has_the_limits_and_rates_of_its_architecture_or_those_of_the_caller() -> None:
    target = Target("cuda", "sm_80")
    assert target == Target.parse("cuda:sm_80") == GpuTarget("cuda", "sm_80")
    assert target.limits is GPUS["sm_80"]
    small = GpuTarget("cuda", "sm_80", gb_per_s=1555)
    assert (small.gb_per_s, small.gflops) == (1555, GPUS["sm_80"].rates.gflops)
    assert small == replace(target, gb_per_s=1555) != target


def test_tensor_cores_have_a_rate_for_each_type() -> None:
    a100, h200 = (GpuTarget.of(Target("cuda", isa)) for isa in ("sm_80", "sm_90a"))
    kinds = (FLOAT16, BFLOAT16, FLOAT32, dtype("int8"))
    assert [a100.warp_gflops(kind) for kind in kinds] == [312e3, 312e3, 156e3, 624e3]
    assert h200.warp_gflops(FLOAT16) == 0.63 * 989e3  # the rest is for four warps together


@pytest.mark.parametrize("isa", GPUS)
def test_rates_of_tensor_cores_are_at_least_those_without(isa: str) -> None:
    rates = GPUS[isa].rates
    assert rates.gflops <= rates.tf32_gflops < rates.f16_gflops < rates.int8_gops


def test_a_field_of_the_other_class_is_refused() -> None:
    with pytest.raises(TargetError) as caught:
        Target("cuda", "sm_80", l1_bytes=1 << 15)
    assert str(caught.value) == (
        "TargetError: target: 'cuda:sm_80' is a GPU, which has no 'l1_bytes'; expected one of "
        "'gflops', 'gb_per_s', 'f16_gflops', 'tf32_gflops', 'int8_gops', 'f8_gflops'. "
        "[target-field]"
    )
    for fields in ({"gflops": 1.0}, {"kind": "python", "gb_per_s": 2.0}):
        with pytest.raises(TargetError, match=r"is a CPU, which has no '.*\[target-field\]"):
            Target(**fields)
    with pytest.raises(TypeError, match="l1_byte"):
        Target("cuda", l1_byte=1)


def test_a_class_is_for_what_it_can_be() -> None:
    with pytest.raises(TargetError) as caught:
        replace(Target("null"), kind="cuda", isa="sm_80")
    assert str(caught.value) == (
        "TargetError: target: 'cuda:sm_80' is a GPU; expected a CPU. [target-class]\n"
        "  Hint: Target(...) makes what the names ask for."
    )
    with pytest.raises(TargetError) as caught:
        GpuTarget.of(Target("c", "avx2"))
    assert str(caught.value) == (
        "TargetError: target: 'c:avx2' is a CPU; expected a GPU. [target-class]"
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"kind": "cpu"}, "target-kind"),
        ({"isa": "avx3"}, "target-isa"),
        ({"kind": "cuda", "isa": "avx2"}, "target-gpu"),
        ({"isa": "avx2", "features": ("bf16",)}, "target-feature"),
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


@pytest.mark.parametrize("name", ["c:avx512+vnni", "cuda:sm_90a"])
def test_every_field_goes_into_json(name: str) -> None:
    target = replace(Target.parse(name), threads=7)
    read = json.loads(json.dumps(target.to_json()))
    assert Target(**{**read, "features": tuple(read["features"])}) == target


def test_an_unknown_back_end_is_refused_with_those_that_exist() -> None:
    with pytest.raises(TargetError) as refusal:
        Target.parse("cpu:avx2")
    assert str(refusal.value) == (
        "TargetError: target: unknown back end 'cpu' in 'cpu:avx2'; expected one of 'cuda', "
        "'c', 'python', 'null'. [target-kind]\n"
        "  Hint: 'c' compiles for this machine's CPU, 'cuda' for its GPU.\n"
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
    assert (str(target), target.has_grid, target.has_fma) == ("cuda:sm_90a", True, True)
    with pytest.raises(TargetError) as refusal:
        Target.parse("cuda:sm_9000")
    assert str(refusal.value) == (
        "TargetError: target: unknown architecture 'sm_9000' in 'cuda:sm_9000'; expected one of "
        "'sm_90', 'sm_90a', 'sm_100', 'sm_80', 'sm_86', 'sm_89', 'sm_120'. [target-gpu]\n"
        "  Hint: cuda:sm_80 is an A100, cuda:sm_90a an H100 or H200."
    )
