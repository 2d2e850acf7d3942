"""runtime/cuda/emulator/emulated_code.py: what an emulated kernel must not do."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part
from tilewright.runtime.cuda.emulator.emulated_code import EmulatedCode, EmulationFailed
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.target.target import Target

RACE = """\
extern "C" __global__ void __launch_bounds__(4)
race(float *__restrict__ X)
{
    X[0] = (float)threadIdx.x;
}
"""


@pytest.mark.needs_cxx
def test_a_race_is_a_failure_that_names_it() -> None:
    run = Part(
        (Parameter("X", FLOAT32, (1,), "output"),),
        (KernelLaunch("race", (1, 1, 1), (4, 1, 1), ("X",)),),
    )
    artifact = CudaArtifact("race", RACE, Target.parse("cuda:sm_80"), run)
    code = EmulatedCode(artifact, {}, checked=True)
    with pytest.raises(EmulationFailed) as failure:
        code.run([np.zeros(1, np.float32)], 1)
    assert str(failure.value).startswith(
        "EmulationFailed: emulate: 'race' does what no kernel may do. [emulate-failed]\n"
        "  race in 'race' at X[0]"
    )
    EmulatedCode(artifact, {}).run([np.zeros(1, np.float32)], 1)  # nobody looks
