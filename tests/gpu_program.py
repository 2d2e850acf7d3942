"""The tiny model as a program for a GPU, written by hand: two kernels, one of which prepares a
constant and needs memory between its two launches; what depends on what is for a test to say.
"""

from __future__ import annotations

import numpy as np

from tilewright.codegen.artifact import Parameter, told_sizes
from tilewright.codegen.cuda.artifact import CudaArtifact, KernelLaunch, Part, Stop, Temporary
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.tir.dim import Dim
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.program.program import Copy, Slice, Step, Sync
from tilewright.tir.program.program import Launch as ProgramLaunch
from tilewright.tir.sizes import AnySize, size_of
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


ROWS = Dim("rows", low=0, high=8, typical=4)
DOUBLED = """\
extern "C" __global__ void __launch_bounds__(64) doubled(const float *a, float *c, int n)
{
    if ((int)blockIdx.x < n)
        c[64 * blockIdx.x + threadIdx.x] = 2.0f * a[64 * blockIdx.x + threadIdx.x];
}
"""


def rows_of(space: str, position: int = 0) -> Slice:
    return Slice(space, position, FLOAT32, (size_of(ROWS), N))


def doubled_kernel() -> CudaArtifact:
    """Each block doubles one of the rows, of which there are `n`."""
    dim = Dim("n", low=0, high=8, typical=4)
    shape: tuple[AnySize, ...] = (size_of(dim), N)
    a, c = Parameter("A", FLOAT32, shape, "input"), Parameter("C", FLOAT32, shape, "output")
    launch = KernelLaunch(
        "doubled", (8, 1, 1), (N, 1, 1), ("A", "C", "n"), stops=(Stop(0, "n", 1, 1, 0),)
    )
    part = Part((a, c), (launch,), sizes=("n",))
    return CudaArtifact("doubled", DOUBLED, TARGET, part, sizes=told_sizes((dim,), (a, c)))


def doubling(source: Slice, target: Slice, label: str = "") -> ProgramLaunch:
    return ProgramLaunch("doubled", (source, target), label, (size_of(ROWS),))


def open_rows() -> CudaProgram:
    """y = 2x of as many rows as a run gives, through the arena."""
    x, y = (
        Parameter(n, FLOAT32, rows_of(r).shape, r) for n, r in (("x", "input"), ("y", "output"))
    )
    launch = doubling(rows_of("input"), rows_of("arena"), "twice")
    return CudaProgram(
        name="rows",
        target=TARGET,
        inputs=(x,),
        constants=(),
        read=(),
        outputs=(y,),
        kernels=(doubled_kernel(),),
        body=(launch, Sync(), Copy(rows_of("arena"), rows_of("output"))),
        arena_bytes=8 * BYTES,
    )
