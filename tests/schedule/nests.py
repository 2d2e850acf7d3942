"""Loop nests written by hand, as code generation's first half would leave them, each with what it
computes.

Small enough for the interpreter, which is the other judge of them.
"""

from __future__ import annotations

# ruff: noqa: E501 (one line of a nest is one line)
from collections.abc import Callable

from tilewright.schedule.canonical import canonical_form
from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te


def matmul(m: int, n: int, k: int) -> PrimFunc:
    """C = A B"""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="matmul")


TILED = """
def matmul(A: float32[13, 7], B: float32[7, 10], C: output(float32[13, 10])):
    for i0 in parallel(4):
        for j0 in range(3):
            for ii in range(4):
                for jj in vectorized(4):
                    with block("C_init", vi=spatial(13, i0 * 4 + ii), vj=spatial(10, j0 * 4 + jj), init="C"):
                        where(i0 * 4 + ii < 13 and j0 * 4 + jj < 10)
                        C[vi, vj] = 0.0
            for k0 in range(3):
                for ii in range(4):
                    for jj in vectorized(4):
                        for kk in range(3):
                            with block("C", vi=spatial(13, i0 * 4 + ii), vj=spatial(10, j0 * 4 + jj), vk=reduce(7, k0 * 3 + kk)):
                                where(i0 * 4 + ii < 13 and j0 * 4 + jj < 10 and k0 * 3 + kk < 7)
                                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

BLOCKED = """
def matmul(A: float32[3, 4], B: float32[4, 5], C: output(float32[3, 5])):
    for i in range(3):
        T = alloc(float32[5], "register")
        for j in range(5):
            with block("C_init", vi=spatial(3, i), vj=spatial(5, j), init="C"):
                C[vi, vj] = 0.0
        for k0 in range(2):
            for j in range(5):
                with block("C_in", vi=spatial(3, i), vj=spatial(5, j), copy="C"):
                    T[vj] = C[vi, vj]
            for j in range(5):
                for k1 in range(2):
                    with block("C", vi=spatial(3, i), vj=spatial(5, j), vk=reduce(4, k0 * 2 + k1)):
                        T[vj] = T[vj] + A[vi, vk] * B[vk, vj]
            for j in range(5):
                with block("C_out", vi=spatial(3, i), vj=spatial(5, j), copy="C"):
                    C[vi, vj] = T[vj]
