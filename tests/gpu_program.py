"""The tiny model as a program for a GPU, written by hand: two kernels, one of which prepares a
constant and needs memory between its two launches; what depends on what is for a test to say.
"""

from __future__ import annotations

import numpy as np

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part, Temporary
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.program import Copy, Slice, Step, Sync
from tilewright.tir.program.program import Launch as ProgramLaunch
from tilewright.tir.target.target import Target

N = 64
BYTES = 4 * N
TARGET = Target.parse("cuda:sm_90a")
SCALE = """\
extern "C" __global__ void __launch_bounds__(64) twice(const float *w, float *packed)
{
    packed[threadIdx.x] = 2.0f * w[threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(64) first(const float *a, float *between)
{
    between[threadIdx.x] = a[threadIdx.x] + 1.0f;
}
extern "C" __global__ void __launch_bounds__(64) second(
    const float *between, const float *packed, float *c)
{
    c[threadIdx.x] = between[threadIdx.x] * packed[threadIdx.x];
}
"""
ADD = """\
extern "C" __global__ void __launch_bounds__(64) add(const float *a, const float *b, float *s)
{
    s[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
"""


def parameter(name: str, role: str) -> Parameter:
    return Parameter(name, FLOAT32, (N,), role)


def piece(space: str, position: int) -> Slice:
    return Slice(space, position, FLOAT32, (N,))


def arena(number: int) -> Slice:
    return piece("arena", number * BYTES)


def _launch(kernel: str, *arguments: str) -> KernelLaunch:
    return KernelLaunch(kernel, (1, 1, 1), (N, 1, 1), arguments)


A, C, PACKED = parameter("A", "input"), parameter("C", "output"), parameter("packed", "prepared")
KERNELS = (
    CudaArtifact(
        "scale",
        SCALE,
        TARGET,
        run=Part(
            (A, PACKED, C),
            (_launch("first", "A", "between"), _launch("second", "between", "packed", "C")),
            (Temporary("between", FLOAT32, (N,)),),
        ),
        prepare=Part(
            (parameter("W", "constant"), parameter("packed", "output")),
            (_launch("twice", "W", "packed"),),
        ),
    ),
    CudaArtifact(
        "add",
        ADD,
        TARGET,
        run=Part((A, parameter("B", "input"), parameter("S", "output")), (_launch("add", *"ABS"),)),
    ),
)


def scale(source: Slice, target: Slice, between: Slice, label: str = "") -> ProgramLaunch:
    return ProgramLaunch("scale", (source, piece("constant", 1), target, between), label)


def add(one: Slice, other: Slice, target: Slice, label: str = "") -> ProgramLaunch:
    return ProgramLaunch("add", (one, other, target), label)


def program(*body: Step) -> CudaProgram:
    """A program of these steps, in an arena of eight arrays and two that kernels need."""
    return CudaProgram(
        name="hand",
        target=TARGET,
        inputs=(parameter("x", "input"),),
        constants=(parameter("w", "constant"), parameter("w.packed", "prepared")),
        read=(1,),
        outputs=(parameter("y", "output"),),
        kernels=KERNELS,
        body=body,
        prepare=(ProgramLaunch("scale.prepare", (piece("constant", 0), piece("constant", 1))),),
        arena_bytes=8 * BYTES,
        workspace_bytes=2 * BYTES,
    )


def branches() -> CudaProgram:
    """y = (x + 1) 2w + ((x + 1) 2w + x), the two products on branches of their own."""
    x, y = piece("input", 0), piece("output", 0)
    return program(
        scale(x, arena(0), arena(8), "one"),
        scale(x, arena(1), arena(9), "other"),
        Sync(),
        add(arena(1), x, arena(2), "wide"),
        Sync(),
        add(arena(0), arena(2), y, "sum"),
    )


def expected(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """What a run of `branches` gives."""
    product = (x + 1) * (2 * w)
    return product + (product + x)


def passed_on() -> CudaProgram:
    """y = x, through the arena."""
    return program(Copy(piece("input", 0), arena(0)), Sync(), Copy(arena(0), piece("output", 0)))
