"""schedule/rules/products/dots.py: which contractions go to an instruction, what the rule makes of
edges, and that it is right.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.lower.lower import lower_to_nest
from tilewright.graph.ops.convolution import IntegerConv
from tilewright.graph.ops.matmul import IntegerMatMul
from tilewright.runtime.machine.host import host
from tilewright.schedule.canonical import canonical_form
from tilewright.schedule.estimate import estimate
from tilewright.schedule.proof.prove import prove
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.schedule.trace.decisions import Random
from tilewright.tir.dtype import INT32
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target, covers
from tilewright.tir.te import te

from ...programs import assert_meaning_kept, assert_replays

pytestmark = pytest.mark.sampled(5)

VNNI = Target.parse("c:avx512+vnni")
BF16 = Target.parse("c:avx512+bf16")
AVX2 = Target.parse("c:avx2")
AVX_VNNI = Target.parse("c:avx2+vnni")
USDOT, DOTPROD = Target.parse("c:neon+i8mm"), Target.parse("c:neon+dotprod")
WORDS = ("int16", "int16", "int32")
SIGNED, UNSIGNED = ("int8", "int8", "int32"), ("uint8", "uint8", "int32")
BYTES, HALVES = ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")
ALLOWED = ("vdpbf16ps",)


def product(
    m: int,
    n: int,
    k: int,
    types: tuple[str, str, str] = BYTES,
    *,
    constant: bool = True,
    turned: bool = False,
) -> PrimFunc:
    """C[i, j] = the sum of A[i, k] * B[k, j]; turned: of A[k, i]."""
    left, right, total = types
    a = te.placeholder((k, m) if turned else (m, k), left, name="A")
    b = te.placeholder((k, n), right, name="B", constant=constant)
    q = te.reduce_axis(k, name="k")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        row = a[q, i] if turned else a[i, q]
        return te.sum(te.cast(row, total) * te.cast(b[q, j], total), axis=q)

    return te.func(a, b, te.compute((m, n), element, name="C"), name="product")


def convolution(size: int, channels: int, count: int, taps: int, step: int = 1) -> PrimFunc:
    """Of bytes in rows of channels, the border of zeros a stage of its own."""
    x = te.placeholder((1, size, size, channels), "uint8", name="X")
    w = te.placeholder((taps, taps, channels, count), "int8", name="W", constant=True)
    pad, wide = taps // 2, size + taps // 2 * 2
    r, s, c = (te.reduce_axis(e, name=n) for e, n in ((taps, "r"), (taps, "s"), (channels, "c")))
    source = x
    if pad:

        def padded(n: te.Expr, i: te.Expr, j: te.Expr, q: te.Expr) -> te.Expr:
            inside = te.all_of(i >= pad, i < size + pad, j >= pad, j < size + pad)
            return te.select(inside, x[n, i - pad, j - pad, q], te.const(0, "uint8"))

        source = te.compute((1, wide, wide, channels), padded, name="P")

    def element(n: te.Expr, i: te.Expr, j: te.Expr, o: te.Expr) -> te.Expr:
        data = te.cast(source[n, i * step + r, j * step + s, c], "int32")
        return te.sum(data * te.cast(w[r, s, c, o], "int32"), axis=(r, s, c))

    shape = (1, (wide - taps) // step + 1, (wide - taps) // step + 1, count)
    return te.func(x, w, te.compute(shape, element, name="Y"), name="convolution")


def grouped(
    groups: int, channels: int, count: int, kinds: tuple[str, str, str] = BYTES
) -> PrimFunc:
    """A convolution of 3x2 windows; channels and count: of a group."""
    left, right, _ = kinds
    x = te.placeholder((1, 5, 6, groups * channels), left, name="X")
    w = te.placeholder((3, 2, channels, groups * count), right, name="W", constant=True)
    op = IntegerConv(pads=(1, 0, 1, 0), groups=groups, layout="NHWC", zero=3)
    return te.func(x, w, *op.express(x, w, name="Y"), name="grouped")


def words(m: int, n: int, k: int, kind: str = "int8", heads: int = 1) -> PrimFunc:
    """C[h, i, j] = the sum of A[h, i, k] * B[h, k, j], where words of B are made first."""
    a = te.placeholder((heads, m, k), kind, name="A")
    b = te.placeholder((heads, k, n), "uint8", name="B")
    (c,) = IntegerMatMul(in_words=True).express(a, b, name="C")
    return te.func(a, b, c, name="words")


EDGES = {
    "whole vectors and steps": (product(9, 64, 16), VNNI),
    "a column too many": (product(5, 33, 8), VNNI),
    "few columns": (product(3, 5, 12), VNNI),
    "one point too many": (product(4, 16, 13), VNNI),
    "fewer points than a step has": (product(3, 17, 3), VNNI),
    "nothing but one": (product(1, 1, 1), VNNI),
    "a long sum in chunks with an end": (product(7, 40, 299), VNNI),
    "signed data and unsigned weights": (product(5, 20, 9, ("int8", "uint8", "int32")), VNNI),
    "weights of each call": (product(33, 20, 9, constant=False), VNNI),
    "a 1x1 convolution": (convolution(5, 8, 20, 1), VNNI),
    "a 3x3 convolution of odd channels": (convolution(6, 7, 20, 3), VNNI),
    "a 3x3 convolution of stride 2": (convolution(7, 4, 16, 3, 2), VNNI),
    "pairs of integers": (product(5, 33, 10, WORDS), VNNI),
    "half a pair of integers": (product(5, 18, 11, WORDS), VNNI),
    "pairs of integers on AVX2": (product(5, 33, 10, WORDS), AVX2),
    "half a pair of integers on AVX2": (product(7, 18, 11, WORDS), AVX2),
    "weights of each call on AVX2": (product(33, 20, 9, WORDS, constant=False), AVX2),
    "whole vectors on AVX-VNNI": (product(9, 64, 16), AVX_VNNI),
    "a column and a point too many on AVX-VNNI": (product(5, 17, 13), AVX_VNNI),
    "few columns on AVX-VNNI": (product(3, 5, 12), AVX_VNNI),
    "a 3x3 convolution on AVX-VNNI": (convolution(6, 7, 20, 3), AVX_VNNI),
    "half a pair of integers on AVX-VNNI": (product(7, 18, 11, WORDS), AVX_VNNI),
    "whole vectors on NEON": (product(9, 64, 16), USDOT),
    "a column and a point too many on NEON": (product(5, 17, 13), USDOT),
    "an odd row on NEON": (product(5, 17, 24), USDOT),
    "two rows on NEON": (product(2, 8, 8), USDOT),
    "one row on NEON": (product(1, 8, 16), USDOT),
    "unsigned weights on NEON": (product(4, 8, 16, ("int8", "uint8", "int32")), USDOT),
    "a long sum on NEON": (product(7, 20, 1080), USDOT),
    "weights of each call on NEON": (product(33, 20, 16, constant=False), USDOT),
    "a 1x1 convolution on NEON": (convolution(5, 8, 20, 1), USDOT),
    "a 3x3 convolution of whole groups on NEON": (convolution(6, 8, 20, 3), USDOT),
    "a 3x3 convolution of stride 2 on NEON": (convolution(7, 8, 16, 3, 2), USDOT),
    "pairs of rows of signed bytes": (product(5, 18, 16, SIGNED), USDOT),
    "pairs of rows of unsigned bytes": (product(6, 18, 16, UNSIGNED), USDOT),
    "nothing but one on NEON": (product(1, 1, 1), USDOT),
    "a 3x3 convolution on NEON": (convolution(6, 7, 20, 3), USDOT),
    "signed bytes on NEON": (product(5, 18, 13, SIGNED), DOTPROD),
    "unsigned bytes on NEON": (product(5, 18, 13, UNSIGNED), DOTPROD),
    "words of each call": (words(5, 33, 12, heads=3), VNNI),
    "words that are no whole ones": (words(2, 17, 14), VNNI),
    "words of each call on AVX2": (words(5, 19, 12, "int16", heads=2), AVX2),
    "half a word on AVX2": (words(3, 8, 7, "int16"), AVX2),
    "words of each call on AVX-VNNI": (words(5, 19, 13), AVX_VNNI),
    "words of each call on NEON": (words(5, 9, 13), USDOT),
    "words and data without signs on NEON": (words(5, 9, 13, "uint8", heads=2), DOTPROD),
    "groups of whole vectors": (grouped(2, 8, 32), VNNI),
    "groups of a vector and half of one": (grouped(2, 8, 24), VNNI),
    "groups of a vector and a quarter of one": (grouped(2, 4, 20), VNNI),
    "groups of a quarter of a vector": (grouped(3, 4, 4), VNNI),
    "groups of odd channels": (grouped(2, 7, 16), VNNI),
    "groups of three channels": (grouped(2, 3, 16), VNNI),
    "groups of pairs of integers": (grouped(2, 6, 24, WORDS), VNNI),
    "groups on AVX2": (grouped(2, 6, 16, WORDS), AVX2),
    "groups of a vector and half of one on AVX2": (grouped(3, 5, 12, WORDS), AVX2),
    "groups of half a vector on AVX2": (grouped(3, 2, 4, WORDS), AVX2),
    "groups on AVX-VNNI": (grouped(2, 8, 24), AVX_VNNI),
    "groups of a vector and half of one on AVX-VNNI": (grouped(3, 7, 12), AVX_VNNI),
    "groups on NEON": (grouped(2, 8, 12), USDOT),
    "groups of odd channels on NEON": (grouped(3, 5, 8), USDOT),
    "groups of signed bytes on NEON": (grouped(3, 8, 4, SIGNED), DOTPROD),
    "pairs": (product(5, 33, 10, HALVES), BF16),
    "half a pair": (product(5, 18, 11, HALVES), BF16),
    "a sum of pairs in parts": (product(2, 17, 1100, HALVES), BF16),
}


@pytest.mark.parametrize("name", EDGES)
def test_what_the_rule_makes_is_right(name: str) -> None:
    func, target = EDGES[name]
    sch = default_schedule(func, target, allow=ALLOWED)
    assert "tensorized" in str(sch.func)
    nest = assert_meaning_kept(sch)
    verdict = prove(nest, canonical_form(sch.func))
    assert verdict.status == "proved", str(verdict)
    assert_replays(sch)


@pytest.mark.isa
@pytest.mark.needs_cc
@pytest.mark.parametrize("name", EDGES)
def test_a_kernel_is_that_of_its_definition(name: str) -> None:
    """On data of the whole range, with fences around it; of bytes bit by bit."""
    func, target = EDGES[name]
    if not covers(host().instructions, target.instructions):
        pytest.skip(f"this machine has no {target.instructions}")
    given = {p.name: p.buffer for p in func.parameters if p.role != "output"}
    rng = np.random.default_rng(0)
    arrays = {key: _array(rng, b.type.numpy, b.shape) for key, b in given.items()}
    bound = {p.name: arrays[p.name] for p in func.parameters if p.role == "constant"}
    kernel = tw.build(func, target, constants=bound, allow=ALLOWED)
    result = kernel(*(v for key, v in arrays.items() if key not in bound))
    if target == AVX_VNNI:
        assert "madd_epi16" not in kernel.source
        assert "_mm512" not in kernel.source
    if func.outputs[0].type.is_integer:
        expected = tw.build(func, "python", constants=bound)
        np.testing.assert_array_equal(
            result, expected(*(v for key, v in arrays.items() if key not in bound))
        )
    assert any(unit in kernel.source for unit in ("dpbusd", "dpwssd", "dpbf16", "madd_epi16"))


def _array(rng: np.random.Generator, kind: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return rng.integers(info.min, info.max, shape, kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def test_the_steps_are_those_of_a_contraction_and_an_instruction() -> None:
    sch = default_schedule(product(8, 40, 22), VNNI)
    layout = "lambda i0, i1: (i1 // 48, i0 // 4, i1 % 48, i0 % 4)"
    assert [step for step in sch.steps if "layout" in step or "tensorize" in step] == [
        "B_packed_0, B_packed_1, B_packed_2, B_packed_3 = "
        f'transform_layout("B_packed", index_map="{layout}")',
        'tensorize(j_1_1, intrinsic="vpdpbusd")',
    ]


def test_bytes_are_made_of_the_accumulators_and_sums_of_weights_at_build() -> None:
    """The weights' sums stand in a nest of their own, which is that of `prepare`."""
    a = te.placeholder((7, 22), "uint8", name="A")
    b = te.placeholder((22, 37), "int8", name="B", constant=True)
    p, q = te.reduce_axis(22, name="p"), te.reduce_axis(22, name="q")
    sums = te.compute((37,), lambda j: te.sum(te.cast(b[p, j], "int32"), axis=p), name="sums")
    c = te.compute(
        (7, 37),
        lambda i, j: te.sum(te.cast(a[i, q], "int32") * te.cast(b[q, j], "int32"), axis=q),
        name="C",
    )

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        real = te.cast(sums[j] * -128 + c[i, j], "float32") * 0.25
        return te.cast(te.minimum(te.maximum(te.round(real), 0.0), 255.0), "uint8")

    func = te.func(a, b, te.compute((7, 37), element, name="Y"), name="requantised")
    sch = default_schedule(func, VNNI)
    steps = "\n".join(sch.steps)
    assert 'reverse_compute_at("Y", ' in steps
    assert 'stage("sums", "sums", ' in steps
    assert_meaning_kept(sch)
    assert_replays(sch)


