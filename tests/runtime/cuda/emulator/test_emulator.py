from __future__ import annotations

import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.codegen.cuda.artifact import KernelLaunch
from tilewright.runtime.cuda.emulator import build as emulation_build
from tilewright.runtime.cuda.emulator.build import Emulation
from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.emulator.source import EmulationError
from tilewright.runtime.toolchain.compile import CompileFailed
from tilewright.tir.errors import TargetError

from ....launches import flat

pytestmark = pytest.mark.needs_cxx

MATMUL = """\
extern "C" __global__ void __launch_bounds__(256) matmul(
    const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n)
{
    __shared__ float A_tile[1024];
    __shared__ float B_tile[1024];
    const int tx = (int)threadIdx.x;
    float C_reg[64];
    #pragma unroll
    for (int i = 0; i < 64; ++i) C_reg[i] = 0.0f;
    for (int k0 = 0; k0 < n / 8; ++k0) {
        *(float4*)&A_tile[tx * 4] = *(const float4*)&A[tx / 2 * n + k0 * 8 + tx % 2 * 4];
        *(float4*)&B_tile[tx * 4] = *(const float4*)&B[(k0 * 8 + tx / 32) * 128 + tx % 32 * 4];
        __syncthreads();
        for (int k = 0; k < 8; ++k)
            for (int i = 0; i < 64; ++i)
                C_reg[i] = __fmaf_rn(A_tile[(tx / 16 * 8 + i / 8) * 8 + k],
                                     B_tile[k * 128 + tx % 16 * 8 + i % 8], C_reg[i]);
        __syncthreads();
    }
    for (int i = 0; i < 64; ++i)
        C[(tx / 16 * 8 + i / 8) * 128 + tx % 16 * 8 + i % 8] = C_reg[i];
}
"""


def test_a_matmul_of_one_block_equals_numpy_bit_for_bit_in_its_order() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 9, (128, 64)).astype(np.float32)
    b = rng.integers(-9, 9, (64, 128)).astype(np.float32)
    c = np.zeros((128, 128), np.float32)
    given = {"A": a, "B": b, "C": c, "n": 64}
    report = emulate(MATMUL, [flat("matmul", 1, 256, ("A", "B", "C", "n"))], given)
    assert report, str(report)
    np.testing.assert_array_equal(c, a @ b)


BESIDE = """\
extern "C" __global__ void beside(const float* A, float* B)
{
    B[threadIdx.x] = A[threadIdx.x];
    LINE
}
"""


@pytest.mark.parametrize(
    ("line", "kind", "note"),
    [
        ("B[-1] = 0;", "out-of-bounds", "it wrote outside of 'B'"),
        ("B[8] = 0;", "out-of-bounds", "it wrote outside of 'B'"),
        ("((float*)A)[-1] = 0;", "out-of-bounds", "it wrote outside of 'A'"),
        ("((float*)A)[9] = 0;", "out-of-bounds", "it wrote outside of 'A'"),
        ("((float*)A)[3] = 7;", "read-only", "it wrote into 'A', which it may only read"),
    ],
)
def test_what_changed_where_nothing_may_is_found_unchecked_too(
    line: str, kind: str, note: str
) -> None:
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    a.flags.writeable = False
    source = BESIDE.replace("LINE", line)
    report = emulate(source, [flat("beside", 1, 8, ("A", "B"))], {"A": a, "B": b})
    assert [(found.kind, found.kernel, found.note) for found in report.findings] == [
        (kind, "beside", note)
    ]
    assert a[3] == 3


def test_an_array_without_elements_has_a_place_between_the_others() -> None:
    a, b, none = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(0, np.float32)
    source = BESIDE.replace("LINE", "(void)N;").replace("float* B", "float* B, float* N")
    given = {"A": a, "N": none, "B": b}
    for checked in (False, True):
        launch = flat("beside", 1, 8, ("A", "B", "N"))
        assert emulate(source, [launch], given, checked=checked)
    np.testing.assert_array_equal(a, b)


def test_indices_run_along_three_axes() -> None:
    source = """\
extern "C" __global__ void where(int* out)
{
    int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    int all = blockDim.x * blockDim.y * blockDim.z;
    out[block * all + thread] = 100 * block + thread;
}
"""
    out = np.zeros((2 * 3 * 4, 5 * 2 * 3), np.int32)
    assert emulate(source, [KernelLaunch("where", (2, 3, 4), (5, 2, 3), ("out",))], {"out": out})
    np.testing.assert_array_equal(out, 100 * np.arange(24)[:, None] + np.arange(30))


