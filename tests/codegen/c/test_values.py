"""Nests compiled for each instruction set compute what the interpreter says, on one thread and on
three.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.lower.lower import lower
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import parse
from tilewright.tir.target.target import Target

pytestmark = pytest.mark.needs_cc

EXACT = {
    "a masked tail": """
def f(A: float32[40], B: float32[40], C: output(float32[40])):
    for i in vectorized(40):
        C[i] = max(A[i] * 2.5 + B[i], 0.25) - min(A[i], B[i]) / 3.0
""",
    "a long row whose length is odd": """
def f(A: float32[5, 1003], C: output(float32[5, 1003])):
    for i in parallel(5):
        for j in vectorized(1003):
            C[i, j] = sqrt(abs(A[i, j])) + floor(A[i, j] * 3.7) - round(A[i, j] * 5.1)
""",
    "rows shorter than a vector": """
def f(A: float32[9, 3], C: output(float32[9, 3])):
    for i in range(9):
        for j in vectorized(3):
            C[i, j] = A[i, j] + 1.0
""",
    "two float types": """
def f(A: float64[50], B: float32[50], C: output(float64[50]), D: output(float32[50])):
    for i in vectorized(50):
        C[i] = A[i] * cast(B[i], "float64") + float64(0.1)
        D[i] = cast(A[i], "float32") + B[i]
""",
    "integers, which wrap around": """
def f(A: int32[50], B: int32[50],
      C: output(int32[50]), D: output(float32[50]), E: output(int32[50])):
    for i in vectorized(50):
        C[i] = A[i] * B[i] - int32(2147483647)
        D[i] = cast(A[i], "float32") * 0.5
        E[i] = max(A[i], B[i]) // int32(4) + min(A[i], B[i]) % int32(8) + A[i] * int32(16)
""",
    "bits of integers": """
def f(A: int32[50], B: int32[50], C: output(int32[50]), D: output(int32[50]), E: output(int32[50])):
    for i in vectorized(50):
        C[i] = (A[i] & B[i]) + (A[i] | int32(12)) - (A[i] ^ B[i]) * int32(3)
        D[i] = (A[i] << int32(3)) + (B[i] >> int32(2))
        E[i] = (A[i] << B[i]) ^ (A[i] >> B[i]) ^ A[i] >> int32(40) ^ A[i] << int32(-3)
""",
    "bits of long integers": """
def f(A: int64[50], B: int64[50], C: output(int64[50]), D: output(int64[50]), E: output(int64[50])):
    for i in vectorized(50):
        C[i] = (A[i] & B[i] ^ 5 | 64) + (A[i] ^ -1)
        D[i] = (A[i] << 40) + (B[i] << A[i])
        E[i] = (A[i] >> B[i]) + (i << 62) + (i << 62) + (i ^ 3)
""",
    "truth values that differ": """
def f(A: float32[33], B: bool[33], C: output(float32[33]), D: output(bool[33])):
    for j in vectorized(33):
        C[j] = select((A[j] < 0.0) != (A[j] < 0.5), A[j], 2.0)
    for j in vectorized(33):
        D[j] = (A[j] < 0.0) != B[j]
""",
    "an index made of bits": """
def f(A: float32[64], C: output(float32[64]), D: output(float32[32])):
    for i in vectorized(64):
        C[i] = A[i ^ 5]
    for i in vectorized(32):
        D[i] = A[(i & 3) + (i >> 2 << 2)]
""",
    "quotients and remainders of negative numbers": """
def f(A: int32[50], B: int64[50], C: output(int32[50]), D: output(int64[50])):
    for i in vectorized(50):
        C[i] = A[i] // int32(3) + A[i] % int32(7)
        D[i] = B[i] // 5 - B[i] % (0 - 3)
""",
    "long integers and the loop variable as data": """
def f(A: int64[50], B: int64[50], C: output(int64[50]), D: output(int64[50])):
    for i in vectorized(50):
        C[i] = A[i] + B[i] - 7
        D[i] = max(A[i], B[i]) * A[i] + i * 3
""",
    "the loop variable as a float": """
def f(C: output(float32[7, 50]), D: output(int32[7, 50])):
    for r in range(7):
        for i in vectorized(50):
            C[r, i] = cast(i * 3 + r * 50 - 4, "float32")
            D[r, i] = cast(i - r, "int32")
