"""Errors planted in right nests by editing their text: only the proof stands between them and a kernel."""

from __future__ import annotations

from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse

from .nests import NESTS

# ruff: noqa: E501 (one line of a nest is one line)


def edited(name: str, *edits: tuple[str, str]) -> PrimFunc:
    """A nest with parts of its text exchanged, the first place each."""
    text = NESTS[name][1]
    for old, new in edits:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new, 1)
    return parse(text)


def moved(name: str, start: str, lines: int, before: str) -> PrimFunc:
    """A nest in which `lines` lines, from the first that contains `start`, stand before the line `before`."""
    text = NESTS[name][1].strip().splitlines()
    first = next(n for n, line in enumerate(text) if start in line)
    taken = text[first : first + lines]
    rest = text[:first] + text[first + lines :]
    at = next((n for n, line in enumerate(rest) if before and before in line), None)
    return parse("\n".join(rest if at is None else rest[:at] + taken + rest[at:]))


def without_copy_out(name: str) -> PrimFunc:
    """The packed nest without the copy that its first K block leaves for the second."""
    text = NESTS[name][1].splitlines()
    at = next(n for n, line in enumerate(text) if '"C_out"' in line)
    return parse("\n".join([*text[: at - 3], *text[at + 2 :]]))


def early_copy_out(name: str) -> PrimFunc:
    """The packed nest whose first K block copies its tile out before it has added anything."""
    text = NESTS[name][1].splitlines()
    out = next(n for n, line in enumerate(text) if '"C_out"' in line)
    loop = next(n for n, line in enumerate(text) if "for k1" in line)
    return parse(
        "\n".join([*text[:loop], *text[out - 3 : out + 2], *text[loop : out - 3], *text[out + 2 :]])
    )


