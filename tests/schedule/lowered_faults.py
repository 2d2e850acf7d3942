"""Lowered code of GPU kernels with its barriers lost or moved, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from tilewright.driver.lower import lower_function
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from .grids import products_of_warps, tiled
from .nests import softmax
from .programs import matmul

A100 = Target.parse("cuda:sm_80")
BARRIER = "barrier()"


def product(m: int, n: int, k: int) -> PrimFunc:
    """Rows by columns of float16, in float32."""
    a, b = (te.placeholder(s, "float16", name=name) for s, name in (((m, k), "A"), ((n, k), "B")))
    q = te.reduce_axis(k, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return te.cast(a[i, q], "float32") * te.cast(b[j, q], "float32")

    c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=q), name="C")
    return te.func(a, b, c, name="product")


def turned(m: int, n: int) -> PrimFunc:
    """A matrix with its axes the other way round."""
    a = te.placeholder((m, n), "float32", name="A")
    return te.func(a, te.compute((n, m), lambda i, j: a[j, i], name="T"), name="turned")


def total(n: int) -> PrimFunc:
    """The sum of a vector."""
    x, k = te.placeholder((n,), "float32", name="X"), te.reduce_axis(n, name="k")
    return te.func(x, te.compute((), lambda: te.sum(x[k], axis=k), name="S"), name="total")


def staged_warps() -> Schedule:
    steps = products_of_warps("mma_m16n8k16_f16", 16, transposed=True, tiles=(1, 2), stages=3)
    return Schedule(product(40, 20, 136), A100).apply(steps)


KERNELS: dict[str, Callable[[], PrimFunc | Schedule]] = {
    "product of warps": lambda: product(256, 256, 512),
    "product of warps, copies ahead": staged_warps,
    "product of threads": lambda: matmul(256, 256, 256),
    "product of threads, copies ahead": lambda: Schedule(matmul(16, 16, 21), A100).apply(
        tiled(stages=3)
    ),
    "softmax of rows": lambda: softmax(128, 768),
    "transpose through a tile": lambda: turned(70, 130),
    "sum by the whole grid": lambda: total(100_000),
}


@cache
def lowered(name: str) -> str:
    """The text of a kernel's lowered code."""
    return str(lower_function(KERNELS[name](), A100).parts.run)


def barriers(lines: list[str]) -> Iterator[int]:
    """The lines that are barriers inside of loops."""
    return (n for n, line in enumerate(lines) if line.strip() == BARRIER and _indent(line) > 4)


def lost(text: str) -> Iterator[str]:
    """The text without one of its barriers."""
    lines = text.splitlines()
    for at in barriers(lines):
        yield "\n".join((*lines[:at], *lines[at + 1 :]))


def behind_what_follows(text: str) -> Iterator[str]:
    """The text with one of its barriers behind the statement that follows."""
    lines = text.splitlines()
    for at in barriers(lines):
        end = _end(lines, at + 1)
        if end > at + 1 and not lines[at + 1].strip().startswith("del "):
            yield "\n".join((*lines[:at], *lines[at + 1 : end], lines[at], *lines[end:]))


def before_what_precedes(text: str) -> Iterator[str]:
    """The text with one of its barriers before the statement that precedes."""
    lines = text.splitlines()
    for at in barriers(lines):
        begins = [n for n in range(at) if _end(lines, n) == at and _level(lines, n, at)]
        yield from (
            "\n".join((*lines[:n], lines[at], *lines[n:at], *lines[at + 1 :]))
            for n in begins[:1]
            if "alloc(" not in lines[n]
        )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _level(lines: list[str], one: int, two: int) -> bool:
    return _indent(lines[one]) == _indent(lines[two]) and lines[one].strip() != "else:"


def _end(lines: list[str], start: int) -> int:
    """Where the statement that begins at a line ends; the line itself where none does."""
    if start >= len(lines) or _indent(lines[start]) < _indent(lines[start - 1]):
        return start
    depth = _indent(lines[start])
    end = start + 1
    while end < len(lines) and (_indent(lines[end]) > depth or lines[end].strip() == "else:"):
        end += 1
    return end