""",
    "casts and truth values": """
def f(A: float32[33], C: output(int32[33]), D: output(float32[33])):
    for j in vectorized(33):
        C[j] = cast(A[j] * 10.0, "int32")
        D[j] = cast(A[j] < 0.5 and not A[j] < 0.0, "float32")
""",
    "types without vectors": """
def f(A: uint8[33], B: float32[33],
      C: output(uint8[33]), D: output(float32[33]), E: output(bool[33])):
    for j in vectorized(33):
        C[j] = A[j] * uint8(3) + uint8(200)
        D[j] = cast(A[j], "float32")
    for j in vectorized(33):
        E[j] = B[j] < 0.0
""",
    "padding by select": """
def f(A: float32[6, 30], C: output(float32[8, 32]), D: output(float32[8, 32])):
    for y in range(8):
        for x in vectorized(32):
            C[y, x] = select(1 <= y and y <= 6 and 1 <= x and x < 31, A[y - 1, x - 1], 0.0)
            D[y, x] = select(x < 1 or y < 1 or 30 < x or 6 < y, -1.5, A[y - 1, x - 1] * 2.0)
""",
    "loads two apart": """
def f(A: float32[6, 61], C: output(float32[6, 30]), D: output(float32[6, 30])):
    for y in range(6):
        for x in vectorized(30):
            C[y, x] = A[y, x * 2] + A[y, x * 2 + 1]
            D[y, x] = (select(0 <= x * 2 - 1, A[y, x * 2 - 1], 7.0)
                       + select(x * 2 + 3 < 61, A[y, x * 2 + 3], 9.0))
""",
    "a transpose": """
def f(A: float32[37, 20], C: output(float32[20, 37])):
    for i in parallel(20):
        for j in vectorized(37):
            C[i, j] = A[j, i]
""",
    "a fused loop": """
