"""A whole engine that is not what its launches are is found, and what is to blame is named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.c.program import emit_program
from tilewright.codegen.c.program_source import program_source
from tilewright.driver.build_program import build_program
from tilewright.driver.check import blas_threads
from tilewright.driver.check import engine as check_engine
from tilewright.driver.check.blas_threads import BlasThreads
from tilewright.driver.check.engine import EngineCheck, EngineChecker, EngineCheckError
from tilewright.driver.check.engine_runs import ThreadedRuns
from tilewright.driver.check.program import ProgramCheckError
from tilewright.driver.compile_ahead import CompiledC
from tilewright.driver.jobs import ProgramOptions
from tilewright.driver.lower_program import lower_program
from tilewright.runtime.cpu.program_code import NativeProgram, prepare_constants
from tilewright.runtime.model.model import Model
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.evaluate import evaluate_program
from tilewright.tir.program.program import Copy, Program, Repeat, Sync
from tilewright.tir.program.syncs import place_syncs
from tilewright.tir.target.target import Target

from ...checked_program import embedding, tables
from ...looping_program import CONSTANTS, looping, rows
from ...tiny_program import SIZE, constants, overlapping, piece, tiny

pytestmark = pytest.mark.needs_cc

TARGET = Target.parse("c:scalar")
HALF = "(bytes / 64 / (size_t)(threads > 2 ? 4 : threads) + 1)"
Arrays = Mapping[str, np.ndarray]


@dataclass
class Reference:
    """What a program means, times `factor`."""

    program: Program
    constants: Arrays
    factor: float = 1.0
    decides: bool = False

    @property
    def stores_halves(self) -> bool:
        return Model(self.program, self.constants).stores_halves

    def why_not_run(self, inputs: Arrays) -> str | None:
        return Model(self.program, self.constants).why_not_run(inputs)

    def __call__(self, inputs: Arrays) -> Arrays:
        return self._evaluated(inputs, "float64")

    def in_own_types(self, inputs: Arrays) -> Arrays:
        return self._evaluated(inputs, None)

    def _evaluated(self, inputs: Arrays, kind: str | None) -> Arrays:
        with np.errstate(over="ignore"):
            outputs = evaluate_program(self.program, inputs, self.constants, kind)
        return {name: array * self.factor for name, array in outputs.items()}


def checked(
    old: str = "",
    new: str = "",
    *,
    program: Program | None = None,
    meant: Program | None = None,
    kept: Arrays | None = None,
    factor: float = 1.0,
    decides: bool = False,
) -> EngineCheck:
    """The check of a tiny engine, its C changed behind everybody's back."""
    program, kept = program or tiny(), kept or constants()
    lowered = lower_program(program, TARGET)
    artifact = emit_program(lowered.program, TARGET)
    text = program_source(artifact)
    assert text.count(old) > 0
    shared = compile_shared(text.replace(old, new) if old else text, TARGET)
    bound = {i: kept[tensor.name] for i, tensor in enumerate(program.constants)}
    code = NativeProgram(artifact, shared, prepare_constants(artifact, shared, bound))
    oracle = Reference(meant or program, kept, factor, decides)
    return EngineChecker(ThreadedRuns(code), Model(program, kept), oracle).check()


def copying() -> Program:
    """tiny(), whose output is copied out of the arena."""
    program = tiny()
    copy = Copy(piece("arena", SIZE), piece("output", 0))
    return place_syncs(replace(program, body=(*program.launches[:3], copy)))


def test_a_right_engine_passes_and_its_verdict_says_on_what() -> None:
    check = checked()
    assert list(check.shares) == ["random", "extreme"]
    assert all(share is not None and share <= 1 for share in check.shares.values())
    assert str(check).startswith("ok on 1, 2 and 3 threads, equal bits; error over bound: random ")


def test_indices_out_of_their_range_are_compared_as_the_nearest() -> None:
    check = checked(program=embedding(), kept=tables())
    assert check.shares["extreme"] is not None