@pytest.mark.parametrize("seed", range(4))
def test_every_tile_that_a_tuner_may_take_is_right(seed: int) -> None:
    sch = default_schedule(product(11, 50, 18), VNNI, Random(seed))
    nest = lower_to_nest(sch.func)
    assert prove(nest, canonical_form(sch.func)).status == "proved"
    assert_replays(sch)


@pytest.mark.parametrize(
    ("func", "target", "allow", "rule"),
    [
        (product(8, 32, 16), VNNI, (), "dots"),
        (product(8, 32, 16), None, (), "dots"),
        (product(8, 32, 16), Target.parse("c:avx512"), (), "reduction"),
        (product(8, 32, 16), Target.parse("c:avx2"), (), "reduction"),
        (product(8, 32, 16), AVX_VNNI, (), "dots"),
        (product(8, 32, 16, HALVES), BF16, ALLOWED, "dots"),
        (product(8, 32, 16, HALVES), BF16, (), "contraction"),
        (product(8, 32, 16, HALVES), VNNI, ALLOWED, "contraction"),
        (product(8, 32, 16, ("int8", "int8", "int32")), VNNI, (), "reduction"),
        (product(8, 32, 16), DOTPROD, (), "reduction"),
        (product(8, 32, 16, SIGNED), DOTPROD, (), "dots"),
        (product(8, 32, 16, UNSIGNED), DOTPROD, (), "dots"),
        (product(8, 32, 16), USDOT, (), "dots"),
        (product(8, 32, 16, SIGNED), USDOT, (), "dots"),
        (product(8, 32, 16, ("uint8", "int8", "int64")), VNNI, (), "reduction"),
        (product(8, 32, 16, constant=False), VNNI, (), "reduction"),
        (words(8, 32, 16), VNNI, (), "dots"),
        (words(8, 32, 16), USDOT, (), "dots"),
        (words(8, 32, 16), DOTPROD, (), "reduction"),
        (words(8, 32, 16, "uint8"), DOTPROD, (), "dots"),
        (words(8, 32, 16), AVX2, (), "reduction"),
        (words(8, 32, 16, "int16"), AVX2, (), "dots"),
        (product(8, 32, 16, turned=True), VNNI, (), "reduction"),
        (grouped(2, 8, 16), VNNI, (), "dots"),
        (grouped(2, 8, 4), VNNI, (), "dots"),
        (grouped(2, 8, 6), VNNI, (), "rows"),
        (grouped(2, 8, 8), USDOT, (), "dots"),
        (grouped(2, 8, 16), AVX2, (), "rows"),
        (grouped(2, 8, 16, WORDS), AVX2, (), "dots"),
    ],
)
def test_only_what_an_instruction_computes_and_a_build_allows_goes_to_it(
    func: PrimFunc, target: Target | None, allow: tuple[str, ...], rule: str
) -> None:
    assert rule_for(func, target, allow=allow).name == rule


