"""Each function is run by the emulation and compared with NumPy; NVRTC compiles each one's PTX."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.codegen.cuda.device_functions import (
    DEVICE_FUNCTIONS,
    cuda_definitions,
    emulated_definitions,
)
from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.toolchain.compile import compile_cuda

from ...launches import flat

needs_cxx = pytest.mark.needs_cxx
Arrays = dict[str, np.ndarray]


def run(source: str, arrays: Arrays, block: int = 32) -> None:
    """Run kernel `f` of one block, whose parameters are the arrays in order."""
    report = emulate(source, [flat("f", 1, block, tuple(arrays))], arrays)
    assert report, str(report)


def floats() -> np.ndarray:
    """Numbers of every size and sign, those half way between two of a shorter type among them."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 1 << 32, 60000, dtype=np.uint64).astype(np.uint32)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(invalid="ignore"):
        near = np.nextafter(halves, np.float32(np.inf))
        between = (halves + np.roll(halves, -1)) / 2
    edges = np.array([65519.996, 65520, 2**-24, 2**-25, 2**-14, -0.0, 3.4e38, 1e-45], np.float32)
    brain = np.arange(0, 1 << 32, 1 << 15, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.concatenate([bits.view(np.float32), halves, near, between, edges, brain])


def converted(values: np.ndarray, result: type, call: str, element: str, made: str) -> np.ndarray:
    out = np.zeros(len(values), result)
    source = f"""\
extern "C" __global__ void f(const {element}* __restrict__ x, {made}* __restrict__ out)
{{
    for (int i = (int)threadIdx.x; i < {len(values)}; i += 32) out[i] = {call}(x[i]);
}}
"""
    run(source, {"x": values, "out": out})
    return out


def same_numbers(made: np.ndarray, expected: np.ndarray) -> None:
    """Equal in bits, but that any NaN is one."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(made), nan)
    width = f"u{made.dtype.itemsize}"
    np.testing.assert_array_equal(made.view(width)[~nan], expected.view(width)[~nan])


@needs_cxx
def test_half_is_rounded_to_the_nearest_even_and_read_back() -> None:
    x = floats()
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    made = converted(x, np.uint16, "tw_half_from_float", "float", "unsigned short")
    same_numbers(made.view(np.float16), expected)
    every = np.arange(1 << 16, dtype=np.uint16)
    back = converted(every, np.float32, "tw_float_from_half", "unsigned short", "float")
    same_numbers(back, every.view(np.float16).astype(np.float32))


@needs_cxx
def test_bfloat16_is_rounded_to_the_nearest_even_and_read_back() -> None:
    x = floats()
    made = converted(x, np.uint16, "tw_bfloat16_from_float", "float", "unsigned short")
    with np.errstate(invalid="ignore"):
        expected = x.astype(ml_dtypes.bfloat16)
    nan = np.isnan(x)
    np.testing.assert_array_equal(made[~nan], expected.view(np.uint16)[~nan])
    assert np.isnan(made.view(ml_dtypes.bfloat16)[nan].astype(np.float32)).all()
    every = np.arange(1 << 16, dtype=np.uint16)
    back = converted(every, np.float32, "tw_float_from_bfloat16", "unsigned short", "float")
    same_numbers(back, every.view(ml_dtypes.bfloat16).astype(np.float32))


@needs_cxx
def test_tf32_is_rounded_to_the_nearest_with_ties_away_from_zero() -> None:
    x = floats()
    x = x[np.isfinite(x) & (np.abs(x) >= 2.0**-126) & (np.abs(x) < 3.4e38)]
    made = converted(x, np.uint32, "tw_tf32_from_float", "float", "unsigned").view(np.float32)
    fraction, exponent = np.frexp(x.astype(np.float64))
    rounded = np.copysign(np.floor(np.abs(fraction) * 2048 + 0.5), x)
    np.testing.assert_array_equal(made, np.ldexp(rounded, exponent - 11).astype(np.float32))


# element i of a lane's fragment, as the PTX ISA gives it: its row and its column (k of A and B)
HALF_A = ("g + 8 * (i / 2 % 2)", "2 * t + i % 2 + 8 * (i / 4)")
HALF_B = "2 * t + i % 2 + 8 * (i / 2)"
BYTE_A = ("g + 8 * (i / 4 % 2)", "4 * t + i % 4 + 16 * (i / 8)")
BYTE_B = "4 * t + i % 4 + 16 * (i / 4)"
TF32_A = ("g + 8 * (i % 2)", "t + 4 * (i / 2)")
TF32_B = "t + 4 * i"


def product(
    call: str, element: str, packed: int, layout: tuple[str, str], b_row: str, arrays: Arrays
) -> None:
    """C += A B by one warp, its fragments filled element by element."""
    k, sums = 8 * packed, "int" if element == "signed char" else "float"
    run(
        f"""\
extern "C" __global__ void f(
    const {element}* __restrict__ A, const {element}* __restrict__ B, {sums}* __restrict__ C)
{{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    union {{ unsigned r[4]; {element} e[{4 * packed}]; }} a;
    union {{ unsigned r[2]; {element} e[{2 * packed}]; }} b;
    {sums} c[4];
    for (int i = 0; i < {4 * packed}; ++i) a.e[i] = A[({layout[0]}) * {k} + {layout[1]}];
    for (int i = 0; i < {2 * packed}; ++i) b.e[i] = B[({b_row}) * 8 + g];
    for (int i = 0; i < 4; ++i) c[i] = C[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
    {call}(c[0], c[1], c[2], c[3], a.r[0], a.r[1], a.r[2], a.r[3], b.r[0], b.r[1]);
    for (int i = 0; i < 4; ++i) C[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = c[i];
}}
""",
        arrays,
    )


@needs_cxx
@pytest.mark.parametrize(
    ("name", "dtype"), [("f16", np.dtype(np.float16)), ("bf16", np.dtype(ml_dtypes.bfloat16))]
)
def test_a_product_of_16_bit_numbers(name: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((16, 16)).astype(dtype), rng.standard_normal((16, 8)).astype(dtype)
    c = rng.standard_normal((16, 8)).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64) + c
    arrays = {"A": a.view(np.uint16), "B": b.view(np.uint16), "C": c}
    product(f"tw_mma_m16n8k16_{name}", "unsigned short", 2, HALF_A, HALF_B, arrays)
    np.testing.assert_allclose(c, expected, rtol=1e-6, atol=1e-6)


@needs_cxx
def test_a_product_of_tf32_numbers_does_not_read_their_low_bits() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((16, 8), (8, 8)))
    c = np.zeros((16, 8), np.float32)
    cut = [(x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b)]
    arrays = {"A": a.view(np.uint32), "B": b.view(np.uint32), "C": c}
    product("tw_mma_m16n8k8_tf32", "unsigned", 1, TF32_A, TF32_B, arrays)
    np.testing.assert_allclose(c, cut[0].astype(float) @ cut[1], rtol=1e-6, atol=1e-6)


@needs_cxx
def test_a_product_of_bytes_wraps() -> None:
    rng = np.random.default_rng(4)
    a, b = (rng.integers(-128, 128, s).astype(np.int8) for s in ((16, 32), (32, 8)))
    c = np.full((16, 8), 2**31 - 1, np.int32)
    arrays = {"A": a, "B": b, "C": c}
    product("tw_mma_m16n8k32_s8", "signed char", 4, BYTE_A, BYTE_B, arrays)
    exact = a.astype(np.int64) @ b.astype(np.int64) + 2**31 - 1
    np.testing.assert_array_equal(c, exact.astype(np.int32))


@needs_cxx
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_ldmatrix_gives_each_lane_two_elements_of_a_row(count: int, transposed: bool) -> None:
    rows = np.arange(32 * 8, dtype=np.uint16).reshape(4, 8, 8)
    out = np.zeros((4, 32), np.uint32)
    registers = ", ".join(f"r[{i}]" for i in range(count))
    suffix = "_trans" if transposed else ""
    source = f"""\
extern "C" __global__ void f(const unsigned short* __restrict__ x, unsigned* __restrict__ out)
{{
    __shared__ __align__(16) unsigned short shared[32 * 24];
    const int tx = (int)threadIdx.x;
    unsigned r[4] = {{0, 0, 0, 0}};
    for (int i = 0; i < 8; ++i) shared[tx * 24 + i] = x[tx * 8 + i];
    __syncwarp();
    tw_ldmatrix_x{count}{suffix}({registers}, &shared[tx * 24]);
    for (int i = 0; i < 4; ++i) out[i * 32 + tx] = r[i];
}}
"""
    run(source, {"x": rows, "out": out})
    expected = rows.swapaxes(1, 2) if transposed else rows
    got = np.ascontiguousarray(out).view(np.uint16).reshape(4, 8, 8)
    np.testing.assert_array_equal(got[:count], expected[:count])
    assert not got[count:].any()


@needs_cxx
def test_ldmatrix_feeds_mma() -> None:
    rng = np.random.default_rng(5)
    a = rng.standard_normal((16, 16)).astype(np.float16)
    b = rng.standard_normal((16, 8)).astype(np.float16)
    c = np.zeros((16, 8), np.float32)
    source = """\
extern "C" __global__ void f(
    const uint4* __restrict__ A, const uint4* __restrict__ B, float* __restrict__ C)
{
    __shared__ __align__(16) unsigned short A_shared[16 * 16];
    __shared__ __align__(16) unsigned short B_shared[16 * 8];
    const int tx = (int)threadIdx.x;
    *(uint4*)&A_shared[tx * 8] = A[tx];
    if (tx < 16) *(uint4*)&B_shared[tx * 8] = B[tx];
    __syncthreads();
    unsigned a0, a1, a2, a3, b0, b1;
    float c0 = 0.0f, c1 = 0.0f, c2 = 0.0f, c3 = 0.0f;
    tw_ldmatrix_x4(a0, a1, a2, a3, &A_shared[tx % 16 * 16 + tx / 16 * 8]);
    tw_ldmatrix_x2_trans(b0, b1, &B_shared[tx % 16 * 8]);
    tw_mma_m16n8k16_f16(c0, c1, c2, c3, a0, a1, a2, a3, b0, b1);
    float* to = &C[tx / 4 * 8 + tx % 4 * 2];
    *(float2*)&to[0] = make_float2(c0, c1);
    *(float2*)&to[64] = make_float2(c2, c3);
}
"""
    run(source, {"A": a.view(np.uint16), "B": b.view(np.uint16), "C": c})
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float), rtol=1e-6, atol=1e-6)


@needs_cxx
@pytest.mark.parametrize(("size", "kind"), [(4, "float"), (8, "float2"), (16, "float4")])
def test_a_copy_lands_when_its_group_is_waited_for_and_not_before(size: int, kind: str) -> None:
    lanes = size // 4
    source = f"""\
extern "C" __global__ void f(const float* __restrict__ x, float* __restrict__ out)
{{
    __shared__ __align__(16) float shared[2][128];
    const int at = (int)threadIdx.x * {lanes};
    tw_cp_async_{size}(&shared[0][at], &x[at]);
    tw_cp_async_commit();
    tw_cp_async_{size}(&shared[1][at], &x[128 + at]);
    tw_cp_async_commit();
    *({kind}*)&out[at] = *({kind}*)&shared[0][at];
    tw_cp_async_wait<1>();
    *({kind}*)&out[128 + at] = *({kind}*)&shared[0][at];
    *({kind}*)&out[256 + at] = *({kind}*)&shared[1][at];
    tw_cp_async_wait<0>();
    *({kind}*)&out[384 + at] = *({kind}*)&shared[1][at];
}}
"""
    x, out = np.arange(256, dtype=np.float32), np.zeros((4, 128), np.float32)
    run(source, {"x": x, "out": out})
    n = 32 * lanes
    assert np.isnan(out[[0, 2], :n]).all()
    np.testing.assert_array_equal(out[[1, 3], :n], x.reshape(2, 128)[:, :n])


def test_a_source_brings_what_it_uses_and_nothing_else() -> None:
    assert cuda_definitions("a kernel that calls nothing, tw_mine() say") == ""
    assert emulated_definitions("float tw_half;") == ""
    assert cuda_definitions("x = tw_float_from_bfloat16(y); tw_cp_async_wait<2>();") == (
        "#ifdef __CUDACC__\n\n"
        "static __device__ __forceinline__ float tw_float_from_bfloat16(unsigned short b)\n{\n"
        "    return __uint_as_float((unsigned)b << 16);\n}\n\n"
        "template <int Pending>\n"
        "static __device__ __forceinline__ void tw_cp_async_wait()\n{\n"
        '    asm volatile("cp.async.wait_group %0;" :: "n"(Pending) : "memory");\n}\n\n'
        "#endif\n"
    )
    # a product reads halves by another of our functions, where it is emulated
    assert "tw_float_from_half(unsigned short h, int line" in emulated_definitions(
        "tw_mma_m16n8k16_f16"
    )


CALLS = {
    "tw_half_from_float": "h[0] = tw_half_from_float(x[0]);",
    "tw_float_from_half": "x[0] = tw_float_from_half(h[0]);",
    "tw_bfloat16_from_float": "h[0] = tw_bfloat16_from_float(x[0]);",
    "tw_float_from_bfloat16": "x[0] = tw_float_from_bfloat16(h[0]);",
    "tw_tf32_from_float": "r[0] = tw_tf32_from_float(x[0]);",
    "tw_swizzled": "n[0] = tw_swizzled<2, 5, 7>(n[1]);",
    "tw_cp_async_commit": "tw_cp_async_commit();",
    "tw_cp_async_wait": "tw_cp_async_wait<1>();",
    **{f"tw_cp_async_{n}": f"tw_cp_async_{n}(&shared[0], &x[0]);" for n in (4, 8, 16)},
    **{
        f"tw_ldmatrix_x{n}{end}": f"tw_ldmatrix_x{n}{end}("
        f"{', '.join(f'r[{i}]' for i in range(n))}, &shared[threadIdx.x * 4]);"
        for n in (1, 2, 4)
        for end in ("", "_trans")
    },
    **{
        f"tw_mma_{kind}": f"tw_mma_{kind}("
        f"{', '.join(f'{c}[{i}]' for i in range(4))}, {', '.join(f'r[{i}]' for i in range(6))});"
        for kind, c in (
            *(("m16n8k16_f16", "x"), ("m16n8k16_bf16", "x")),
            *(("m16n8k8_tf32", "x"), ("m16n8k32_s8", "n")),
        )
    },
}


@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_nvrtc_compiles_the_ptx_of_every_function(arch: str) -> None:
    assert set(CALLS) == {function.name for function in DEVICE_FUNCTIONS}
    body = "\n".join(f"    {call}" for call in CALLS.values())
    source = (
        f"{cuda_definitions(body)}\n"
        'extern "C" __global__ void f(float* x, unsigned short* h, unsigned* r, int* n)\n'
        "{\n    __shared__ __align__(16) float shared[128];\n"
        f"    shared[threadIdx.x] = 0.0f;\n{body}\n    x[1] = shared[threadIdx.x];\n}}\n"
    )
    assert compile_cuda(source, arch).image
