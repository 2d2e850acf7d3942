"""Products of matrices: with constant weights, with two operands that vary, with one transposed."""

from __future__ import annotations

from .subject import Subject, fixed, normal


def _weighted(rows: int, inner: int, columns: int) -> Subject:
    draws = {"x": normal(rows, inner), "w": fixed(normal(inner, columns))}
    return Subject(f"MatMul {rows}x{inner}x{columns}, weights", "y = MatMul(x, w)", draws)


def _varying(rows: int, inner: int, columns: int, *batch: int) -> Subject:
    draws = {"a": normal(*batch, rows, inner), "b": normal(*batch, inner, columns)}
    many = "".join(f"{size}x" for size in batch)
    return Subject(f"MatMul {many}{rows}x{inner}x{columns}, both vary", "y = MatMul(a, b)", draws)


def _by_transpose(rows: int, inner: int, columns: int, *batch: int) -> Subject:
    """The second operand is read by its rows."""
    draws = {"a": normal(*batch, rows, inner), "b": normal(*batch, columns, inner)}
    axes = [*range(len(batch)), len(batch) + 1, len(batch)]
    body = f"t = Transpose <perm={axes}> (b) y = MatMul(a, t)"
    many = "".join(f"{size}x" for size in batch)
    return Subject(f"MatMul {many}{rows}x{inner}x{columns} by a transpose", body, draws)


def _of_transpose(rows: int, inner: int, columns: int) -> Subject:
    """The first operand is read by its columns."""
    draws = {"a": normal(inner, rows), "b": normal(inner, columns)}
    body = "t = Transpose <perm=[1, 0]> (a) y = MatMul(t, b)"
    return Subject(f"MatMul {rows}x{inner}x{columns} of a transpose", body, draws)


WEIGHTED = (
    _weighted(128, 768, 768),
    _weighted(128, 768, 3072),
    _weighted(128, 3072, 768),
    _weighted(512, 512, 512),
    _weighted(1024, 1024, 1024),
    _weighted(1, 768, 3072),
    _weighted(1, 4096, 4096),
    _weighted(4, 1024, 4096),
    _weighted(12, 768, 768),
    _weighted(1, 768, 50257),
    _weighted(197, 192, 577),
    _weighted(127, 255, 129),
    _weighted(1024, 3, 1024),
    _weighted(1000, 1000, 1),
    _weighted(1000, 1000, 7),
    _weighted(16, 100000, 16),
    Subject(
        "Gemm 64x784x10",
        "y = Gemm <transB=1> (x, w, b)",
        {"x": normal(64, 784), "w": fixed(normal(10, 784)), "b": fixed(normal(10))},
    ),
)
VARYING = (
    _varying(512, 512, 512),
    _varying(1, 2048, 2048),
    _varying(128, 64, 128, 12),
    _varying(128, 128, 64, 12),
    _varying(1, 512, 64, 32),
    _varying(8, 8, 8, 1000),
    _by_transpose(128, 64, 128, 12),
    _by_transpose(1, 64, 512, 8),
    _by_transpose(1500, 64, 1500),
    _by_transpose(512, 512, 512),
    _of_transpose(512, 512, 512),
    _of_transpose(64, 4096, 64),
)
