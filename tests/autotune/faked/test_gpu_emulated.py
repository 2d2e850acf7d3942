"""A worker measures the rule's own kernels on a fake device that computes: the emulation of their
source runs behind the driver, on the arguments that a launch packs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright as tw
from tilewright import te
from tilewright.autotune.measure.lowering import write
from tilewright.autotune.space.space import TuningSpace
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target

from ...runtime.cuda.emulated_device import emulate_on_device

TARGET = Target.parse("cuda:sm_90a")


def twice() -> PrimFunc:
    """Two products, a constant that is prepared, and what lies between the kernels."""
    x = te.placeholder((48, 40), "float32", name="x")
    w = te.placeholder((40, 40), "float32", name="w", constant=True)
    v = te.compute((40, 40), lambda i, j: w[j, i] * 2.0, name="v")
    k, m = te.reduce_axis(40, name="k"), te.reduce_axis(40, name="m")
    y = te.compute((48, 40), lambda i, j: te.sum(x[i, k] * v[k, j], axis=k), name="y")
    z = te.compute((48,), lambda i: te.sum(y[i, m], axis=m), name="z")
    return te.func(x, w, z, name="twice")


@pytest.mark.needs_cxx
@pytest.mark.parametrize(("factor", "outcome"), [("2.0f", "ok"), ("3.0f", "wrong")])
def test_the_rule_s_own_kernels_are_held_against_the_reference(
    factor: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device computes what the source says, and once something else."""
    func = twice()
    code = write(TuningSpace(func, TARGET).candidate(), TARGET).artifact
    assert isinstance(code, CudaArtifact)
    assert code.prepare is not None
    assert code.run.temporaries
    assert "2.0f" in code.source
    emulate_on_device([code.source.replace("2.0f", factor)], tmp_path, monkeypatch)
    (trial,) = tw.tune(func, TARGET, trials=1).history
    assert trial.outcome == outcome, trial.text
    if outcome == "ok":
        assert trial.seconds == pytest.approx(len(code.run.launches) * 10e-6)
    else:
        assert "differ from its reference" in trial.text
