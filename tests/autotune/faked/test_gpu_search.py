"""A search for a GPU from its beginning to what a build makes of its log."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tilewright as tw
from tilewright import te
from tilewright.autotune.log.file import read_log
from tilewright.autotune.log.record import Trial
from tilewright.autotune.tuning_log import TuningLog
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda.toolchain.compile import cuda_flags
from tilewright.runtime.cuda.toolchain.nvrtc import find_nvrtc
from tilewright.tir.errors import TargetError

from ..samples import on_grid, scaled

FUNC = scaled(4096)


def alone(trials: tuple[Trial, ...]) -> list[Trial]:
    """The jobs that are no confirmation rounds."""
    return [trial for trial in trials if not trial.method.session]


def test_a_search_finds_the_fastest_and_a_build_takes_it(
    plan: Callable[..., None], tmp_path: Path
) -> None:
    plan(before="if (threads == 256 && arguments) return 700;")
    log = tmp_path / "gpu.jsonl"
    result = tw.tune(FUNC, "cuda", rule=on_grid, trials=6, log=log)
    outcomes = {trial.decisions[0]: trial.outcome for trial in alone(result.history)}
    assert outcomes == {
        **dict.fromkeys((64, 32, 128, 512), "ok"),
        256: "crashed",
        1024: "build-failed",
    }
    best = result.best
    assert best is not None
    assert best.decisions == (32,)
    assert best.seconds == pytest.approx(13.2e-6)
    assert result.default_time == pytest.approx(16.4e-6)
    at = best.conditions
    assert (at.cpu, at.driver, at.compiler) == ("Fake H200", "CUDA 13.0", str(find_nvrtc()))
    assert at.flags == cuda_flags("sm_90a")
    assert at.target["isa"] == "sm_90a"
    assert best.method.cache == "warm"
    assert best.method.calibration is not None
    assert read_log(log).trials == result.history

    kernel = tw.build(FUNC, "cuda:sm_90a", schedules=TuningLog(log), verify="off")
    assert isinstance(kernel.artifact, CudaArtifact)
    assert kernel.artifact.run.launches[0].block == (32, 1, 1)
    advice = TuningLog(log).advice(FUNC, kernel.artifact.target)
    assert (advice.origin, advice.why) == ("tuned", "")


def test_a_search_goes_on_where_its_log_ends(plan: Callable[..., None], tmp_path: Path) -> None:
    """The default is fastest by far, so nothing is confirmed."""
    plan(before="*microseconds += threads == 64 ? 0 : 40;")
    log = tmp_path / "gpu.jsonl"
    first = tw.tune(FUNC, "cuda:sm_90a", rule=on_grid, trials=2, log=log)
    whole = tw.tune(FUNC, "cuda:sm_90a", rule=on_grid, trials=4, log=log)
    assert (len(first.history), len(whole.history)) == (2, 4)
    assert whole.history[:2] == first.history


def test_what_reads_constants_finds_none_of_them_in_the_caches(plan: Callable[..., None]) -> None:
    """The second-level cache of the fake has 60 MB, of which twice as many bytes are written."""
    plan("for (int i = 0; arguments && i < 64; ++i) given[2][i] = given[0][i] + given[1][i];")
    x = te.placeholder((64,), "float32", name="x")
    w = te.placeholder((64,), "float32", name="w", constant=True)
    y = te.compute((64,), lambda i: x[i] + w[i], name="y")
    func = te.func(x, w, y, name="biased")
    result = tw.tune(func, "cuda:sm_90a", rule=on_grid, trials=1)
    (trial,) = result.history
    assert trial.outcome == "ok", trial.text
    assert (trial.method.cache, trial.method.rotated, trial.method.calls) == ("cold", 125829120, 1)


def test_a_gpu_of_another_architecture_is_refused() -> None:
    with pytest.raises(TargetError) as refused:
        tw.tune(FUNC, "cuda:sm_80")
    assert str(refused.value) == (
        "TargetError: tune: the GPU here, 'Fake H200', is an sm_90a; expected one that runs code "
        "for 'cuda:sm_80'. [tune-arch]\n"
        "  Hint: target 'cuda' is the GPU that is here."
    )


def test_workers_of_an_executor_time_on_their_gpu(plan: Callable[..., None]) -> None:
    plan()
    with ThreadPoolExecutor(1) as executor:
        result = tw.tune(FUNC, "cuda:sm_90a", rule=on_grid, trials=1, executor=executor)
    (trial,) = result.history
    assert (trial.outcome, trial.conditions.cpu) == ("ok", "Fake H200")
    assert trial.seconds == pytest.approx(16.4e-6)
