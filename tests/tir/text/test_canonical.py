"""tir/text/canonical.py: the canonical print and the workload key, pinned."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.tir.func import PrimFunc
from tilewright.tir.parsing.parser import parse
from tilewright.tir.te import te
from tilewright.tir.text.canonical import canonical, canonical_print, workload_key
from tilewright.tir.text.equal import equal

CANONICAL = """\
def f(t0: float32[5, 7], t1: constant(float32[7, 3]), t2: output(float32[5, 3])):
    t3 = alloc(float32[5, 3], "global")
    for v0 in range(5):
        for v1 in range(3):
            for v2 in range(7):
                with block("b0", v3=spatial(5, v0), v4=spatial(3, v1), v5=reduce(7, v2)):
                    with init():
                        t3[v3, v4] = 0.0
                    t3[v3, v4] = t3[v3, v4] + t0[v3, v5] * t1[v5, v4]
    for v6 in range(5):
        for v7 in range(3):
            with block("b1", v8=spatial(5, v6), v9=spatial(3, v7)):
                t2[v8, v9] = max(t3[v8, v9], 0.0)"""

STAGED = """
def staged(A: float32[8], C: output(float32[8])):
    for i in parallel(2):
        R = alloc(float32[8], "thread", origin=A)
        for j in range(4):
            with block("R", v=spatial(8, i * 4 + j), copy="A"):
                R[v] = A[v]
        for j in vectorized(4, tail="mask"):
            with block("C", v=spatial(8, i * 4 + j)):
                C[v] = exp(R[v])
"""


def layer() -> PrimFunc:
    a = te.placeholder((5, 7), "float32", name="A")
    b = te.placeholder((7, 3), "float32", name="B", constant=True)
    k = te.reduce_axis(7, name="k")
    c = te.compute((5, 3), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((5, 3), lambda i, j: te.maximum(c[i, j], 0.0), name="D")
    return te.func(a, b, d, name="layer")


def layer_under_other_names() -> PrimFunc:
    a = te.placeholder((5, 7), "float32", name="weights_like")
    b = te.placeholder((7, 3), "float32", name="C", constant=True)
    red = te.reduce_axis(7, name="red")
    c = te.compute((5, 3), lambda row, col: te.sum(a[row, red] * b[red, col], axis=red), name="A")
    d = te.compute((5, 3), lambda x, y: te.maximum(c[x, y], 0.0), name="in_")
    return te.func(a, b, d, name="another_name")


def test_the_canonical_print_numbers_every_name_by_first_use() -> None:
    assert canonical_print(layer()) == CANONICAL


def test_the_workload_key_is_pinned() -> None:
    assert workload_key(layer()) == LAYER_KEY
    assert workload_key(parse(STAGED)) == STAGED_KEY


LAYER_KEY = "ffe3253f8646d8b9f948d1c59d01cfe487b4da469fd7e2d0c65d81cb92590027"
STAGED_KEY = "9d231fef4538a94f14a77f5b36358dca25c775cf4607b5a94622aac67eae38eb"


def test_the_workload_key_does_not_see_names() -> None:
    other = layer_under_other_names()
    assert str(other) != str(layer())
    assert workload_key(other) == LAYER_KEY
    renamed = STAGED
    for old, new in (("R", "zz"), ("staged", "g"), ("v", "w"), ("i", "outer")):
        renamed = re.sub(rf"\b{old}\b", new, renamed)
    assert workload_key(parse(renamed)) == STAGED_KEY


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[8]", "[16]"),
        ("float32", "float64"),
        ("A: float32[8]", "A: constant(float32[8])"),
        ("exp", "tanh"),
        ("parallel(2)", "range(2)"),
        (', tail="mask"', ""),
        ('"thread"', '"register"'),
        (', copy="A"', ""),
    ],
)
def test_the_workload_key_sees_everything_else(old: str, new: str) -> None:
    assert workload_key(parse(STAGED.replace(old, new))) != STAGED_KEY


def test_the_workload_key_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "from tilewright.tir.text.canonical import workload_key\n"
        "from tilewright.tir.parsing.parser import parse\n"
        f"print(workload_key(parse({STAGED!r})))"
    )
    keys = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        keys.add(done.stdout.strip())
    assert keys == {STAGED_KEY}


def test_the_canonical_function_is_the_same_program_and_its_own_canonical_form() -> None:
    for func in (layer(), parse(STAGED)):
        numbered = canonical(func)
        assert equal(func, numbered)
        assert canonical_print(numbered) == str(numbered)
        assert equal(parse(canonical_print(func)), func)