"""

FUSED = """
def matmul(A: float32[13, 7], B: float32[7, 10], C: output(float32[13, 10])):
    for f0 in parallel(9):
        for f1 in range(16):
            for k in range(7):
                with block("C", vi=spatial(13, (f0 * 16 + f1) // 10), vj=spatial(10, (f0 * 16 + f1) % 10), vk=reduce(7, k)):
                    where(f0 * 16 + f1 < 130)
                    with init():
                        C[vi, vj] = 0.0
                    C[vi, vj] = fma(A[vi, vk], B[vk, vj], C[vi, vj])
"""


def packed(m: int, n: int, k: int, width: int) -> PrimFunc:
    """Y = exp(A B + bias), B packed into panels of `width` columns."""
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B")
    bias = te.placeholder((n,), "float32", name="bias")
    axis = te.reduce_axis(k, name="k")
    panels = -(-n // width)
    p = te.compute(
        (panels, k, width),
        lambda v0, v1, v2: te.select(v0 * width + v2 < n, b[v1, v0 * width + v2], 0.0),
        name="P",
    )
    c = te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, axis] * p[j // width, axis, j % width], axis=axis),
        name="C",
    )
    y = te.compute((m, n), lambda i, j: te.exp(c[i, j] + bias[j]), name="Y")
    return te.func(a, b, bias, y, name="packed")


class PackedNest:
    """The text of `packed`, tiled, blocked over K, cut late: at most 12 copies of the micro kernel.

    C is folded into Y's storage; each tile of it lives in a register buffer, is stored by all K
    blocks but the last and loaded by all but the first; the last computes Y from it.
    """

    def __init__(
        self, m: int, n: int, k: int, rows: int, width: int, block: int, lanes: int
    ) -> None:
        self.m, self.n, self.k = m, n, k
        self.rows, self.width, self.block, self.lanes = rows, width, block, lanes
        self.lines: list[str] = []
        self.tiles = 0

    def text(self) -> str:
        panels = -(-self.n // self.width)
        full, rest = divmod(self.n, self.width)
        self.put(
            0,
            f"def packed(A: float32[{self.m}, {self.k}], B: float32[{self.k}, {self.n}], "
            f"bias: float32[{self.n}], Y: output(float32[{self.m}, {self.n}])):",
        )
        self.put(1, f'P = alloc(float32[{panels}, {self.k}, {self.width}], "global")')
        self.put(1, f"for p in parallel({panels}):")
        self.put(2, f"for q in range({self.k}):")
        self.put(3, f"for r in vectorized({self.width}):")
        spatial = f"v0=spatial({panels}, p), v1=spatial({self.k}, q), v2=spatial({self.width}, r)"
        self.put(4, f'with block("P", {spatial}):')
        column = f"v0 * {self.width} + v2"
        self.put(5, f"P[v0, v1, v2] = select({column} < {self.n}, B[v1, {column}], 0.0)")
        self.put(1, "barrier()")
        self.put(1, f"for j in parallel({panels}):")
        if rest:
            self.put(2, f"if j < {full}:")
            self.all_rows(3, self.width)
            self.put(2, "else:")
            self.all_rows(3, rest)
        else:
            self.all_rows(2, self.width)
        return "\n".join(self.lines)

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def all_rows(self, depth: int, width: int) -> None:
        full, rest = divmod(self.m, self.rows)
        if full:
            self.put(depth, f"for i in range({full}):")
            self.all_blocks(depth + 1, "i", width, self.rows)
        if rest:
            self.all_blocks(depth, str(full), width, rest)

    def all_blocks(self, depth: int, i: str, width: int, rows: int) -> None:
        count = self.k // self.block
        self.tile(depth, i, width, rows, "0", first=True, last=count == 1)
        if count > 2:
            self.put(depth, f"for k0 in range({count - 2}):")
            self.tile(depth + 1, i, width, rows, "(k0 + 1)", first=False, last=False)
        if count > 1:
            self.tile(depth, i, width, rows, str(count - 1), first=False, last=True)

    def tile(
        self, depth: int, i: str, width: int, rows: int, k0: str, *, first: bool, last: bool
    ) -> None:
        self.tiles += 1
        tile = f"C_reg{self.tiles}"
        vectors = -(-width // self.lanes)
        row, column = f"{i} * {self.rows} + ii", f"j * {self.width} + jj * {self.lanes} + jv"
        guard = f"{column} < {self.n}" if width % self.lanes else ""
        spatial = f"vi=spatial({self.m}, {row}), vj=spatial({self.n}, {column})"
        cell = f"{tile}[vi - {i} * {self.rows}, vj - j * {self.width}]"

        def nest(at: int, head: str, store: str) -> None:
            self.put(at, f"for ii in unrolled({rows}):")
            self.put(at + 1, f"for jj in unrolled({vectors}):")
            self.put(at + 2, f"for jv in vectorized({self.lanes}):")
            self.put(at + 3, f"with block({head}):")
            if guard:
                self.put(at + 4, f"where({guard})")
            self.put(at + 4, store)

        self.put(depth, f'{tile} = alloc(float32[{rows}, {vectors * self.lanes}], "register")')
        if first:
            nest(depth, f'"C_init", {spatial}, init="C"', f"{cell} = 0.0")
        else:
            nest(depth, f'"C_in", {spatial}, copy="C"', f"{cell} = Y[vi, vj]")
        self.put(depth, f"for k1 in range({self.block}):")
        reduce = f"vk=reduce({self.k}, {k0} * {self.block} + k1)"
        panel = f"P[vj // {self.width}, vk, vj % {self.width}]"
        nest(depth + 1, f'"C", {spatial}, {reduce}', f"{cell} = fma(A[vi, vk], {panel}, {cell})")
        if last:
            nest(depth, f'"Y", {spatial}', f"Y[vi, vj] = exp({cell} + bias[vj])")
        else:
            nest(depth, f'"C_out", {spatial}, copy="C"', f"Y[vi, vj] = {cell}")


def conv(size: int, channels: int) -> PrimFunc:
    """A 3x3 convolution of a padded image, then its positive part."""
    x = te.placeholder((size, size), "float32", name="X")
    w = te.placeholder((channels, 3, 3), "float32", name="W")
    padded = te.compute(
        (size + 2, size + 2),
        lambda h, v: te.select(
            te.all_of(h >= 1, h < size + 1, v >= 1, v < size + 1), x[h - 1, v - 1], 0.0
        ),
        name="P",
    )
    r, s = te.reduce_axis(3, name="r"), te.reduce_axis(3, name="s")
    y = te.compute(
        (channels, size, size),
        lambda c, h, v: te.sum(padded[h + r, v + s] * w[c, r, s], axis=(r, s)),
        name="C",
    )
    z = te.compute((channels, size, size), lambda c, h, v: te.maximum(y[c, h, v], 0.0), name="Z")
    return te.func(x, w, z, name="conv")


# Tiles of 4 rows, each with its own 6 rows of the padded image: the rows of the halo are computed twice.
HALO = """
def conv(X: float32[8, 8], W: float32[2, 3, 3], Z: output(float32[2, 8, 8])):
    for t in parallel(2):
        P = alloc(float32[6, 10], "thread")
        C = alloc(float32[2, 4, 8], "thread")
        for h in range(6):
            for v in range(10):
                with block("P", vh=spatial(10, t * 4 + h), vv=spatial(10, v), recomputed=True):
                    P[vh - t * 4, vv] = select(1 <= vh and vh < 9 and 1 <= vv and vv < 9, X[vh - 1, vv - 1], 0.0)
        for c in range(2):
            for h in range(4):
                for v in vectorized(8):
                    with block("C_init", vc=spatial(2, c), vh=spatial(8, t * 4 + h), vv=spatial(8, v), init="C"):
                        C[vc, vh - t * 4, vv] = 0.0
                for r in range(3):
                    for s in range(3):
                        for v in vectorized(8):
                            with block("C", vc=spatial(2, c), vh=spatial(8, t * 4 + h), vv=spatial(8, v), vr=reduce(3, r), vs=reduce(3, s)):
                                C[vc, vh - t * 4, vv] = C[vc, vh - t * 4, vv] + P[vh + vr - t * 4, vv + vs] * W[vc, vr, vs]
        for c in range(2):
            for h in range(4):
                for v in vectorized(8):
                    with block("Z", vc=spatial(2, c), vh=spatial(8, t * 4 + h), vv=spatial(8, v)):
                        Z[vc, vh, vv] = max(C[vc, vh - t * 4, vv], 0.0)
"""

# No padded image at all: its value is computed where it is read; borders are peeled off, so the guard is gone inside.
INLINED_HALO = """
def conv(X: float32[8, 8], W: float32[2, 3, 3], Z: output(float32[2, 8, 8])):
    P = alloc(float32[10, 10], "global")
    for h in range(10):
        if 1 <= h and h < 9:
            with block("P", vh=spatial(10, h), vv=spatial(10, 0)):
                P[vh, vv] = 0.0
            for v in range(8):
                with block("P", vh=spatial(10, h), vv=spatial(10, v + 1)):
                    P[vh, vv] = X[vh - 1, vv - 1]
            with block("P", vh=spatial(10, h), vv=spatial(10, 9)):
                P[vh, vv] = 0.0
        else:
            for v in range(10):
                with block("P", vh=spatial(10, h), vv=spatial(10, v)):
                    P[vh, vv] = 0.0
    barrier()
    for c in parallel(2):
        for h in range(8):
            for v in range(8):
                for r in range(3):
                    for s in range(3):
                        with block("C", vc=spatial(2, c), vh=spatial(8, h), vv=spatial(8, v), vr=reduce(3, r), vs=reduce(3, s)):
                            with init():
                                Z[vc, vh, vv] = 0.0
                            Z[vc, vh, vv] = fma(P[vh + vr, vv + vs], W[vc, vr, vs], Z[vc, vh, vv])
                with block("Z", vc=spatial(2, c), vh=spatial(8, h), vv=spatial(8, v)):
                    Z[vc, vh, vv] = max(Z[vc, vh, vv], 0.0)
"""


def blur(rows: int, columns: int) -> PrimFunc:
    """The sum of three neighbours along the columns, then along the rows."""
    x = te.placeholder((rows + 2, columns + 2), "float32", name="X")
    b = te.compute((rows + 2, columns), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2], name="B")
    y = te.compute((rows, columns), lambda i, j: b[i, j] + b[i + 1, j] + b[i + 2, j], name="Y")
    return te.func(x, y, name="blur")


# Three rows of B are kept, each in the place of the one that is no longer needed.
ROLLING = """
def blur(X: float32[9, 6], Y: output(float32[7, 4])):
    B = alloc(float32[3, 4], "thread")
    for i in range(9):
        for j in vectorized(4):
            with block("B", vi=spatial(9, i), vj=spatial(4, j)):
                B[vi % 3, vj] = X[vi, vj] + X[vi, vj + 1] + X[vi, vj + 2]
        if 2 <= i:
            for j in vectorized(4):
                with block("Y", vi=spatial(7, i - 2), vj=spatial(4, j)):
                    Y[vi, vj] = B[vi % 3, vj] + B[(vi + 1) % 3, vj] + B[(vi + 2) % 3, vj]
"""

# The input rows of each tile are copied first.
STAGED = """
def blur(X: float32[9, 6], Y: output(float32[7, 4])):
    B = alloc(float32[9, 4], "global")
    for t in parallel(3):
        X_local = alloc(float32[3, 6], "thread", origin=X)
        for i in range(3):
            for j in range(6):
                with block("X_in", v0=spatial(9, t * 3 + i), v1=spatial(6, j), copy="X"):
                    X_local[v0 - t * 3, v1] = X[v0, v1]
        for i in range(3):
            for j in vectorized(4):
                with block("B", vi=spatial(9, t * 3 + i), vj=spatial(4, j)):
                    B[vi, vj] = X_local[vi - t * 3, vj] + X_local[vi - t * 3, vj + 1] + X_local[vi - t * 3, vj + 2]
    barrier()
    for i in parallel(7):
        for j in vectorized(4):
            with block("Y", vi=spatial(7, i), vj=spatial(4, j)):
                Y[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]
"""


def softmax(rows: int, columns: int) -> PrimFunc:
    """The rows' exponentials, each divided by their sum."""
    x = te.placeholder((rows, columns), "float32", name="X")
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="M")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(e[i, n], axis=n), name="S")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


