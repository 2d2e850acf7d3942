"""What a kernel writes beside its arrays on the device is found there, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part, Temporary
from tilewright.driver.check.check import CheckError, check_kernel
from tilewright.runtime.cuda.device import code as device_code
from tilewright.runtime.cuda.device.availability import Available
from tilewright.runtime.cuda.device.code import DeviceCode
from tilewright.runtime.cuda.device.context import DeviceContext
from tilewright.runtime.cuda.toolchain.compile import Cubin
from tilewright.runtime.kernel import Kernel
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ..fake_driver import FakeDriver
from ..shared_library import shared_library

ENTRIES = "".join(f".visible .entry {name}() {{ ret; }}\n" for name in ("pack", "first", "second"))
CUBIN = Cubin(
    "k", "compute_90", f".version 8.0\n.target sm_90\n{ENTRIES}\0".encode(), None, "NVRTC", 0.0
)
X, W = (Parameter(name, FLOAT32, (8,), role) for name, role in (("x", "input"), ("w", "constant")))
PACKED, Y = Parameter("w.p", FLOAT32, (8,), "prepared"), Parameter("y", FLOAT32, (8,), "output")
ONE = (1, 1, 1)
ARTIFACT = CudaArtifact(
    "weighted",
    "",
    Target.parse("cuda:sm_90a"),
    Part(
        (X, PACKED, Y),
        (
            KernelLaunch("first", ONE, (8, 1, 1), ("x", "between")),
            KernelLaunch("second", ONE, (8, 1, 1), ("between", "w.p", "y")),
        ),
        (Temporary("between", FLOAT32, (8,)),),
    ),
    Part(
        (W, replace(PACKED, role="output")), (KernelLaunch("pack", ONE, (8, 1, 1), ("w", "w.p")),)
    ),
)
WEIGHT = {"w": np.arange(8, dtype=np.float32)}
PLAN = """
#include <math.h>
int fake_kernel(const char *name, const unsigned *grid, const unsigned *block,
                const void *arguments, double *microseconds)
{
    float *const *a = arguments;
    (void)grid; (void)block; (void)microseconds;
    for (int i = 0; i < 8; ++i) {
        if (*name == 'p') { if (!isnan(a[1][i])) return 1; a[1][i] = a[0][i]; }
        if (*name == 'f') { if (!isnan(a[1][i])) return 1; a[1][i] = a[0][i] * 2; }
        if (*name == 's') { if (!isnan(a[2][i])) return 1; a[2][i] = a[0][i] * a[1][i]; }
    }
    FAULT
    return 0;
}
"""


def weighted() -> PrimFunc:
    x = te.placeholder((8,), "float32", name="x")
    w = te.placeholder((8,), "float32", name="w", constant=True)
    y = te.compute((8,), lambda i: x[i] * 2.0 * w[i], name="y")
    return te.func(x, w, y, name="weighted")


def check(
    fault: str, context: DeviceContext, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Available(context.driver, (context.device,))
    monkeypatch.setattr(device_code, "availability", lambda: found)
    plan = shared_library(PLAN.replace("FAULT", fault), folder / "plan.so")
    monkeypatch.setenv("FAKE_CUDA_PLAN", str(plan))
    kernel = Kernel(ARTIFACT, DeviceCode(ARTIFACT, WEIGHT, CUBIN))
    check_kernel(kernel, weighted(), WEIGHT)


def test_a_kernel_that_is_right_passes(
    context: DeviceContext, fake: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan also refuses to run where what it writes does not start as NaN."""
    check("", context, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("y", "if (*name == 's') a[2][8] = 0;"),
        ("x", "if (*name == 'f') a[0][-1] = 0;"),
        ("between", "if (*name == 's') a[0][8] = 1;"),
        ("w.p", "if (*name == 'p') a[1][-64] = 2;"),
        ("w", "if (*name == 'p') a[0][71] = 0;"),
    ],
)
def test_a_write_beside_an_array_of_the_device_is_found(
    name: str,
    fault: str,
    context: DeviceContext,
    fake: FakeDriver,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CheckError) as caught:
        check(fault, context, tmp_path, monkeypatch)
    assert str(caught.value) == (
        f"CheckError: check: kernel 'weighted': it wrote outside of '{name}'. [check-fence]"
    )


def test_a_wrong_result_is_told(
    context: DeviceContext, fake: FakeDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckError, match=r"differ from its reference.* at y\[7\]"):
        check("if (*name == 's') a[2][7] = 1e6f;", context, tmp_path, monkeypatch)
