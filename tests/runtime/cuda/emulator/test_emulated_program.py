from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.codegen.artifact import Parameter
from tilewright.codegen.cuda.artifact import CudaArtifact, Part, Stop
from tilewright.codegen.cuda.program_artifact import CudaProgram
from tilewright.runtime.cuda.emulator.emulated_code import EmulationFailed
from tilewright.runtime.cuda.emulator.emulated_program import EmulatedProgram
from tilewright.runtime.index_checks import IndexRangeError
from tilewright.tir.dtype import UINT64
from tilewright.tir.index_check import IndexCheck
from tilewright.tir.program.program import Launch as ProgramLaunch
from tilewright.tir.program.program import Slice

from ....gpu_program import (
    BYTES,
    DOUBLED,
    KERNELS,
    A,
    N,
    add,
    branches,
    expected,
    open_rows,
    passed_on,
    piece,
    program,
)
from ....launches import flat

pytestmark = pytest.mark.needs_cxx

W = np.linspace(1, 2, N, dtype=np.float32)


def ran(made: CudaProgram, x: np.ndarray, *, checked: bool = False) -> np.ndarray:
    y = np.full(N, 7, np.float32)
    frame = EmulatedProgram(made, (W, None), checked=checked).frame(1)
    frame.point([x], [y])
    assert frame.run(1) == 1
    return y


@pytest.mark.parametrize("checked", [False, True])
def test_a_run_prepares_launches_in_order_and_passes_on_through_the_arena(checked: bool) -> None:
    x = np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(ran(branches(), x, checked=checked), expected(x, W))


def test_copies_are_steps_too() -> None:
    x = np.arange(N, dtype=np.float32)
    np.testing.assert_array_equal(ran(passed_on(), x), x)


@pytest.mark.parametrize("guarded", [False, True])
def test_a_run_finds_its_sizes_in_its_arrays_and_ends_grids_there(guarded: bool) -> None:
    made = open_rows()
    if not guarded:
        source = DOUBLED.replace("if ((int)blockIdx.x < n)\n", "(void)n;\n")
        made = replace(made, kernels=(replace(made.kernels[0], source=source),))
    frame = EmulatedProgram(made, (), checked=True).frame(1)
    for rows in (3, 8, 0, 1):
        x = np.random.default_rng(rows).standard_normal((rows, N), dtype=np.float32)
        y = np.full((rows, N), np.nan, np.float32)
        frame.point([x], [y])
        frame.run(1)
        np.testing.assert_array_equal(y, 2 * x)


def test_what_a_kernel_writes_beyond_the_sizes_of_a_run_is_found() -> None:
    made = open_rows()
    kernel = replace(made.kernels[0], source=made.kernels[0].source.replace("< n)", "<= n)"))
    more = replace(kernel.run.launches[0], stops=(Stop(0, "n", 1, 1, 1),))
    kernel = replace(kernel, run=replace(kernel.run, launches=(more,)))
    frame = EmulatedProgram(replace(made, kernels=(kernel,)), (), checked=True).frame(1)
    frame.point([np.zeros((3, N), np.float32)], [np.zeros((3, N), np.float32)])
    with pytest.raises(EmulationFailed, match=r"out-of-bounds in 'doubled' at A\[192\]"):
        frame.run(1)


def test_one_slice_for_two_parameters_that_are_read_is_no_fault() -> None:
    x = np.arange(N, dtype=np.float32)
    made = program(add(piece("input", 0), piece("input", 0), piece("output", 0)))
    np.testing.assert_array_equal(ran(made, x, checked=True), 2 * x)


def test_the_report_is_of_all_launches() -> None:
    code = EmulatedProgram(branches(), (W, None), checked=True)
    frame = code.frame(1)
    frame.point([np.zeros(N, np.float32)], [np.zeros(N, np.float32)])
    frame.run(1)
    assert {site.kernel for site in code.report.sites} == {"first", "second", "add"}


def test_a_kernel_that_writes_what_it_may_only_read_is_found() -> None:
    source = (
        KERNELS[1]
        .source.replace("const float *a,", "float *a,")
        .replace("    s[threadIdx.x]", "    a[threadIdx.x] = 0.0f;\n    s[threadIdx.x]")
    )
    made = replace(branches(), kernels=(KERNELS[0], replace(KERNELS[1], source=source)))
    with pytest.raises(EmulationFailed) as caught:
        ran(made, np.zeros(N, np.float32), checked=True)
    assert str(caught.value) == (
        "EmulationFailed: emulate: 'add' of 'hand' does what no kernel may do. [emulate-program]\n"
        "  read-only in 'add' at A[0], 64 times\n"
        "    thread (0, 0, 0) of block (0, 0, 0) writes, line 3: a[threadIdx.x] = 0.0f;\n"
        "  Note: it computes wide."
    )


LOOK = """\
extern "C" __global__ void look(const float *a, unsigned long long *word)
{
    *word = a[0] < 8.0f ? 0 : (unsigned long long)a[0] + 1;
}
"""


def test_a_check_that_fails_is_an_error_of_the_run() -> None:
    word = Parameter("word", UINT64, (), "output", IndexCheck("token", 8))
    look = CudaArtifact(
        "look",
        LOOK,
        KERNELS[0].target,
        Part((A, word), (flat("look", 1, 1, ("A", "word")),)),
    )
    place = Slice("arena", BYTES, UINT64, ())
    made = replace(
        program(ProgramLaunch("look", (piece("input", 0), place), "gather")),
        kernels=(*KERNELS, look),
    )
    x = np.zeros(N, np.float32)
    ran(made, x)
    x[0] = 9
    with pytest.raises(IndexRangeError):
        ran(made, x)
