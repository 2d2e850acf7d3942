"""driver/tuning/c_tuner.py: nothing is searched that this machine could not measure."""

from __future__ import annotations

import pytest

from tilewright.autotune.tune import tune
from tilewright.driver.tuning.c_tuner import CTuner
from tilewright.runtime.machine.host import CPU_VARIABLE, can_compile
from tilewright.tir.errors import TargetError
from tilewright.tir.target.target import Target

from ...autotune.samples import scaled
from ...isas import HERE

X86 = can_compile(Target.parse("c:avx2"))
SAID = {
    "c:avx2": "which this machine lacks; it has scalar",
    "c:neon": "another kind of processor than this machine's",
}


@pytest.mark.parametrize("target", HERE)
def test_what_this_cpu_has_is_measured_here(target: str) -> None:
    CTuner().check_here(Target.parse(target))


@pytest.mark.skipif(not X86, reason="the words are those for x86")
@pytest.mark.parametrize("target", SAID)
def test_a_target_that_this_cpu_does_not_run_is_refused_before_any_work(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CPU_VARIABLE, "scalar")
    with pytest.raises(TargetError) as refused:
        tune(scaled(), target)
    assert str(refused.value) == (
        f"TargetError: tune: the target is '{target}', {SAID[target]}; expected one whose "
        "candidates run here. [tune-isa]\n"
        "  Hint: target 'c' is this machine; executor= measures on another one.\n"
        "  Hint: tw.build and tw.compile take such a target, and what was tuned for it elsewhere."
    )