# name of the error -> nest, the wrong nest, the property that finds it, part of what it says
PLANTED: dict[str, tuple[str, PrimFunc, str, str]] = {
    "missing guard": (
        "tiled",
        edited(
            "tiled",
            ("where(i0 * 4 + ii < 13 and j0 * 4 + jj < 10 and k0", "where(j0 * 4 + jj < 10 and k0"),
        ),
        "P4",
        "block 'C' stores to C[13, 3]; 'C' has shape [13, 10]; C(i0=3, j0=0, k0=0, ii=1, jj=3, kk=2)",
    ),
    "load out of bounds": (
        "staged",
        edited(
            "staged",
            ("X_local[v0 - t * 3, v1] = X[v0, v1]", "X_local[v0 - t * 3, v1] = X[v0, v1 + 1]"),
        ),
        "P4",
        "block 'X_in' loads X[0, 6]; 'X' has shape [9, 6]; X_in(t=0, i=0, j=5)",
    ),
    "overlapping tiles": (
        "tiled",
        edited("tiled", ("j0 * 4 + jj), vk=", "j0 * 3 + jj), vk=")),
        "P1",
        "of block 'C' runs twice; C(i0=3, j0=0, k0=2, ii=0, jj=3, kk=0) and C(i0=3, j0=1, k0=2, ii=0, jj=0, kk=0)",
    ),
    "lost last K block": (
        "packed",
        edited("packed", ("vk=reduce(12, 2 * 4 + k1)", "vk=reduce(12, 1 * 4 + k1)")),
        "P1",
        "point (vi=0, vj=0, vk=8) of block 'C' never runs",
    ),
    "too few K blocks": (
        "tiled",
        edited("tiled", ("for k0 in range(3)", "for k0 in range(2)")),
        "P1",
        "point (vi=12, vj=9, vk=6) of block 'C' never runs",
    ),
    "missing init": (
        "recomputed",
        edited("recomputed", ("S[vi - t * 2] = 0.0", "pass")),
        "P2",
        "block 'S' needs S[0], but nothing was stored to S[0] before; S(t=0, i=0, k=0)",
    ),
    "init of another value": (
        "tiled",
        edited("tiled", ("C[vi, vj] = 0.0", "C[vi, vj] = 1.0")),
        "P2",
        "1.0 is stored, where the canonical form has 0.0",
    ),
    "early reuse of a staged buffer": (
        "rolling",
        edited(
            "rolling",
            ("B[vi % 3, vj] = X", "B[vi % 2, vj] = X"),
            (
                "B[vi % 3, vj] + B[(vi + 1) % 3, vj] + B[(vi + 2) % 3",
                "B[vi % 2, vj] + B[(vi + 1) % 2, vj] + B[(vi + 2) % 2",
            ),
        ),
        "P2",
        "block 'Y' needs B[0, 0], but B[0, 0] holds B[2, 0]; B(i=2, j=0) and Y(i=2, j=0)",
    ),
    "wrong halo": (
        "halo",
        edited("halo", ("for h in range(6)", "for h in range(5)")),
        "P2",
        "block 'C' needs P[9, 9], but nothing was stored to P[5, 9] before; C(t=1, c=1, h=3, r=2, s=2, v=7)",
    ),
    "wrong packing index": (
        "packed",
        edited("packed", ("P[vj // 8, vk, vj % 8]", "P[vj // 8, vk, (vj + 1) % 8]")),
        "P2",
        "block 'C' needs P[0, 0, 7], but P[0, 0, 0] holds P[0, 0, 0]",
    ),
    "copy out dropped before a later load": (
        "packed",
        without_copy_out("packed"),
        "P2",
        "block 'C_in' needs C[",
    ),
    "copy out too early": (
        "packed",
        early_copy_out("packed"),
        "P3",
        "as block 'C_out' left it, but block 'C' has updated it elsewhere since; C_out(",
    ),
    "copy out too late": (
        "blocked",
        edited(
            "blocked",
            (
                '            for j in range(5):\n                with block("C_out"',
                '        for j in range(5):\n                with block("C_out"',
            ),
        ),
        "P3",
        "block 'C' has updated it elsewhere since",
    ),
    "init inside the K loop": (
        "tiled",
        parse(
            NESTS["tiled"][1]
            .replace(
                '            for ii in range(4):\n                for jj in vectorized(4):\n                    with block("C_init"',
                '            for k0 in range(3):\n                for ii in range(4):\n                  for jj in vectorized(4):\n                    with block("C_init"',
                1,
            )
            .replace(
                "            for k0 in range(3):\n                for ii in range(4):\n                    for jj",
                "                for ii in range(4):\n                    for jj",
                1,
            )
        ),
        "P3",
        "of block 'C' is initialised after an update; C(i0=",
    ),
    "read before the sum is complete": (
        "in place",
        moved("in place", 'with block("S", vi', 2, 'with block("Y", vi'),
        "P3",
        "block 'Y' reads S[4] before block 'S' has updated it; Y(i=4, j=4) and S(i=4, j=5)",
    ),
    "missing barrier": (
        "packed",
        edited("packed", ("    barrier()\n", "")),
        "P5",
        "two statements with no barrier between them write and read P[",
    ),
    "barrier at the wrong place": (
        "staged",
        moved("staged", "barrier()", 1, "for t in parallel"),
        "P5",
        "two statements with no barrier between them write and read B[6, 3]; B(t=2, i=0, j=3) and Y(i=6, j=3)",
    ),
    "parallel reduction": (
        "tiled",
        edited("tiled", ("for k0 in range(3)", "for k0 in parallel(3)")),
        "P5",
        "two iterations of parallel loop 'k0' write C[3, 3]; C(i0=0, j0=0, k0=0, ii=3, jj=3, kk=2) and C(i0=0, j0=0, k0=1, ii=3, jj=3, kk=2)",
    ),
    "vectorized reduction": (
        "tiled",
        edited("tiled", ("for kk in range(3)", "for kk in vectorized(3)")),
        "P5",
        "two lanes of vectorized loop 'kk' write C[3, 3]",
    ),
    "a private buffer shared by threads": (
        "staged",
        edited(
            "staged", ('B = alloc(float32[9, 4], "global")', 'B = alloc(float32[9, 4], "thread")')
        ),
        "P5",
        "different threads, each with a buffer of its own, write and read B[",
    ),
    "storage shared with a tensor that is still needed": (
        "in place",
        edited(
            "in place",
            ("M[0] = max(M[0], X[vi, vk])", "S[0] = max(S[0], X[vi, vk])"),
            ('M[0] = float("-inf")', 'S[0] = float("-inf")'),
            ("exp(X[vi, vj] - M[0])", "exp(X[vi, vj] - S[0])"),
        ),
        "P2",
        "block 'E' needs M[",
    ),
}
