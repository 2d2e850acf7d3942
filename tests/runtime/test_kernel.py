from __future__ import annotations

import copy
import html
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tilewright.codegen.artifact import Artifact, Parameter
from tilewright.runtime.arrays import ArgumentTypeError, ArgumentValueError, Array
from tilewright.runtime.kernel import Kernel, KernelError, accept_constants
from tilewright.runtime.kernel_code import Code
from tilewright.runtime.measure.roofline import Work
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.dtype import FLOAT32
from tilewright.tir.target.target import ISAS

from .handwritten import COLUMNS, ROWS, artifact

pytestmark = pytest.mark.needs_cc

B = np.arange(COLUMNS, dtype=np.float32)
C = np.linspace(-1, 1, COLUMNS, dtype=np.float32)
A = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
EXPECTED = A + (2 * B + C)


@pytest.fixture(scope="module")
def kernel() -> Kernel:
    made = artifact()
    shared = compile_shared(made.source, made.target, name=made.name)
    work = Work(operations=3 * ROWS * COLUMNS, bytes=8 * ROWS * COLUMNS)
    return Kernel.load(made, shared, {"B": B, "C": C}, proof="proved", work=work)


def test_a_call_returns_a_new_array(kernel: Kernel) -> None:
    first, second = kernel(A), kernel(A)
    assert isinstance(first, np.ndarray)
    assert first is not second
    assert np.array_equal(first, EXPECTED)
    assert first.dtype == np.float32


def test_a_call_writes_into_a_given_array(kernel: Kernel) -> None:
    out = np.zeros((ROWS, COLUMNS), np.float32)
    assert kernel(A, out) is out
    assert np.array_equal(out, EXPECTED)


def test_the_number_of_threads_changes_no_bit(kernel: Kernel) -> None:
    for threads in (1, 2, 3, 7):
        assert np.array_equal(kernel(A, threads=threads), EXPECTED)


def test_the_number_of_threads_must_be_positive(kernel: Kernel) -> None:
    with pytest.raises(ArgumentValueError) as caught:
        kernel(A, threads=0)
    assert str(caught.value) == (
        "ArgumentValueError: sum: threads is 0; expected a whole number of at least 1. "
        "[argument-threads]"
    )


def test_the_number_of_threads_must_be_whole(kernel: Kernel) -> None:
    with pytest.raises(ArgumentTypeError, match=r"sum: threads is 1\.5; expected a whole number"):
        kernel(A, threads=1.5)  # type: ignore[arg-type]


def test_arguments_are_checked(kernel: Kernel) -> None:
    with pytest.raises(TypeError, match="sum: 'A' is float64, expected float32"):
        kernel(A.astype(np.float64))
    with pytest.raises(ValueError, match="'Y' is written and shares memory with 'A'"):
        kernel(A, A)


def test_eight_threads_call_one_kernel_at_once(kernel: Kernel) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        for index in range(200):
            a = np.full((ROWS, COLUMNS), seed * 1000 + index, np.float32)
            if not np.array_equal(kernel(a, threads=2), a + (2 * B + C)):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_it_tells_its_source_its_signature_and_its_assembly(kernel: Kernel) -> None:
    assert kernel.source == artifact().source
    assert kernel.signature == "sum(A: float32[6, 5]) -> Y: float32[6, 5]"
    assert "twice" in kernel.assembly


def test_it_shows_itself_in_text_and_in_a_notebook(kernel: Kernel) -> None:
    assert repr(kernel) == (
        "Kernel sum(A: float32[6, 5]) -> Y: float32[6, 5]\n"
        "  target: c:scalar\n"
        "  proof: proved\n"
        "  work: 90 operations, 240 bytes"
    )
    shown = html.unescape(re.sub("<[^>]*>", "", kernel._repr_html_()))
    assert shown == f"{kernel!r}source{kernel.source}"


def test_it_can_be_copied_and_pickled(kernel: Kernel) -> None:
    for twin in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert np.array_equal(twin(A), EXPECTED)
        assert (repr(twin), twin.work, twin.proof) == (repr(kernel), kernel.work, "proved")


def test_a_pickle_serves_in_a_process_that_has_no_cache(kernel: Kernel, tmp_path: Path) -> None:
    for name, value in (("kernel", kernel), ("a", A), ("expected", EXPECTED)):
        (tmp_path / name).write_bytes(pickle.dumps(value))
    program = (
        "import pickle, sys, pathlib, numpy as np; folder = pathlib.Path(sys.argv[1])\n"
        "kernel, a, expected = (pickle.loads((folder / name).read_bytes())"
        " for name in ('kernel', 'a', 'expected'))\n"
        "assert np.array_equal(kernel(a), expected)\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        check=True,
        env={"TILEWRIGHT_CACHE": "off", "PATH": "/usr/bin:/bin"},
    )