# One row at a time; the exponentials wait in the output's own storage.
IN_PLACE = """
def softmax(X: float32[5, 6], Y: output(float32[5, 6])):
    for i in parallel(5):
        M = alloc(float32[1], "register")
        S = alloc(float32[1], "register")
        with block("M_init", vi=spatial(5, i), init="M"):
            M[0] = float("-inf")
        for k in range(6):
            with block("M", vi=spatial(5, i), vk=reduce(6, k)):
                M[0] = max(M[0], X[vi, vk])
        with block("S_init", vi=spatial(5, i), init="S"):
            S[0] = 0.0
        for j in range(6):
            with block("E", vi=spatial(5, i), vj=spatial(6, j)):
                Y[vi, vj] = exp(X[vi, vj] - M[0])
            with block("S", vi=spatial(5, i), vn=reduce(6, j)):
                S[0] = S[0] + Y[vi, vn]
        for j in vectorized(6):
            with block("Y", vi=spatial(5, i), vj=spatial(6, j)):
                Y[vi, vj] = Y[vi, vj] / S[0]
"""


def smooth(rows: int, columns: int) -> PrimFunc:
    """Sums over the rows of X, then sums of three neighbouring ones."""
    x = te.placeholder((rows + 2, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    s = te.compute((rows + 2,), lambda i: te.sum(x[i, k], axis=k), name="S")
    y = te.compute((rows,), lambda i: s[i] + s[i + 1] + s[i + 2], name="Y")
    return te.func(x, y, name="smooth")


# Each tile of two results computes the four sums that it needs, two of them anew.
RECOMPUTED = """
def smooth(X: float32[8, 4], Y: output(float32[6])):
    for t in parallel(3):
        S = alloc(float32[4], "thread")
        for i in range(4):
            with block("S_init", vi=spatial(8, t * 2 + i), init="S", recomputed=True):
                S[vi - t * 2] = 0.0
            for k in range(4):
                with block("S", vi=spatial(8, t * 2 + i), vk=reduce(4, k), recomputed=True):
                    S[vi - t * 2] = S[vi - t * 2] + X[vi, vk]
        for i in range(2):
            with block("Y", vi=spatial(6, t * 2 + i)):
                Y[vi] = S[vi - t * 2] + S[vi + 1 - t * 2] + S[vi + 2 - t * 2]
"""

# Whole tiles of 4 of the 6 results: the points 6 and 7 are computed and left in the tile.
PADDED = """
def smooth(X: float32[8, 4], Y: output(float32[6])):
    S = alloc(float32[8], "global")
    T = alloc(float32[8], "global")
    for i in range(8):
        for k in range(4):
            with block("S", vi=spatial(8, i), vk=reduce(4, k)):
                with init():
                    S[vi] = 0.0
                S[vi] = S[vi] + X[vi, vk]
    for t in range(2):
        for i in vectorized(4):
            with block("Y", vi=spatial(6, t * 4 + i), padded=True):
                T[vi] = S[min(vi, 5)] + S[min(vi + 1, 6)] + S[min(vi + 2, 7)]
    for i in range(6):
        with block("Y_out", vi=spatial(6, i), copy="Y"):
            Y[vi] = T[vi]
"""

PACKED = PackedNest(9, 20, 12, rows=4, width=8, block=4, lanes=4).text()
PACKED_ONCE = PackedNest(8, 16, 4, rows=4, width=8, block=4, lanes=4).text()

NESTS: dict[str, tuple[Callable[[], PrimFunc], str]] = {
    "tiled": (lambda: matmul(13, 10, 7), TILED),
    "blocked": (lambda: matmul(3, 5, 4), BLOCKED),
    "fused": (lambda: matmul(13, 10, 7), FUSED),
    "packed": (lambda: packed(9, 20, 12, 8), PACKED),
    "packed once": (lambda: packed(8, 16, 4, 8), PACKED_ONCE),
    "halo": (lambda: conv(8, 2), HALO),
    "inlined halo": (lambda: conv(8, 2), INLINED_HALO),
    "rolling": (lambda: blur(7, 4), ROLLING),
    "staged": (lambda: blur(7, 4), STAGED),
    "in place": (lambda: softmax(5, 6), IN_PLACE),
    "recomputed": (lambda: smooth(6, 4), RECOMPUTED),
    "padded": (lambda: smooth(6, 4), PADDED),
}


def nest(name: str) -> PrimFunc:
    """The nest of that name."""
    return parse(NESTS[name][1])


def canonical(name: str) -> PrimFunc:
    """What it should compute."""
    return canonical_form(NESTS[name][0]())
