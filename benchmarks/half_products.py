"""Products with operands of 16 bits beside ours in float32, in the same rounds.

    python -m benchmarks.half_products [--rounds 7] [--threads 1,2] [--write]

Products of usual sizes by constant weights, in each form that `precision=` may give them; weights
and data are those of a run, each kernel has copies of its own. "times float32" is ours in float32
over a row's time, the median of the rounds' own ratios. The error is the relative root mean square
beside float64.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.cli.arguments import counts
from tilewright.graph.reference.compare import relative_rms
from tilewright.graph.types import numpy_type

from . import report
from .narrow_rows import PLAIN, Call, NarrowRow, rows_of, shown

SHAPES = ((1, 4096, 4096), (8, 4096, 4096), (128, 768, 3072), (3136, 64, 256))  # M, N, K
FORMS = {  # of data and weights, and what a build is allowed
    PLAIN: ("float32", "float32", ()),
    "weights in float16": ("float32", "float16", ()),
    "weights in bfloat16": ("float32", "bfloat16", ()),
    "both in bfloat16": ("bfloat16", "bfloat16", ("vdpbf16ps",)),
}


def product(rows: int, columns: int, inner: int, data: str, weights: str) -> tw.PrimFunc:
    """C = A B in float32, B constant."""
    a = te.placeholder((rows, inner), data, name="A")
    b = te.placeholder((inner, columns), weights, name="B", constant=True)
    k = te.reduce_axis(inner, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        return te.sum(te.cast(a[i, k], PLAIN) * te.cast(b[k, j], PLAIN), axis=k)

    return te.func(a, b, te.compute((rows, columns), element, name="C"), name="product")


def products(shape: tuple[int, int, int], threads: int, rounds: int) -> list[NarrowRow]:
    """Each form of a product."""
    rows, columns, inner = shape
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(PLAIN) for s in ((rows, inner), (inner, columns)))
    wanted, calls, errors = a.astype(np.float64) @ b.astype(np.float64), dict[str, Call](), {}
    for name, (data, weights, allow) in FORMS.items():
        given = a.astype(numpy_type(data))
        kernel = tw.build(
            product(*shape, data, weights),
            constants={"B": b.astype(numpy_type(weights))},
            allow=allow,
        )
        errors[name] = relative_rms(kernel(given, threads=threads), wanted)
        calls[name] = kernel.bind_copies(given, threads=threads)
    return rows_of("x".join(map(str, shape)), threads, calls, errors, rounds)


def main() -> None:
    """Measure, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=counts, default=(1, 2))
    parser.add_argument("--write", action="store_true", help="keep it under benchmarks/results")
    options = parser.parse_args()
    rows = [
        row
        for threads in options.threads
        for shape in SHAPES
        for row in products(shape, threads, options.rounds)
    ]
    table = shown("product", rows)
    print(table)
    if options.write:
        report.write("half_products", table, [asdict(row) for row in rows], ())


if __name__ == "__main__":
    main()