def test_it_is_timed_on_copies(kernel: Kernel) -> None:
    before = A.copy()
    for cache in ("warm", "cold"):
        timing = kernel.time(A, seconds=0.01, cache=cache, threads=1)
        assert 0 < timing.low <= timing.median <= timing.high < 0.01
        assert timing.cache == cache
    assert np.array_equal(A, before)


def test_its_roofline_names_the_nearer_limit(kernel: Kernel) -> None:
    found = kernel.roofline(A, threads=1)
    assert found.threads == 1
    assert found.work == kernel.work
    assert found.bound in ("compute", "memory")
    assert 0 < found.share < 1
    assert found.peak_gflops > found.gflops


class OnDevice(Code):
    """Code for a GPU."""

    device = "GPU"

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        raise AssertionError


def test_a_kernel_of_which_nothing_is_compiled_has_no_assembly(kernel: Kernel) -> None:
    with pytest.raises(KernelError) as caught:
        _ = Kernel(kernel.artifact, OnDevice()).assembly
    assert str(caught.value) == (
        f"KernelError: assembly: 'sum' for {kernel.artifact.target} is interpreted; expected a "
        "kernel of a compiled target. [kernel-assembly]"
    )


def test_a_kernel_of_a_gpu_has_no_roofline_here(kernel: Kernel) -> None:
    with pytest.raises(KernelError) as caught:
        Kernel(kernel.artifact, OnDevice()).roofline(A)
    assert str(caught.value) == (
        "KernelError: roofline: 'sum' runs on a GPU; the peak is measured of this machine's CPU "
        "alone. [kernel-roofline]\n"
        "  Hint: sum.time(...) tells its time on the device."
    )


def test_a_roofline_needs_the_kernel_s_work(kernel: Kernel) -> None:
    bare = Kernel(kernel.artifact, kernel.code)
    assert repr(bare) == "Kernel sum(A: float32[6, 5]) -> Y: float32[6, 5]\n  target: c:scalar"
    with pytest.raises(KernelError) as caught:
        bare.roofline(A)
    assert str(caught.value) == (
        "KernelError: roofline: the work of 'sum' is not known; expected a kernel that was built "
        "from a function. [kernel-work]"
    )


def test_a_constant_that_is_not_bound_is_named() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        accept_constants(artifact(), {"C": C})
    assert str(caught.value) == (
        "ArgumentTypeError: sum: the constant 'B' is not bound; expected B: float32[5]. "
        "[constant-unbound]\n"
        '  Hint: tw.build(..., constants={"B": b})'
    )


def test_a_constant_that_is_not_there_is_named() -> None:
    with pytest.raises(ArgumentTypeError) as caught:
        accept_constants(artifact(), {"B": B, "C": C, "D": C})
    assert str(caught.value) == (
        "ArgumentTypeError: sum: 'D' is not a constant of it; the constants are: C, B. "
        "[constant-unknown]"
    )


def test_a_constant_must_fit() -> None:
    with pytest.raises(ArgumentValueError, match=r"sum: 'B' has shape \(6,\), expected \(5,\)"):
        accept_constants(artifact(), {"B": np.zeros(6, np.float32), "C": C})


TWO_RESULTS = """\
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
void both(void *const *args, const struct tw_team *team, int thread, int threads)
{
    float *up = args[0], *down = args[2];
    const float *x = args[1];
    (void)team, (void)threads;
    for (int i = 0; thread == 0 && i < 4; i++) {
        up[i] = x[i] + 1.0f;
        down[i] = x[i] - 1.0f;
    }
}
"""


def test_several_results_come_in_order_wherever_their_parameters_stand() -> None:
    parameters = tuple(
        Parameter(name, FLOAT32, (4,), role)
        for name, role in (("up", "output"), ("x", "input"), ("down", "output"))
    )
    made = Artifact("both", "both", TWO_RESULTS, ISAS["scalar"], parameters)
    both = Kernel.load(made, compile_shared(made.source, made.target))
    x = np.arange(4, dtype=np.float32)
    up, down = both(x)
    assert np.array_equal(up, x + 1)
    assert np.array_equal(down, x - 1)
    assert both.signature == "both(x: float32[4]) -> up: float32[4], down: float32[4]"
