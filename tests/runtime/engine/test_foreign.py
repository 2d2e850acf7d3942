"""runtime/engine/foreign.py: what is for a processor that is not here has a source and refuses to
run.
"""

from __future__ import annotations

import pickle
import platform
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tilewright.driver.build_program import build_program
from tilewright.runtime.engine.export_c import ExportError
from tilewright.runtime.machine.host import CPU_VARIABLE, can_compile, host
from tilewright.runtime.toolchain.compile import assembly
from tilewright.tir.errors import TargetError
from tilewright.tir.target.target import Target

from ...schedule.programs import chain
from ...tiny_engine import tiny_engine
from ...tiny_program import constants, expected, image, tiny

NEON = Target.parse("c:neon")
BEST = f"c:{host().isa}"
beyond_scalar = pytest.mark.skipif(BEST == "c:scalar", reason="this CPU has scalar code alone")


@pytest.fixture
def on_x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.fixture
def scalar_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CPU that lacks what the compiler can compile for."""
    monkeypatch.setenv(CPU_VARIABLE, "scalar")


@pytest.mark.usefixtures("on_x86")
def test_what_can_compile_depends_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not can_compile(NEON)
    assert can_compile(Target.parse("c:avx2"))
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert can_compile(NEON)
    assert not can_compile(Target.parse("c:avx2"))
    assert can_compile(Target.parse("c:scalar"))


@pytest.mark.usefixtures("on_x86")
def test_a_kernel_for_neon_has_a_source_and_a_proof_but_does_not_run() -> None:
    kernel = pickle.loads(pickle.dumps(tw.build(chain(2, 8), "c:neon")))
    assert "#include <arm_neon.h>" in kernel.source
    assert kernel.proof.status == "proved"
    x, bias = np.ones((2, 8), np.float32), np.ones(8, np.float32)
    with pytest.raises(TargetError) as caught:
        kernel(x, bias)
    assert str(caught.value) == (
        "TargetError: run: 'chain' is for c:neon, another kind of processor than this machine's. "
        "[run-foreign]\n"
        "  Hint: its source is C, to be compiled where it runs; target 'c' is this machine."
    )


@pytest.mark.usefixtures("on_x86")
def test_nothing_is_compiled_for_another_kind_of_processor() -> None:
    with pytest.raises(TargetError) as caught:
        assembly("int x;", NEON)
    assert str(caught.value) == (
        "TargetError: compile: 'kernel' is for c:neon, another kind of processor than this "
        "machine's. [compile-foreign]\n"
        "  Hint: target 'c' is this machine; tw.build(func, target).source is the C text."
    )


@pytest.mark.isa
@pytest.mark.needs_cc
@beyond_scalar
@pytest.mark.usefixtures("scalar_cpu")
@pytest.mark.parametrize("verify", ["all", "off"])
def test_a_kernel_beyond_this_cpu_is_proved_and_written_and_refuses_to_run(verify: str) -> None:
    kernel = tw.build(chain(2, 8), BEST, verify=verify)  # type: ignore[arg-type]
    assert kernel.proof.status == "proved"
    assert kernel.source
    assert kernel.assembly
    x, bias = np.ones((2, 8), np.float32), np.ones(8, np.float32)
    for call in (lambda: kernel(x, bias), lambda: kernel.time(x, bias)):
        with pytest.raises(TargetError) as caught:
            call()
        assert str(caught.value) == (
            f"TargetError: run: 'chain' is for {BEST}, which this machine lacks; it has scalar. "
            "[run-foreign]\n"
            "  Hint: its source is C, to be compiled where it runs; target 'c' is this machine."
        )


@beyond_scalar
def test_a_kernel_that_was_built_where_it_could_not_run_says_so_where_it_could(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = host().instructions
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    data = pickle.dumps(tw.build(chain(2, 8), BEST))
    monkeypatch.setenv(CPU_VARIABLE, whole[0])
    kernel = pickle.loads(data)
    with pytest.raises(TargetError) as caught:
        kernel(np.ones((2, 8), np.float32), np.ones(8, np.float32))
    assert caught.value.message == (
        f"run: 'chain' is for {BEST}, which the machine lacked that built it; expected a build on "
        "this one."
    )


@pytest.mark.isa
@pytest.mark.needs_cc
@beyond_scalar
def test_an_engine_beyond_this_cpu_is_not_run_here_and_runs_where_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = host().instructions
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    engine = build_program(tiny(), constants(), BEST)
    assert "mm1_prepare" in engine.source
    reason = f"not run: for {BEST}, which this machine lacks; it has scalar"
    assert {kernel.check for kernel in engine.explain().kernels} == {reason}
    assert {kernel.proof.partition(" ")[0] for kernel in engine.explain().kernels} == {"proved"}
    x = image()
    again = pickle.loads(pickle.dumps(engine))
    for made in (engine, again):
        for use in (lambda e: e(x), lambda e: e.context(), lambda e: e.profile()):
            with pytest.raises(TargetError) as caught:
                use(made)
            assert str(caught.value).startswith(
                f"TargetError: run: 'tiny' is for {BEST}, which this machine lacks; it has scalar. "
                "[run-foreign]"
            )
    with pytest.raises(ExportError) as refused:
        engine.export_c(tmp_path)
    assert str(refused.value) == (
        f"ExportError: export: 'tiny' is for {BEST}, which this machine lacks; it has scalar; "
        "expected a machine that can pack its weights. [export-foreign]\n"
        "  Hint: engine.save(path) here, tw.load(path).export_c(folder) on such a machine."
    )
    file = again.save(tmp_path / "tiny.twe")
    rebuilt = tw.load(file)
    assert str(rebuilt.parts.artifact.target) == "c:scalar"
    np.testing.assert_allclose(rebuilt(x), expected(x), rtol=1e-5, atol=1e-5)

    monkeypatch.setenv(CPU_VARIABLE, whole[0])
    loaded = tw.load(file, on_mismatch="refuse")
    assert str(loaded.parts.artifact.target) == BEST
    assert loaded.memory_plan == tiny_like(BEST).memory_plan
    np.testing.assert_array_equal(loaded(x), tiny_like(BEST)(x))
    assert (loaded.export_c(tmp_path / "exported") / "weights.bin").read_bytes() == (
        tiny_like(BEST).export_c(tmp_path / "usual") / "weights.bin"
    ).read_bytes()


def tiny_like(target: str) -> tw.Engine:
    return build_program(tiny(), constants(), target)


@pytest.mark.isa
@pytest.mark.needs_cc
@beyond_scalar
def test_an_engine_of_a_better_cpu_is_built_anew_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tiny_engine(BEST).save(tmp_path / "tiny.twe")
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    assert str(tw.load(file).parts.artifact.target) == "c:scalar"
    with pytest.raises(tw.TilewrightError, match=f"it was built for {BEST[2:]}; this machine has"):
        tw.load(file, on_mismatch="refuse")
    pickled = pickle.loads(pickle.dumps(tiny_engine(BEST)))
    with pytest.raises(TargetError, match="which this machine lacks; it has scalar"):
        pickled(image())