def test_groups_have_panels_of_vectors_without_masks() -> None:
    """Those of pairs of integers leave a register for the products before these are added."""
    found = {}
    for target, kinds in ((VNNI, BYTES), (AVX_VNNI, BYTES), (AVX2, WORDS), (USDOT, BYTES)):
        for count in (4, 12, 20, 24, 32):
            text = "\n".join(default_schedule(grouped(2, 8, count, kinds), target).steps)
            (choice,) = re.findall(r"\(([0-9, ]+)\) = sample.* name=\"panel of Y\"", text)
            outer, inner, vectors, width = map(int, choice.split(","))
            lanes = next(n for n in (16, 8, 4) if width % n == 0 and n <= target.lanes(INT32))
            assert f"({lanes}, intrinsic=" in text or f"factors=(None, {lanes})" in text
            assert count % width == 0
            assert vectors * lanes == width
            free = target.vector_registers - outer * inner * vectors - vectors
            assert free >= (1 if target == AVX2 else 0)
            found[str(target), count] = width
    assert found["c:avx512+vnni", 24] == 24
    assert found["c:avx512+vnni", 32] == 32
    assert found["c:avx2", 12] == 12


def test_a_strict_build_takes_instructions_of_integers_alone() -> None:
    assert rule_for(product(8, 32, 16), VNNI, strict=True).name == "dots"
    assert rule_for(product(8, 32, 16), AVX_VNNI, strict=True).name == "dots"
    assert rule_for(product(8, 32, 16, HALVES), BF16, strict=True, allow=ALLOWED).name != "dots"


def test_the_instruction_is_priced() -> None:
    func = product(64, 64, 256)
    assert estimate(func, VNNI) == estimate(default_schedule(func, VNNI), VNNI)
    assert estimate(func, VNNI) < estimate(func, Target.parse("c:avx512")) / 4
    assert estimate(func, AVX_VNNI) == estimate(default_schedule(func, AVX_VNNI), AVX_VNNI)
    larger = (96, 96, 768)
    bytes_ = product(*larger)
    assert 1.7 < estimate(bytes_, AVX_VNNI) / estimate(bytes_, VNNI) < 2.3
    words = product(64, 64, 256, WORDS)
    floats = estimate(product(*larger, ("float32",) * 3), AVX2)
    assert 1.2 < floats / estimate(product(*larger, WORDS), AVX2) < 1.9
    assert estimate(words, AVX_VNNI) < estimate(words, AVX2)