def test_a_thousand_threads_wait_at_hundreds_of_barriers() -> None:
    source = """\
extern "C" __global__ void __launch_bounds__(1024) ring(int* out, int turns)
{
    __shared__ int hand[2][1024];
    const int tx = (int)threadIdx.x;
    hand[0][tx] = tx;
    __syncthreads();
    for (int i = 0; i < turns; ++i) {
        hand[(i + 1) % 2][(tx + 1) % 1024] = hand[i % 2][tx];
        __syncthreads();
    }
    out[tx] = hand[turns % 2][tx];
}
"""
    out = np.zeros(1024, np.int32)
    assert emulate(source, [flat("ring", 1, 1024, ("out", "by"))], {"out": out, "by": 300})
    np.testing.assert_array_equal(out, (np.arange(1024) - 300) % 1024)


def test_shuffles_move_values_between_the_lanes_of_a_warp() -> None:
    source = """\
extern "C" __global__ void shuffles(const float* __restrict__ x, float* __restrict__ out)
{
    const int tx = (int)threadIdx.x;
    const float v = x[tx];
    float sum = v;
    for (int i = 16; i > 0; i /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, i);
    out[tx] = sum;
    out[64 + tx] = __shfl_down_sync(0xffffffffu, v, 3);
    out[128 + tx] = __shfl_sync(0xffffffffu, v, 5);
    out[192 + tx] = __shfl_up_sync(0xffffffffu, v, 2, 8);
    const double wide = __shfl_xor_sync(0xffffffffu, (double)v, 1);
    out[256 + tx] = (float)wide;
}
"""
    x = np.arange(64, dtype=np.float32)
    out = np.zeros((5, 2, 32), np.float32)
    assert emulate(source, [flat("shuffles", 1, 64, ("x", "out"))], {"x": x, "out": out})
    v, lane = x.reshape(2, 32), np.arange(32)
    np.testing.assert_array_equal(out[0], np.repeat(v.sum(1)[:, None], 32, 1))
    np.testing.assert_array_equal(out[1], v[:, np.where(lane + 3 < 32, lane + 3, lane)])
    np.testing.assert_array_equal(out[2], np.repeat(v[:, 5:6], 32, 1))
    np.testing.assert_array_equal(out[3], v[:, np.where(lane % 8 < 2, lane, lane - 2)])
    np.testing.assert_array_equal(out[4], v[:, lane ^ 1])


def test_lanes_of_one_mask_meet_while_the_others_go_on() -> None:
    source = """\
extern "C" __global__ void halves(int* out)
{
    const int tx = (int)threadIdx.x;
    int v = tx;
    if (tx < 16)
        for (int i = 8; i > 0; i /= 2) v += __shfl_xor_sync(0x0000ffffu, v, i);
    else
        v = __shfl_sync(0xffff0000u, v, 31);
    __syncwarp();
    out[tx] = v;
}
"""
    out = np.zeros(32, np.int32)
    assert emulate(source, [flat("halves", 1, 32, ("out",))], {"out": out})
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 16, 120, 31))


def test_atomic_sums_over_blocks_and_in_shared_memory() -> None:
    source = """\
extern "C" __global__ void count(const int* __restrict__ x, int* total, float* sums)
{
    __shared__ float sum;
    if (threadIdx.x == 0) sum = 0.0f;
    __syncthreads();
    const int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(total, v);
    atomicAdd(&sum, (float)v);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
"""
    x = np.arange(256, dtype=np.int32)
    arrays = {"x": x, "total": np.zeros(1, np.int32), "sums": np.zeros(4, np.float32)}
    assert emulate(source, [flat("count", 4, 64, ("x", "total", "sums"))], arrays)
    assert arrays["total"] == x.sum()
    np.testing.assert_array_equal(arrays["sums"], x.reshape(4, 64).sum(1))


def test_shared_memory_whose_size_the_launch_gives_holds_nan_at_first() -> None:
    source = """\
extern "C" __global__ void reverse(const float* __restrict__ x, float* __restrict__ out, int n)
{
    extern __shared__ __align__(16) unsigned char tile[];
    float* x_tile = (float*)&tile[64];
    out[n + threadIdx.x] = x_tile[threadIdx.x];
    __syncthreads();
    x_tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = x_tile[n - 1 - threadIdx.x];
}
"""
    x, out = np.arange(96, dtype=np.float32), np.zeros(192, np.float32)
    launch = flat("reverse", 1, 96, ("x", "out", "n"), shared_bytes=60 << 10)
    assert emulate(source, [launch, launch], {"x": x, "out": out, "n": 96})
    np.testing.assert_array_equal(out[:96], x[::-1])
    assert np.isnan(out[96:]).all()