def f(A: float32[6, 10], B: float32[10], C: output(float32[6, 10]), D: output(float32[6, 10])):
    for ij in vectorized(60):
        C[ij // 10, ij % 10] = A[ij // 10, ij % 10] + 1.0
    for ij in vectorized(60):
        D[ij // 10, ij % 10] = A[ij // 10, ij % 10] + B[ij % 10]
""",
    "packing into panels and back": """
def f(B: float32[20, 50], P: output(float32[2, 20, 32]), C: output(float32[20, 64])):
    for p in parallel(2):
        for k in range(20):
            for j in vectorized(32):
                P[p, k, j] = select(p * 32 + j < 50, B[k, p * 32 + j], 0.0)
    barrier()
    for k in parallel(20):
        for jo in unrolled(4):
            for j in vectorized(16):
                C[k, jo * 16 + j] = P[(jo * 16 + j) // 32, k, (jo * 16 + j) % 32]
""",
    "rows chosen by data": """
def f(A: float32[33, 20], I: int64[33], C: output(float32[33, 20]), D: output(float32[33])):
    for i in range(33):
        for j in vectorized(20):
            C[i, j] = A[min(max(I[i], 0), 32), j]
    for j in vectorized(33):
        D[j] = A[min(max(I[j], 0), 32), 3]
""",
    "a sum of rows": """
def f(A: float32[20, 33], C: output(float32[33])):
    for j in vectorized(33):
        C[j] = 0.0
    for k in range(20):
        for j in vectorized(33):
            C[j] = C[j] + A[k, j]
""",
    "an accumulator of each lane": """
def f(A: float32[20, 33], C: output(float32[33])):
    for j in vectorized(33):
        s = alloc(float32[1], "register")
        s[0] = 0.0
        for k in range(20):
            s[0] = s[0] + A[k, j]
        C[j] = s[0]
""",
    "branches that lanes disagree on": """
def f(A: float32[4, 33], C: output(float32[4, 33])):
    for r in range(4):
        for j in vectorized(33):
            if j < 20 + r and r < 3:
                C[r, j] = A[r, j]
            else:
                if A[r, j] < 0.0:
                    C[r, j] = A[r, j] * 10.0
                else:
                    C[r, j] = A[r, j] * 100.0
""",
    "a condition that its own branches change": """
def f(A: float32[33], C: output(float32[33]), D: output(float32[33]), E: output(float32[33])):
    for j in vectorized(33):
        C[j] = A[j]
        E[j] = 0.0
        if C[j] < 0.0:
            C[j] = 5.0
            D[j] = 1.0
        else:
            C[j] = 0.0 - 5.0
            D[j] = 2.0
        if C[j] < 0.0 and 0.5 < A[j]:
            C[j] = 7.0
            E[j] = 3.0
""",
    "nothing": """
def f(A: float32[0, 4], C: output(float32[0, 4]), D: output(float32[()])):
    for i in parallel(0):
        for j in vectorized(4):
            C[i, j] = A[i, j]
    D[()] = 4.0
""",
    "a load that no lane may need": """
def f(A: float32[5], B: float32[30], C: output(float32[6, 30])):
    for i in range(6):
        for j in vectorized(30):
            C[i, j] = select(j < 25 - i * 10 and j + i < 6, A[i], B[j])
""",
    "a tail of one lane": """
def f(A: float32[9], C: output(float32[9])):
    for o in range(2):
        for i in vectorized(8):
            if o * 8 + i < 9:
                C[o * 8 + i] = A[o * 8 + i]
""",
    "workspaces shared and private": """
def f(A: float32[40, 24], C: output(float32[40, 24])):
    T = alloc(float32[40, 24], "global")
    for i in parallel(40):
        R = alloc(float32[24], "thread")
        for j in vectorized(24):
            R[j] = A[i, j] * 2.0
        for j in range(24):
            T[i, j] = R[23 - j]
    barrier()
    for i in parallel(40):
        S = alloc(float32[24], "global")
        for j in vectorized(24):
            S[j] = T[39 - i, j]
        for j in vectorized(24):
            C[i, j] = S[j] + 1.0
""",
    "a prefetch past the end": """
def f(A: float32[40, 24], C: output(float32[40, 24])):
    for i in range(40):
        for j in vectorized(24):
            prefetch(A[i + 8, j], "read", 2)
            C[i, j] = A[i, j]
""",
    "a prefetch of rows": """
def f(A: float32[40, 24], C: output(float32[40, 24])):
    for i in range(40):
        for j in vectorized(24):
            prefetch(C[i + min(j, 5) // 2, min(j, 5) % 2 * 16], "write", 1)
            C[i, j] = A[i, j]
""",
}

CLOSE = {
    "elementary functions": """
def f(A: float32[2, 40], C: output(float32[2, 40]), D: output(float32[2, 40])):
    for i in range(2):
        for j in vectorized(40):
            C[i, j] = exp(A[i, j]) + tanh(A[i, j]) + log(abs(A[i, j]) + 0.001)
            D[i, j] = A[i, j] * 0.5 * (1.0 + erf(A[i, j] * 0.70710678)) + pow(abs(A[i, j]), 0.75)
""",
    "elementary functions of doubles": """
def f(A: float64[2, 40], C: output(float64[2, 40])):
    for i in range(2):
        for j in vectorized(40):
            C[i, j] = exp(A[i, j]) + tanh(A[i, j]) + log(abs(A[i, j]) + float64(0.001))
""",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", EXACT)
def test_compiled_code_has_the_interpreters_bits(name: str, check: Callable[..., object]) -> None:
    check(EXACT[name])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CLOSE)
def test_expanded_functions_have_the_bits_of_their_expansion(
    name: str, target: Target, run_artifact: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    func = parse(CLOSE[name])
    arrays = {
        "A": np.random.default_rng(0).standard_normal((2, 40)).astype(func.inputs[0].type.numpy)
    }
    lowered = interpret(lower(func, target), *arrays.values())
    exact = interpret(func, *arrays.values())
    results = run_artifact(build_artifact(func, target), arrays)
    for result, expansion, reference in zip(results, lowered, exact, strict=True):
        np.testing.assert_array_equal(result, expansion)
        np.testing.assert_allclose(result, reference, rtol=2e-6, atol=2e-6)


def test_min_and_max_propagate_nan_and_any_does_not_promise_to(
    check: Callable[..., tuple[np.ndarray, ...]],
) -> None:
    text = """
def f(A: float32[33], B: float32[33], C: output(float32[33]),
      D: output(float32[33]), E: output(float32[33]), F: output(float32[33])):
    for j in vectorized(33):
        C[j] = max(A[j], B[j])
        D[j] = min(A[j], B[j])
        E[j] = max(A[j], 0.0)
        F[j] = max_any(A[j], B[j]) + min_any(B[j], A[j])
"""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(33).astype(np.float32) for _ in range(2))
    a[::3], b[::4], a[5], b[7] = np.nan, np.nan, np.inf, -np.inf
    largest, *_ = check(text, {"A": a, "B": b})
    np.testing.assert_array_equal(largest, np.maximum(a, b))


def test_min_and_max_of_integers_and_a_number_are_vectors_too(
    check: Callable[..., tuple[np.ndarray, ...]],
) -> None:
    text = """
def f(A: int32[33], C: output(int32[33])):
    for j in vectorized(33):
        C[j] = max(min(A[j], int32(5)), int32(-2))
"""
    a = np.arange(-16, 17, dtype=np.int32)
    (clamped,) = check(text, {"A": a})
    np.testing.assert_array_equal(clamped, a.clip(-2, 5))


MATMUL = """
def mm(A: DTYPE[M, K], B: constant(DTYPE[K, N]), C: output(DTYPE[M, N])):
    P = alloc(DTYPE[PANELS, K, WIDTH], "global")
    for p in parallel(PANELS):
        for r in range(K):
            for j in vectorized(WIDTH):
                P[p, r, j] = select(p * WIDTH + j < N, B[r, p * WIDTH + j], ZERO)
    barrier()
    for jo in parallel(PANELS):
        for io in range(TILES):
            T = alloc(DTYPE[ROWS, WIDTH], "register", origin=C)
            for ii in unrolled(ROWS):
                for jj in unrolled(STEPS):
                    for v in vectorized(LANES):
                        with block("C_init", vi=spatial(M, io * ROWS + ii),
                                   vj=spatial(N, jo * WIDTH + jj * LANES + v), init="C"):
                            where(jo * WIDTH + jj * LANES + v < N)
                            T[vi - io * ROWS, vj - jo * WIDTH] = ZERO
            for r in range(K):
                for ii in unrolled(ROWS):
                    for jj in unrolled(STEPS):
                        for v in vectorized(LANES):
                            with block("C", vi=spatial(M, io * ROWS + ii),
                                       vj=spatial(N, jo * WIDTH + jj * LANES + v), vr=reduce(K, r)):
                                where(jo * WIDTH + jj * LANES + v < N)
                                T[vi - io * ROWS, vj - jo * WIDTH] = (
                                    T[vi - io * ROWS, vj - jo * WIDTH]
                                    + A[vi, vr] * P[vj // WIDTH, vr, vj % WIDTH])
            for ii in unrolled(ROWS):
                for jj in unrolled(STEPS):
                    for v in vectorized(LANES):
                        with block("C_out", vi=spatial(M, io * ROWS + ii),
                                   vj=spatial(N, jo * WIDTH + jj * LANES + v), copy="C"):
                            where(jo * WIDTH + jj * LANES + v < N)
                            C[vi, vj] = T[vi - io * ROWS, vj - jo * WIDTH]
"""


def matmul(dtype: str, rows: int, width: int, lanes: int, m: int, n: int, k: int) -> str:
    """A (m x k) times B (k x n): panels of B packed by `prepare`, tiles of rows x width in
    registers, columns masked.
    """
    words = {
        "DTYPE": dtype,
        "ZERO": "0.0" if dtype == "float32" else "float64(0.0)",
        "PANELS": str(-(-n // width)),
        "TILES": str(m // rows),
        "STEPS": str(width // lanes),
        "ROWS": str(rows),
        "WIDTH": str(width),
        "LANES": str(lanes),
        "M": str(m),
        "N": str(n),
        "K": str(k),
    }
    return re.sub(r"\b[A-Z]+\b", lambda match: words.get(match[0], match[0]), MATMUL)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("dtype", "rows", "width", "lanes"),
    [
        ("float32", 8, 48, 16),
        ("float32", 12, 32, 32),
        ("float64", 8, 48, 16),
        ("float64", 4, 16, 8),
    ],
)
def test_a_register_tiled_matmul_over_packed_panels(
    dtype: str, rows: int, width: int, lanes: int, check: Callable[..., tuple[np.ndarray, ...]]
) -> None:
    check(matmul(dtype, rows, width, lanes, 2 * rows, 77, 9))