def test_launches_that_are_given_the_wrong_place_are_found() -> None:
    """In the C alone: the second product's result lies where the first one's does."""
    with pytest.raises(EngineCheckError) as refused:
        checked(f"args[2], scratch + {SIZE},", "args[2], scratch + 0,")
    assert "run alone, each of its launches is right" in str(refused.value)


def test_a_place_that_is_given_away_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.codegen.c.program.check_memory", lambda artifact: None)
    with pytest.raises(EngineCheckError, match="something writes over arena") as refused:
        checked(program=overlapping(), meant=tiny())
    assert "which 'add' reads" in str(refused.value)


def test_a_copy_that_is_cut_short_is_found() -> None:
    whole = "bytes - first < part ? bytes - first : part"
    short = whole.replace("bytes - first :", "bytes - first - 4 :")
    with pytest.raises(EngineCheckError, match="on random data output y: error"):
        checked(whole, short, program=copying())


def test_a_share_that_some_threads_lose_is_found() -> None:
    with pytest.raises(EngineCheckError, match="other bits on 3 threads"):
        checked("(bytes / 64 / (size_t)threads + 1)", HALF, program=copying())


def test_a_write_behind_scratch_memory_is_found() -> None:
    with pytest.raises(EngineCheckError) as refused:
        checked("(void)scratch,", f"scratch[{3 * SIZE + 100}] = 1,")
    assert str(refused.value) == (
        "EngineCheckError: check: the engine of 'tiny' is wrong: it wrote outside of its scratch "
        "memory on 1 thread, on random data. [check-engine]\n"
        "  Hint: this is a defect of tilewright, please report it; verify='kernels' builds the "
        "engine without this check."
    )


def test_a_write_before_scratch_memory_is_found() -> None:
    with pytest.raises(EngineCheckError, match="outside of its scratch memory"):
        checked("(void)scratch,", "scratch[-1] = 1,")


@pytest.mark.parametrize(
    ("argument", "what"),
    [(0, "its input 'x' on 1 thread, on"), (1, "its weights, on")],
)
def test_a_write_into_what_is_only_read_is_found(argument: int, what: str) -> None:
    with pytest.raises(EngineCheckError, match=f"it wrote into {what} random data"):
        checked("(void)scratch,", f"((float *)args[{argument}])[0] += 1,")


def test_a_write_outside_of_an_output_is_found() -> None:
    with pytest.raises(EngineCheckError, match="outside of 'y'"):
        checked("(void)scratch,", "((float *)args[3])[-1] = 1,")


def test_a_wrong_kernel_is_named() -> None:
    with pytest.raises(ProgramCheckError) as refused:
        checked("+ B[", "- B[")
    assert refused.value.functions == ("add",)
    assert "in the engine" in str(refused.value)


def test_an_engine_that_is_not_its_model_is_refused_though_each_launch_is_right() -> None:
    with pytest.raises(EngineCheckError) as refused:
        checked(factor=1.001)
    assert "on random data output y: error" in str(refused.value)
    assert "each of its launches is right" in str(refused.value)
    assert checked(factor=1 + 1e-7)


def test_a_model_that_decides_is_compared_launch_by_launch() -> None:
    check = checked(factor=1.001, decides=True)
    assert check.shares == {"random": None, "extreme": None}
    assert "random data launch by launch" in str(check)


def test_what_leaves_the_types_of_the_model_is_not_compared() -> None:
    """A sum of products that float64 holds, and float32 does not."""
    kept = {name: array * np.float32(5e37) for name, array in constants().items()}
    assert checked(kept=kept).shares["extreme"] is not None