def test_numbers_have_the_types_of_the_parameters_and_functions_their_bits() -> None:
    source = """\
extern "C" __global__ void numbers(
    double* out, signed char b, unsigned n, long long q, float f, double d, const int* i)
{
    out[0] = b; out[1] = n; out[2] = (double)q; out[3] = f; out[4] = d;
    out[5] = __float_as_int(f); out[6] = (double)__int_as_float(i[0]);
    out[7] = fminf(__int_as_float(0x7fc00000), f); out[8] = fmaxf(f, -f);
    out[9] = rintf(2.5f); out[10] = floorf(-0.5f); out[11] = ceilf(0.5f);
    out[12] = sqrtf(2.0f); out[13] = __fdiv_rn(1.0f, 3.0f); out[14] = __fma_rn(d, d, -d * d);
    out[15] = (double)__double_as_longlong(d); out[16] = fmin(-0.0, 0.0);
    out[17] = min(3, abs(-4)) - 7; out[18] = make_float4(1, 2, 3, 4).w;
}
"""
    out, third = np.zeros(19), np.float32(1) / np.float32(3)
    bits = np.array([0x3F800000], np.int32)
    numbers = {"b": -5, "n": 2**32 - 1, "q": -(2**40), "f": 0.1, "d": 0.1}
    launch = flat("numbers", 1, 1, ("out", *numbers, "i"))
    assert emulate(source, [launch], {"out": out, "i": bits, **numbers})
    tenth = np.float32(0.1)
    exact = float(Fraction(0.1) ** 2 - Fraction(0.1 * 0.1))
    expected = [-5, 2**32 - 1, -(2**40), tenth, 0.1, tenth.view(np.int32), 1.0, tenth, tenth]
    expected += [2.0, -1.0, 1.0, np.sqrt(np.float32(2)), third, exact]
    expected += [np.float64(0.1).view(np.int64), -0.0, -4, 4]
    np.testing.assert_array_equal(out, np.array(expected, float))
    assert np.signbit(out[16])


def test_a_barrier_that_a_thread_never_reaches_is_reported() -> None:
    source = """\
extern "C" __global__ void leave(float* out)
{
    if (threadIdx.x < 40) {
        __syncthreads();
        out[threadIdx.x] = 1.0f;
    }
}
"""
    out = np.zeros(64, np.float32)
    report = emulate(source, [flat("leave", 2, 64, ("out",))], {"out": out})
    assert not report
    assert str(report) == (
        "barrier in 'leave'\n"
        "  thread (0, 0, 0) of block (0, 0, 0) waits at a barrier, line 4: __syncthreads();\n"
        "  thread (40, 0, 0) of block (0, 0, 0) left"
    )


def test_a_crash_is_a_finding() -> None:
    source = """\
extern "C" __global__ void divide(int* out, int by)
{
    out[threadIdx.x] = 7 / (by - (int)threadIdx.x);
}
"""
    given = {"out": np.zeros(64, np.int32), "by": 5}
    report = emulate(source, [flat("divide", 1, 64, ("out", "by"))], given)
    assert str(report) == (
        "crash in 'divide': an integer division that has no quotient\n"
        "  thread (5, 0, 0) of block (0, 0, 0) runs"
    )


def test_a_source_that_does_not_compile_shows_its_own_line() -> None:
    with pytest.raises(CompileFailed) as caught:
        emulate('\n\nextern "C" __global__ void f(int* out)\n{\n    out[0] = y;\n}\n', [], {})
    assert "    >    5 |     out[0] = y;" in str(caught.value)
    assert "the C++ compiler refused" in str(caught.value)


def test_a_thread_whose_stack_would_not_hold_its_arrays_is_refused() -> None:
    source = """\
extern "C" __global__ void wide(float* out)
{
    float all[20000];
    for (int i = 0; i < 20000; ++i) all[i] = out[i % 7];
    out[0] = all[(int)out[1]];
}
"""
    with pytest.raises(CompileFailed, match=r"larger than|exceeds limit"):
        emulate(source, [], {})


def refused(launch: KernelLaunch, source: str = MATMUL, n: float = 1) -> str:
    with pytest.raises(EmulationError) as caught:
        emulate(source, [launch], {"A": np.zeros(4, np.float32), "n": n})
    return str(caught.value)


def test_an_unknown_kernel_is_refused() -> None:
    assert refused(flat("matmull", 1, 256, ())) == (
        "EmulationError: emulate: the source has no kernel 'matmull'; it has 'matmul'. "
        "[emulate-kernel]"
    )


