"""codegen/text/ties.py: which loops and blocks of a nest each line of a source comes from."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tilewright import te
from tilewright.codegen.c.build import write_artifact
from tilewright.codegen.cuda.build import write_cuda
from tilewright.codegen.lower.lower import contraction, lower_parts, lower_to_nest
from tilewright.codegen.text.marked import MarkedText
from tilewright.codegen.text.ties import Places, ties
from tilewright.driver.lower import choose_schedule
from tilewright.schedule.schedule import Schedule
from tilewright.tir.expr import Expr
from tilewright.tir.func import PrimFunc
from tilewright.tir.stmt import Store
from tilewright.tir.target.target import Target
from tilewright.tir.text.nest import LoopPlace, Place, places

from ...driver.golden_kernels import GOLDEN
from ...driver.kernels import KERNELS
from ...schedule.grids import products_of_warps

pytestmark = pytest.mark.sampled(5)

AVX2 = Target.parse("c:avx2")
H100 = Target.parse("cuda:sm_90a")

# by rule and by hand: vectors, unrolled loops, threads, stages in registers, packed constants, sums
# in parts, tails of all kinds, tensors that share memory, calls, scans
ON_CPU = (
    *("rule_matmul", "rule_convolution", "rule_softmax", "rule_winograd", "rule_attention"),
    *("tracer", "tails_and_threads", "four_lanes", "rolling_buffer", "rows_apart", "extern"),
    *("scan", "dots_of_bytes", "layer_norm", "extremes", "argmax_in_parts", "several_outputs"),
    "gathered_in_a_sum",
)
ON_GPU = ("matmul", "convolution", "softmax", "winograd", "attention", "norm", "elementwise")


class Tied:
    """A scheduled function, its source, and the ties between them."""

    def __init__(self, what: PrimFunc | Schedule, target: Target) -> None:
        self.nest = choose_schedule(what, target)[0].func
        nest = lower_to_nest(contraction(self.nest, target))
        write = write_cuda if target.has_grid else write_artifact
        source = write(lower_parts(nest, target), target).source
        assert isinstance(source, MarkedText)
        self.marks = source.marks
        self.lines = source.split("\n")
        self.ties: tuple[Places, ...] = ties(self.nest, self.marks)
        self.places = places(str(self.nest), self.nest.body)

    def lines_of(self, place: Place) -> list[str]:
        """The lines of the source that are tied to a place, which is known by its lines."""
        found = zip(self.lines, self.ties, strict=True)
        return [line for line, tied in found if place.lines in {other.lines for other in tied}]

    def text_of(self, place: Place) -> str:
        """The text of a place in the nest."""
        lines = str(self.nest).splitlines()
        return "\n".join(lines[place.lines.start : place.lines.stop])

    def shown(self) -> list[str]:
        """For each line of the nest that heads a loop or a block, that and the lines of the source
        that are tied to it, in short: what stands in front of a call, an index or a value.
        """
        nest = str(self.nest).splitlines()
        shown = []
        for place in self.places:
            lines = [re.sub(r"\s*[;(\[=].*", "", line.strip()) for line in self.lines_of(place)]
            head = re.sub(r"[,)].*", "", nest[place.lines.start].strip())
            shown.append(f"{head}  <-  {', '.join(lines)}")
        return shown


def centred() -> Schedule:
    """Rows less their sums: a tensor that shares memory with another, vectors, copies, threads."""
    X = te.placeholder((6, 16), "float32", name="X")
    D = te.compute((6, 16), lambda i, j: X[i, j] * 2.0, name="D")
    k = te.reduce_axis(16, name="k")
    S = te.compute((6,), lambda i: te.sum(D[i, k], k), name="S")
    Y = te.compute((6, 16), lambda r, c: D[r, c] - S[r], name="Y")
    sch = Schedule(te.func(X, Y, name="centred"))
    sch.vectorize(sch.split(sch.loops("D")[1], (None, 8))[1])
    row, column = sch.loops("Y")
    sch.parallel(row)
    copies, lane = sch.split(column, (None, 8))
    sch.unroll(copies)
    sch.vectorize(lane)
    return sch


def tiled() -> Schedule:
    """A product whose tile is kept in registers."""
    A = te.placeholder((8, 4), "float32", name="A")
    B = te.placeholder((4, 8), "float32", name="B")
    k = te.reduce_axis(4, name="k")
    C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], k), name="C")
    sch = Schedule(te.func(A, B, C, name="tiled"))
    i, j, k_ = sch.loops("C")
    i_0, i_1 = sch.split(i, (None, 2))
    sch.reorder(i_0, k_, i_1, j)
    sch.unroll(i_1)
    sch.vectorize(j)
    sch.stage("C", "C", i_0, scope="register")
    return sch


def of_warps() -> Schedule:
    """A product by tensor cores."""
    a = te.placeholder((16, 64), "float16", name="A")
    b = te.placeholder((64, 16), "float16", name="B")
    k = te.reduce_axis(64, name="k")

    def term(i: Expr, j: Expr) -> Expr:
        return te.cast(a[i, k], "float32") * te.cast(b[k, j], "float32")

    c = te.compute((16, 16), lambda i, j: te.sum(term(i, j), axis=k), name="C")
    steps = products_of_warps("mma_m16n8k16_f16", 16, warps=(1, 1), tiles=(1, 2), transposed=False)
    return Schedule(te.func(a, b, c, name="product"), H100).apply(steps)


def test_loops_threads_vectors_and_copies_are_tied_to_their_lines() -> None:
    assert Tied(centred(), AVX2).shown() == [
        "for i in range(6  <-  for, }",
        "for j_0 in range(2  <-  for, }",
        "for j_1 in vectorized(8  <-  _mm256_storeu_ps",
        'with block("D"  <-  _mm256_storeu_ps',
        "for i in range(6  <-  for, }",
        "for k in range(16  <-  for, }",
        'with block("S"  <-  float *const S, S, S',
        "for r in parallel(6  <-  const int64_t r_end, for, }",
        "for c_0 in unrolled(2  <-  _mm256_storeu_ps, _mm256_storeu_ps",
        "for c_1 in vectorized(8  <-  _mm256_storeu_ps, _mm256_storeu_ps",
        'with block("Y"  <-  const __m256 S_1, _mm256_storeu_ps, _mm256_storeu_ps',
    ]


def test_a_tensor_in_the_memory_of_another_is_tied_to_its_own_block() -> None:
    tied = Tied(centred(), AVX2)
    (doubled,) = (line for line in tied.lines if "2.0f" in line)
    assert doubled.strip().startswith("_mm256_storeu_ps(&Y[")
    (block,) = (place for place in tied.places if "D[vi, vj] = " in tied.text_of(place))
    assert tied.lines_of(block) == [doubled]


def test_registers_are_tied_to_the_block_that_computes_them_and_to_the_one_that_stores_them() -> (
    None
):
    assert Tied(tiled(), AVX2).shown() == [
        "for i_0 in range(4  <-  for, __m256 C_reg_0, }",
        "for k in range(4  <-  for, }",
        "for i_1 in unrolled(2  <-  C_reg_0, C_reg_1, C_reg_0, C_reg_1",
        "for j in vectorized(8  <-  C_reg_0, C_reg_1, C_reg_0, C_reg_1",
        'with block("C"  <-  C_reg_0, C_reg_1, const __m256 B_1, C_reg_0, C_reg_1',
        "for i_1 in unrolled(2  <-  _mm256_storeu_ps, _mm256_storeu_ps",
        "for j in vectorized(8  <-  _mm256_storeu_ps, _mm256_storeu_ps",
        'with block("C_reg_out"  <-  _mm256_storeu_ps, _mm256_storeu_ps',
    ]


@cache
def tied(name: str, target: Target) -> Tied:
    if name == "warps":
        return Tied(of_warps(), target)
    if target.has_grid:
        return Tied(KERNELS[name](), target)
    golden = GOLDEN[name]
    func = golden.make()
    return Tied(func if golden.steps is None else Schedule(func).apply(golden.steps), target)


def on_cpu(name: str) -> Target:
    """The target of a golden kernel: AVX2, unless it needs more."""
    return GOLDEN[name].target("avx512") if GOLDEN[name].feature else AVX2


EVERY = [
    *(pytest.param(name, on_cpu(name), id=name) for name in ON_CPU),
    pytest.param("warps", H100, id="warps-gpu"),
    *(pytest.param(name, H100, id=f"{name}-gpu") for name in ON_GPU),
]


@pytest.mark.parametrize(("name", "target"), EVERY)
def test_every_loop_and_block_has_lines(name: str, target: Target) -> None:
    found = tied(name, target)
    nest = str(found.nest).splitlines()
    assert [nest[p.lines.start].strip() for p in found.places if not found.lines_of(p)] == []


@pytest.mark.parametrize(("name", "target"), EVERY)
def test_a_line_that_stores_is_tied_to_the_block_that_reads_what_it_reads(
    name: str, target: Target
) -> None:
    """Names of tensors that only one block reads lead from its text to its lines, whatever the
    statement says of its block.
    """
    found = tied(name, target)
    blocks = [place for place in found.places if not isinstance(place, LoopPlace)]
    for parameter in found.nest.parameters:
        if parameter.role == "output":
            continue
        word = re.compile(rf"\b{parameter.name}\[")
        readers = {place.lines for place in blocks if word.search(found.text_of(place))}
        for line, mark, ties_ in zip(found.lines, found.marks, found.ties, strict=True):
            if mark is not None and isinstance(mark.stmt, Store) and word.search(line):
                assert readers & {place.lines for place in ties_}, line


@pytest.mark.parametrize(("name", "target"), EVERY)
def test_the_head_of_a_loop_is_tied_to_loops_of_its_name(name: str, target: Target) -> None:
    """But for loops that lowering adds, which are tied to the block that they are for."""
    found = tied(name, target)
    nest = str(found.nest).splitlines()
    for line, ties_ in zip(found.lines, found.ties, strict=True):
        head = re.match(r" *for \(\w+ (?:v_)?(\w+) =", line)
        for place in ties_ if head else ():
            loop = re.match(r" *for _?(\w+) in ", nest[place.lines.start])
            name_of_loop = "" if loop is None else re.sub(r"_\d+$", "", loop[1])
            assert head is not None
            assert head[1].startswith(name_of_loop), line


def test_an_instruction_of_a_warp_is_tied_to_its_block() -> None:
    found = tied("warps", H100)
    lines = list(zip(found.lines, found.ties, strict=True))
    calls = [ties_ for line, ties_ in lines if line.startswith("        tw_mma_")]
    assert calls
    for ties_ in calls:
        assert any("with init():" in found.text_of(place) for place in ties_)


def test_both_sides_of_a_condition_belong_to_it() -> None:
    found = tied("rule_matmul", AVX2)
    lines = list(zip(found.lines, found.ties, strict=True))
    (other,) = dict.fromkeys(ties_ for line, ties_ in lines if "} else {" in line)
    assert other
    assert other in [ties_ for line, ties_ in lines if " if (" in line]


def test_barriers_prefetches_and_what_stands_around_the_body_are_tied_to_nothing() -> None:
    found = Tied(centred(), AVX2)
    free = [line for line, tied in zip(found.lines, found.ties, strict=True) if not tied]
    assert "    team->barrier(team->state, thread);" in free
    assert "#include <immintrin.h>" in free
