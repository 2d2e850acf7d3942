"""A worker measures the rule's own kernels on a fake device that computes: the emulation of their
source runs behind the driver, on the arguments that a launch packs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewright as tw
from tilewright import te
from tilewright.autotune.building import write
from tilewright.autotune.space import TuningSpace
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda import emulation_build
from tilewright.runtime.library import Library, SharedObject
from tilewright.tir.func import PrimFunc
from tilewright.tir.target import Target

from ...runtime.cuda.shared_library import shared_library

TARGET = Target.parse("cuda:sm_90a")
PLAN = r"""
#include <dlfcn.h>
#include <stdio.h>
typedef void Emulate(void *thread, void *const *arguments, const long long *request,
                     long long *counts, void *findings, void *sites);
int fake_kernel(const char *name, const unsigned *grid, const unsigned *block,
                const void *arguments, double *microseconds)
{
    *microseconds = 10;
    if (!arguments || name[3] == 'p') return 0; /* recorded, or tw_probe */
    void *made = dlopen("MADE", RTLD_NOW);
    char symbol[128];
    snprintf(symbol, sizeof symbol, "em_thread_%s", name);
    void *thread = dlsym(made, symbol);
    Emulate *emulate = (Emulate *)dlsym(made, "em_emulate");
    if (!thread || !emulate) return 500;
    void *given[16]; /* each argument is an address */
    for (int i = 0; i < 16; ++i) given[i] = (char *)arguments + 8 * i;
    long long request[] = {grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, 8, 8, 0};
    long long counts[2];
    static char findings[8][256], sites[8][64];
    emulate(thread, given, request, counts, findings, sites);
    return counts[0] ? 700 : 0;
}
"""


def twice() -> PrimFunc:
    """Two products, a constant that is prepared, and what lies between the kernels."""
    x = te.placeholder((48, 40), "float32", name="x")
    w = te.placeholder((40, 40), "float32", name="w", constant=True)
    v = te.compute((40, 40), lambda i, j: w[j, i] * 2.0, name="v")
    k, m = te.reduce_axis(40, name="k"), te.reduce_axis(40, name="m")
    y = te.compute((48, 40), lambda i, j: te.sum(x[i, k] * v[k, j], axis=k), name="y")
    z = te.compute((48,), lambda i: te.sum(y[i, m], axis=m), name="z")
    return te.func(x, w, z, name="twice")


def emulated(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fake's kernels be those of a source."""
    made: list[SharedObject] = []

    def kept(shared: SharedObject, *, name: str) -> Library:
        made.append(shared)
        return Library(shared, name=name)

    monkeypatch.setattr(emulation_build, "Library", kept)
    emulation_build.Emulation(source, checked=False)
    (folder / "made.so").write_bytes(made[0].binary)
    text = PLAN.replace("MADE", str(folder / "made.so"))
    monkeypatch.setenv("FAKE_CUDA_PLAN", str(shared_library(text, folder / "plan.so", "-ldl")))


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
    emulated(code.source.replace("2.0f", factor), tmp_path, monkeypatch)
    (trial,) = tw.tune(func, TARGET, trials=1).history
    assert trial.outcome == outcome, trial.text
    if outcome == "ok":
        assert trial.seconds == pytest.approx(len(code.run.launches) * 10e-6)
    else:
        assert "differ from its reference" in trial.text
