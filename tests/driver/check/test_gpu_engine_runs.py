"""A whole engine for a GPU that is not what its launches are is found by its emulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.codegen.cuda.build import write_cuda
from tilewright.codegen.cuda.program import emit_program
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.codegen.cuda.streams import Placed, place_on_streams
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.driver.check import gpu_engine_runs as module
from tilewright.driver.check.engine import EngineCheck, EngineChecker, EngineCheckError
from tilewright.driver.check.engine_runs import RefusedStepError
from tilewright.driver.check.gpu_engine_runs import (
    EmulatedRuns,
    emulated_operations,
)
from tilewright.driver.check.program import ProgramCheckError
from tilewright.driver.compile_ahead_cuda import CompiledCuda
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.model.model import Model
from tilewright.tir.program.program import Copy, Program, Step
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.target.target import Target

from ... import gpu_program as hand
from ...checked_program import embedding, tables
from ...tiny_program import SIZE, K, M, N, constants, overlapping, piece, tiny
from .test_engine import Reference

pytestmark = pytest.mark.needs_cxx

TARGET = Target.parse("cuda:sm_90a")
Arrays = Mapping[str, np.ndarray]


def emitted(program: Program) -> CudaProgram:
    """The CUDA C of a program."""
    lowered = lower_program(program, TARGET)
    kernels = [write_cuda(Prepared(k.prepare, k.run), TARGET) for k in lowered.kernels.values()]
    return emit_program(lowered.program, kernels, TARGET)


def bound(artifact: CudaProgram, kept: Arrays) -> list[np.ndarray | None]:
    return [kept.get(parameter.name) for parameter in artifact.constants]


def checked(
    artifact: CudaProgram | None = None,
    *,
    program: Program | None = None,
    meant: Program | None = None,
    kept: Arrays | None = None,
) -> EngineCheck:
    """The check of an engine, by default of the tiny one, whose artifact may be another."""
    program, kept = program or tiny(), kept or constants()
    artifact = artifact or emitted(program)
    runs = EmulatedRuns(artifact, bound(artifact, kept))
    return EngineChecker(runs, Model(program, kept), Reference(meant or program, kept)).check()


def with_steps(artifact: CudaProgram, *body: Step) -> CudaProgram:
    return replace(artifact, body=body)


def with_source(artifact: CudaProgram, name: str, old: str, new: str) -> CudaProgram:
    """The artifact with another text in the source of one kernel."""

    def changed(kernel: CudaArtifact) -> CudaArtifact:
        if kernel.name != name:
            return kernel
        assert kernel.source.count(old) > 0, kernel.source
        return replace(kernel, source=kernel.source.replace(old, new))

    return replace(artifact, kernels=tuple(map(changed, artifact.kernels)))


def test_a_right_engine_passes_and_its_verdict_says_on_what() -> None:
    check = checked()
    assert all(share is not None and share <= 1 for share in check.shares.values())
    assert str(check).startswith(
        "ok emulated with each of 2 streams ahead, equal bits; error over bound: random data 0."
    )


def test_indices_out_of_their_range_are_compared_as_the_nearest() -> None:
    assert checked(program=embedding(), kept=tables()).shares["extreme"] is not None


def test_a_place_that_is_given_away_too_early_is_found() -> None:
    with pytest.raises(EngineCheckError, match="something writes over arena") as refused:
        checked(program=overlapping(), meant=tiny())
    assert "which 'add' reads" in str(refused.value)


def test_memory_of_a_kernel_s_own_in_the_place_of_its_result_is_found() -> None:
    """Only the plan of the device knows of it, and the emulation refuses the launch."""
    x, y = hand.piece("input", 0), hand.piece("output", 0)
    place = hand.arena(0)
    between = replace(place, position=64)
    artifact = hand.program(hand.scale(x, place, between, "twice"), hand.add(place, x, y))
    runs = EmulatedRuns(artifact, (np.ones(hand.N, np.float32), None))
    with pytest.raises(RefusedStepError) as refused:
        runs.run(0, [np.ones(hand.N, np.float32)])
    assert str(refused.value) == (
        "'twice' cannot run: 'C' and 'between' share memory; expected arrays that do not"
    )


def test_two_tensors_in_one_place_are_found() -> None:
    """In the plan of the device alone: the second product lies where the first one does."""
    artifact = emitted(tiny())
    first, second, relu, add = artifact.launches
    place = first.arguments[2]
    second = replace(second, arguments=(*second.arguments[:2], place, *second.arguments[3:]))
    add = replace(add, arguments=(add.arguments[0], place, *add.arguments[2:]))
    with pytest.raises(EngineCheckError) as refused:
        checked(with_steps(artifact, first, second, relu, add))
    assert "and step 1 is mm1(" in str(refused.value)
    assert "the plan of its steps is to blame" in str(refused.value)


def test_a_launch_that_is_dropped_is_found() -> None:
    artifact = emitted(tiny())
    first, second, _, add = artifact.launches
    with pytest.raises(EngineCheckError, match=r"step 2 is add\(.*; its program has relu\("):
        checked(with_steps(artifact, first, second, add))


def test_launches_that_are_exchanged_are_found() -> None:
    artifact = emitted(tiny())
    first, second, relu, add = artifact.launches
    with pytest.raises(EngineCheckError, match=r"step 0 is relu\(.*; its program has mm1\("):
        checked(with_steps(artifact, relu, second, first, add))


def test_launches_that_do_not_depend_may_be_exchanged() -> None:
    artifact = emitted(tiny())
    first, second, relu, add = artifact.launches
    assert checked(with_steps(artifact, second, first, relu, add))


def test_a_wait_that_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_waits(program: CudaProgram) -> tuple[Placed, ...]:
        return tuple(replace(item, waits=()) for item in place_on_streams(program))

    monkeypatch.setattr(module, "place_on_streams", without_waits)
    with pytest.raises(EngineCheckError) as refused:
        checked()
    assert "output 'y' has other bits with stream 1 ahead than with stream 0" in str(refused.value)
    assert "Note: 'add' does not wait for 'second matmul', and touches" in str(refused.value)


def test_a_copy_that_is_cut_short_is_found() -> None:
    """The result of relu is copied before it is read, in the plan of the device to one half."""
    program = tiny()
    third, fourth = piece("arena", 2 * SIZE), piece("arena", 3 * SIZE)
    add = replace(program.launches[3], arguments=(fourth, *program.launches[3].arguments[1:]))
    body = (*program.launches[:3], Copy(third, fourth), add)
    program = place_syncs(replace(program, body=body, arena_bytes=4 * SIZE))
    artifact = emitted(program)
    assert checked(artifact, program=program)
    half = Copy(replace(third, shape=(N // 2, M)), replace(fourth, shape=(N // 2, M)))
    first, second, relu, add = artifact.launches
    with pytest.raises(EngineCheckError, match=r"step 3 is copy\(.*; its program has copy\("):
        checked(with_steps(artifact, first, second, relu, half, add), program=program)


def test_an_operand_that_is_another_tensor_is_found() -> None:
    program = tiny()
    first, second, relu, add = program.launches
    add = replace(add, arguments=(add.arguments[1], *add.arguments[1:]))
    wrong = place_syncs(replace(program, body=(first, second, relu, add)))
    with pytest.raises(EngineCheckError, match="on random data output y: error") as refused:
        checked(program=wrong, meant=program)
    assert "each of its launches is right" in str(refused.value)


def test_a_wrong_kernel_is_named() -> None:
    with pytest.raises(ProgramCheckError) as refused:
        checked(with_source(emitted(tiny()), "add", "+ B[", "- B["))
    assert refused.value.functions == ("add",)
    assert "in the engine" in str(refused.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("((float *)A)[0] += 1;", "it wrote into 'A', which it may only read"),
        ("S[-1] = 1;", "it wrote outside of 'S'"),
        (f"S[{N * M}] = 1;", "it wrote outside of 'S'"),
    ],
)
def test_a_kernel_that_writes_where_it_may_not_is_named(line: str, what: str) -> None:
    wrong = with_source(emitted(tiny()), "add", "S[", f"{line} S[")
    with pytest.raises(ProgramCheckError) as refused:
        checked(wrong)
    assert "'add': " in str(refused.value)
    assert f"{what}, in the engine" in str(refused.value)


def compiled(program: Program) -> CompiledCuda:
    return CompiledCuda(emitted(program), (), "emulation")


def test_operations_are_those_of_all_launches() -> None:
    product, element = 2 * N * M * K, N * M
    assert emulated_operations(tiny()) == 2 * product + 2 * element


def test_what_is_too_large_to_emulate_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    program, kept = tiny(), constants()
    made = compiled(program)
    needed = 4 * emulated_operations(program)
    monkeypatch.setattr(module, "MOST_OPERATIONS", needed)
    assert isinstance(made.engine_runs(bound(made.artifact, kept), program), EmulatedRuns)
    monkeypatch.setattr(module, "MOST_OPERATIONS", needed - 1)
    assert made.engine_runs(bound(made.artifact, kept), program) == (
        f"not run: too large to emulate: {needed} operations in 4 runs, at most {needed - 1}"
    )