def test_the_verdict_stands_in_the_report() -> None:
    program, kept = tiny(), constants()
    options = ProgramOptions(oracle=Reference(program, kept))
    engine = build_program(program, kept, TARGET, options=options)
    assert engine.explain().whole.startswith("ok on 1, 2 and 3 threads")
    assert f"whole engine: check {engine.explain().whole}" in str(engine.explain())
    quiet = build_program(program, kept, TARGET, options=replace(options, verify="kernels"))
    assert quiet.explain().whole == "off"
    wrong = replace(options, oracle=Reference(program, kept, factor=2.0))
    with pytest.raises(EngineCheckError):
        build_program(program, kept, TARGET, options=wrong)


def test_products_take_fewer_threads_while_kernels_and_engines_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    count, seen = [4], dict[str, int]()
    threads = BlasThreads(lambda: count[0], lambda to: count.__setitem__(0, to))
    monkeypatch.setattr(blas_threads, "blas_threads", lambda: threads)
    monkeypatch.setattr(blas_threads, "allowed_cpus", lambda: 6)

    def note(kind: type, name: str) -> None:
        method = getattr(kind, name)

        def noted(*arguments: object) -> object:
            seen[name] = count[0]
            return method(*arguments)

        monkeypatch.setattr(kind, name, noted)

    note(CompiledC, "checks")
    note(EngineChecker, "_same_in_all_ways")
    program, kept = tiny(), constants()
    build_program(program, kept, TARGET, options=ProgramOptions(oracle=Reference(program, kept)))
    assert seen == {"checks": 1, "_same_in_all_ways": 3}
    assert count == [4]


def test_special_data_has_every_extreme() -> None:
    parameter = Parameter("x", FLOAT32, (4000,), "input")
    drawn = check_engine._extreme(np.random.default_rng(0), parameter)
    seen = {(float(x), bool(np.signbit(x))) for x in drawn}
    wanted = {(float(np.float32(x)), bool(np.signbit(x))) for x in check_engine._EXTREME}
    assert wanted <= seen


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops that data end are given up early."""
    monkeypatch.setattr("tilewright.runtime.model.model._MOST_STEPS", 2000)


@pytest.mark.usefixtures("short")
def test_a_model_that_loops_is_run_on_data_on_which_it_ends() -> None:
    check = checked(program=looping(), kept=CONSTANTS)
    assert check.shares["random"] is not None
    assert set(check.shares) | set(check.left_out) == {"random", "extreme"}


@pytest.mark.usefixtures("short")
def test_a_model_that_does_not_end_is_not_run() -> None:
    program = looping()
    (*before, _, last) = (step for step in program.body if not isinstance(step, Sync))
    assert isinstance(last, Repeat)
    alone = tuple(step for step in last.body if step != rows("add", loop=9))
    for_ever = replace(last, count=None, condition=None, body=alone)
    endless = place_syncs(replace(program, body=(*before, for_ever)))
    check = checked(program=endless, kept=CONSTANTS)
    assert str(check) == (
        "not run on random data: the model takes more than 2000 steps; "
        "not run on extreme data: the model takes more than 2000 steps"
    )


@pytest.mark.usefixtures("short")
def test_a_wrong_kernel_in_a_branch_or_a_loop_is_named() -> None:
    with pytest.raises(ProgramCheckError) as refused:
        checked("+ B[", "- B[", program=looping(), kept=CONSTANTS)
    assert refused.value.functions == ("add",)


@pytest.mark.usefixtures("short")
def test_a_loop_that_runs_once_too_often_is_found_though_each_launch_is_right() -> None:
    with pytest.raises(EngineCheckError) as refused:
        checked("i7 < n7", "i7 <= n7", program=looping(), kept=CONSTANTS)
    assert "run alone, each of its launches is right" in str(refused.value)


@pytest.mark.usefixtures("short")
def test_a_row_from_the_wrong_end_and_a_branch_the_wrong_way_are_found() -> None:
    for old, new in (("(2 - i9)", "(i9)"), ("if (*(const", "if (!*(const")):
        with pytest.raises(EngineCheckError, match="on random data output"):
            checked(old, new, program=looping(), kept=CONSTANTS)