def test_a_shape_that_the_device_cannot_launch_is_refused() -> None:
    assert refused(KernelLaunch("matmul", (1, 65536, 1), (257, 1, 1), ("A", "A", "A", "n"))) == (
        "EmulationError: emulate: 'matmul' cannot be launched with grid (1, 65536, 1) and block "
        "(257, 1, 1); expected a grid up to (2147483647, 65535, 65535), and a block up to "
        "(1024, 1024, 64) with at most 256 threads. [emulate-shape]"
    )


@pytest.mark.parametrize(("kept", "given"), [(50, 0), (40, 188)])
def test_more_shared_memory_than_a_block_can_have_is_refused(kept: int, given: int) -> None:
    source = f"""\
extern "C" __global__ void f(float* A)
{{
    extern __shared__ __align__(16) unsigned char tile[];
    __shared__ float own[{kept} * 256];
    own[(int)A[0]] = (float)tile[0];
    A[0] = own[(int)A[1]];
}}
"""
    launch = flat("f", 1, 1, ("A",), shared_bytes=given << 10)
    assert refused(launch, source) == (
        f"EmulationError: emulate: 'f' has {kept << 10} bytes of shared memory by itself and is "
        f"given {given << 10}; expected at most 49152, and at most 232448 in all. "
        "[emulate-shared]"
    )


def test_a_kernel_on_one_line_has_shared_memory_too() -> None:
    source = """\
extern "C" __global__ void f(float* out) { __shared__ float s[64]; s[threadIdx.x] = 2.0f;
    __syncthreads(); out[threadIdx.x] = s[63 - threadIdx.x]; }
"""
    out = np.zeros(64, np.float32)
    for checked in (False, True):
        assert emulate(source, [flat("f", 1, 64, ("out",))], {"out": out}, checked=checked)
        np.testing.assert_array_equal(out, 2)
    line = "extern __shared__ float tile[]; __shared__ float s[64];"
    assert refused(flat("f", 1, 1, ()), line) == (
        "EmulationError: emulate: line 1 declares shared memory of a size and without one; "
        "expected two lines. [emulate-shared-line]"
    )


def test_arguments_are_checked() -> None:
    assert refused(flat("matmul", 1, 256, ("A", "A", "A"))) == (
        "EmulationError: emulate: 'matmul' takes 4 arguments; got 3. [emulate-arguments]"
    )
    assert refused(flat("matmul", 1, 256, ("A", "A", "X", "n"))) == (
        "EmulationError: emulate: nothing is given for 'X', which 'matmul' takes; there are 'A', "
        "'n'. [emulate-array]"
    )
    assert refused(flat("matmul", 1, 256, ("A", "A", "n", "n"))) == (
        "EmulationError: emulate: argument 2 of 'matmul', 'n', is 1; expected an array. "
        "[emulate-argument]"
    )
    assert refused(flat("matmul", 1, 256, ("A", "A", "A", "A"))) == (
        "EmulationError: emulate: argument 3 of 'matmul', 'A', is an array; expected an int. "
        "[emulate-argument]"
    )
    for number in (1.5, 2**31):
        assert refused(flat("matmul", 1, 256, ("A", "A", "A", "n")), n=number) == (
            f"EmulationError: emulate: argument 3 of 'matmul', 'n', is {number}; expected an int. "
            "[emulate-argument]"
        )
    struct = 'struct s { int x; };\nextern "C" __global__ void f(s a) { (void)a; }\n'
    assert refused(flat("f", 1, 1, ("n",)), struct) == (
        "EmulationError: emulate: parameter 0 of 'f' is neither a pointer nor a number. "
        "[emulate-parameter]"
    )


def test_arrays_that_share_memory_are_refused() -> None:
    whole = np.zeros(100, np.float32)
    with pytest.raises(EmulationError) as caught:
        emulate(MATMUL, [], {"a": whole[:60], "b": whole[50:]})
    assert str(caught.value) == (
        "EmulationError: emulate: 'a' and 'b' share memory; expected arrays that do not. "
        "[emulate-overlap]"
    )


def test_a_clang_that_hides_copies_checks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    old = SimpleNamespace(version="Debian clang version 14.0.6")
    monkeypatch.setattr(emulation_build, "find_compiler", lambda language: old)
    with pytest.raises(TargetError) as caught:
        Emulation(MATMUL, checked=True)
    assert str(caught.value) == (
        "TargetError: emulate: Debian clang version 14.0.6 does not tell of copies of vectors, "
        "which checked mode must see; expected g++, or clang from 16 on. [emulate-clang]\n"
        "  Hint: CXX=g++ chooses the compiler."
    )


def test_another_system_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(TargetError) as caught:
        Emulation(MATMUL, checked=False)
    assert str(caught.value) == (
        "TargetError: emulate: CUDA C is emulated on Linux alone; this is 'darwin'. "
        "[emulate-platform]"
    )
