"""codegen/cuda: CUDA C as text, that NVRTC compiles and the emulation runs; what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.cuda.build import write_cuda
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.codegen.lower.split_prepare import Prepared
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.kernel import Kernel
from tilewright.schedule.library import deal_out
from tilewright.schedule.schedule import Schedule
from tilewright.tir.errors import TargetError
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.visit import replace_buffers

from ...schedule.grids import Steps, flat, rows_shared, tiled
from ...schedule.programs import blur, chain, matmul, matmul_relu

A100 = Target.parse("cuda:sm_80")


def built(func: PrimFunc, steps: Steps, **constants: object) -> Kernel:
    return tw.build(Schedule(func, A100).apply(steps), A100, constants=constants)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)


def both(*steps: Steps) -> Steps:
    def one_after_the_other(sch: Schedule) -> None:
        for step in steps:
            step(sch)

    return one_after_the_other


def softmax(rows: int, columns: int) -> PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    k, n = te.reduce_axis(columns, name="k"), te.reduce_axis(columns, name="n")
    top = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="M")
    e = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - top[i]), name="E")
    total = te.compute((rows,), lambda i: te.sum(e[i, n], axis=n), name="S")
    y = te.compute((rows, columns), lambda i, j: e[i, j] / total[i], name="Y")
    return te.func(x, y, name="softmax")


def partial_sums(rows: int, columns: int, threads: int) -> tuple[PrimFunc, Steps]:
    """Sums of rows: a block for each, in which each thread adds up a part, and the first all
    parts.
    """
    x = te.placeholder((rows, columns), "float32", name="X")
    k = te.reduce_axis(columns, name="k")
    s = te.compute((rows,), lambda i: te.sum(x[i, k], axis=k), name="S")

    def steps(sch: Schedule) -> None:
        _, inside = sch.split(sch.loops("S")[1], (None, threads))
        made = sch.rfactor("S", inside)
        row = sch.loops("S")[0]
        sch.compute_at(made, row)
        sch.bind(row, "blockIdx.x")
        lane = next(x for x in sch.loops(made) if sch.extent(x) == threads)
        sch.reorder(lane, *[x for x in sch.loops(made)[1:] if x != lane])
        sch.bind(lane, "threadIdx.x")
        sch.set_scope(made, "shared")

    return te.func(x, s, name="sums"), steps


def test_a_tiled_product_reads_as_a_person_would_have_written_it(
    golden: Callable[[str, str], None],
) -> None:
    golden("cuda/matmul.cu", built(matmul(13, 9, 7), tiled()).source)


def test_rows_that_threads_share(golden: Callable[[str, str], None]) -> None:
    golden("cuda/blur.cu", built(blur(3, 10), rows_shared("R", "Y")).source)


def test_sums_of_parts(golden: Callable[[str, str], None]) -> None:
    golden("cuda/sums.cu", built(*partial_sums(3, 20, 4)).source)


PROGRAMS: dict[str, tuple[PrimFunc, Steps, Callable[..., np.ndarray], tuple[np.ndarray, ...]]] = {
    "matmul": (
        matmul(13, 9, 7),
        tiled(),
        lambda a, b: a @ b,
        (numbers(13, 7), numbers(7, 9)),
    ),
    "blur": (
        blur(3, 10),
        rows_shared("R", "Y"),
        lambda x: x[:-1, :-1] + x[:-1, 1:] + x[1:, :-1] + x[1:, 1:],
        (numbers(4, 11),),
    ),
    "chain": (
        chain(5, 7),
        both(flat("P"), flat("Q"), flat("Y")),
        lambda x, b: np.maximum(2 * x + b, 0) * x,
        (numbers(5, 7), numbers(7)),
    ),
    "matmul_relu": (
        matmul_relu(9, 6, 5),
        both(tiled(), flat("Y", 8)),
        lambda a, b, c: np.maximum(a @ b + c, 0),
        (numbers(9, 5), numbers(5, 6), numbers(6)),
    ),
    "sums": (
        *partial_sums(3, 20, 4),
        lambda x: x.sum(axis=1),
        (numbers(3, 20),),
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.needs_cxx
@pytest.mark.parametrize("name", PROGRAMS)
def test_emulated_kernels_compute_and_nothing_is_wrong_with_them(name: str) -> None:
    func, steps, expected, arrays = PROGRAMS[name]
    kernel = built(func, steps)
    assert str(kernel.proof).startswith("proved")
    emulated = tw.emulated(kernel, checked=True)
    assert np.array_equal(emulated(*arrays), expected(*arrays))
    report = emulated.code.report
    assert {site.space for site in report.sites} <= {"global", "shared"}
    assert all(str(seen) in report.table for seen in (*report.sites, *report.barriers))
    assert len(report.barriers) == kernel.source.count("__syncthreads();")


@pytest.mark.needs_cxx
def test_elementary_functions_are_those_of_every_target() -> None:
    func = softmax(3, 11)
    steps = both(*(flat(block, 4) for block in ("E", "Y")))
    x = np.random.default_rng(0).standard_normal((3, 11), dtype=np.float32)
    result = tw.emulated(built(func, steps), checked=True)(x)
    assert np.allclose(result, tw.build(func, "c:scalar")(x), rtol=1e-6, atol=0)


@pytest.mark.needs_cxx
def test_a_maximum_with_a_number_keeps_nan() -> None:
    x = te.placeholder((4,), "float32", name="X")
    func = te.func(x, te.compute((4,), lambda i: te.maximum(x[i], 0.0), name="Y"), name="relu")
    given = np.array([np.nan, -1.0, 2.0, -np.inf], np.float32)
    result = tw.emulated(tw.build(func, A100))(given)
    assert np.array_equal(result, np.array([np.nan, 0.0, 2.0, 0.0], np.float32), equal_nan=True)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.needs_cxx
def test_halves_are_converted_by_instructions_of_the_device(kind: str) -> None:
    a = te.placeholder((5, 33), kind, name="A")
    wide = te.compute((5, 33), lambda i, j: te.cast(a[i, j], "float32") * 1.25, name="W")
    b = te.compute((5, 33), lambda i, j: te.cast(wide[i, j], kind), name="B")
    func = te.func(a, b, name="scale")
    kernel = tw.build(func, A100)
    stored = "half" if kind == "float16" else "bfloat16"
    text = f"B[tx] = tw_{stored}_from_float(tw_float_from_{stored}(A[tx]) * 1.25f);"
    assert text in kernel.source
    assert kernel.source.count("asm(") == (2 if kind == "float16" else 1)
    given = numbers(5, 33).astype(a.type.numpy)
    expected = tw.build(func)(given)
    np.testing.assert_array_equal(tw.emulated(kernel, checked=True)(given), expected)


@pytest.mark.needs_cxx
def test_integers_are_divided_as_everywhere() -> None:
    x, y = (te.placeholder((6,), "int32", name=name) for name in "XY")
    quotient = te.compute((6,), lambda i: x[i] // y[i], name="Q")
    rest = te.compute((6,), lambda i: x[i] % y[i], name="R")
    kernel = tw.build(te.func(x, y, quotient, rest, name="divide"), A100)
    a = np.array([7, -7, 7, -7, 0, -8], np.int32)
    b = np.array([2, 2, -2, -2, 3, 4], np.int32)
    found = tw.emulated(kernel, checked=True)(a, b)
    assert np.array_equal(found[0], a // b)
    assert np.array_equal(found[1], a % b)


@pytest.mark.needs_cxx
def test_constants_are_prepared_once_on_the_device() -> None:
    def steps(sch: Schedule) -> None:
        sch.pack("B", 4)
        deal_out(sch, "C", 8)

    a, b = numbers(5, 7), numbers(7, 9)
    kernel = built(matmul(5, 9, 7, constant=True), steps, B=b)
    assert np.array_equal(tw.emulated(kernel, checked=True)(a), a @ b)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_nvrtc_compiles_them(name: str, arch: str) -> None:
    func, steps, _, _ = PROGRAMS[name]
    assert compile_cuda(built(func, steps).source, arch, name=name).image.startswith(b"\x7fELF")


# -- refusals --------------------------------------------------------------------------------------


def message(func: PrimFunc, steps: Steps, target: str = "cuda:sm_80") -> str:
    sch = Schedule(func).apply(steps)
    with pytest.raises(TargetError) as refusal:
        tw.build(sch, target)
    return str(refusal.value)


def test_what_a_grid_cannot_run_is_refused() -> None:
    assert message(chain(3, 4), lambda sch: sch.parallel(sch.loops("Y")[0])) == (
        "TargetError: cuda: loop 'i' of 'chain' is parallel; expected loops that are bound to a "
        "grid. [cuda-parallel]\n"
        "  Hint: sch.bind(loop, 'blockIdx.x') and sch.bind(loop, 'threadIdx.x')."
    )
    assert message(chain(3, 4), flat("Y"), "c:scalar") == (
        "TargetError: c: loop 'i_j_0' of 'chain' is bound to blockIdx.x; expected a schedule for a "
        "CPU, which has no grid. [c-grid]\n"
        "  Hint: tw.build(..., target='cuda:sm_90a'), or sch.parallel(loop)."
    )


def test_the_limits_of_a_block_are_refused_with_the_numbers() -> None:
    wide = chain(64, 64)

    def threads(sch: Schedule) -> None:
        i, j = sch.loops("Y")
        sch.bind(i, "threadIdx.y")
        sch.bind(j, "threadIdx.x")

    assert message(wide, threads) == (
        "TargetError: cuda: a block of 'chain' has 4096 threads; expected at most 1024 on sm_80. "
        "[cuda-threads]\n"
        "  Hint: split the loops that are bound to threads."
    )
    assert message(blur(3, 30000), rows_shared("R", "Y")) == (
        "TargetError: cuda: a block of 'blur' needs 240000 bytes of shared memory ('R' 240000); "
        "expected at most 166912 on sm_80. [cuda-shared]\n"
        "  Hint: smaller tiles, or a loop further in for what is shared."
    )


def test_shared_memory_beyond_the_static_limit_is_dynamic() -> None:
    kernel = built(blur(2, 8000), rows_shared("R", "Y", 256))
    assert "extern __shared__ __align__(16) unsigned char shared[];" in kernel.source
    assert [launch.shared_bytes for launch in kernel.artifact.run.launches] == [64000]


def test_memory_of_a_block_that_is_not_on_the_chip_is_refused() -> None:
    def steps(sch: Schedule) -> None:
        row = sch.loops("Y")[0]
        sch.bind(row, "blockIdx.x")
        sch.compute_at("R", row)

    assert message(blur(3, 4), steps) == (
        "TargetError: cuda: 'R' of 'blur' is memory of its own in each block; expected scope "
        "'shared' or 'register' below loops of blocks. [cuda-scope]\n"
        "  Hint: sch.set_scope('R', 'shared')."
    )


def test_what_several_kernels_share_is_global_memory() -> None:
    def steps(sch: Schedule) -> None:
        flat("P")(sch)
        sch.add_unit_loop("Y")

    nest = Schedule(chain(3, 4)).apply(steps).func
    shared = next(buffer for buffer in nest.allocations if buffer.name == "P")
    moved = nest.with_body(replace_buffers(nest.body, {shared: replace(shared, scope="shared")}))
    parts = Prepared(None, lower(lower_to_nest(moved), A100))
    with pytest.raises(TargetError) as refusal:
        write_cuda(parts, A100)
    assert str(refusal.value) == (
        "TargetError: cuda: 'P' of 'chain', in scope 'shared', is shared by several kernels; "
        "expected 'global' outside of loops of blocks. [cuda-root-scope]\n"
        "  Hint: bind the loop around all that touches it to blocks."
    )


def test_arrays_whose_indices_need_64_bits_are_refused() -> None:
    x = te.placeholder((1 << 16, 1 << 16), "int8", name="X")
    y = te.compute((4,), lambda i: x[i, 0], name="Y")
    assert message(te.func(x, y, name="far"), flat("Y")) == (
        "TargetError: cuda: 'X' has 4294967296 elements; expected at most 2147483647: indices are "
        "of 32 bits. [cuda-elements]"
    )


def test_functions_of_c_are_refused() -> None:
    x = te.placeholder((4,), "float32", name="X")
    text = "void twice(const float *x, float *y) { for (int i = 0; i < 4; i++) y[i] = 2 * x[i]; }"
    y = te.extern(
        (4,), "float32", x, source=text, symbol="twice", reference=lambda a: a * 2, name="Y"
    )
    assert message(te.func(x, y, name="call"), lambda sch: None) == (
        "TargetError: cuda: 'call' calls the C function 'twice'; expected tensor expressions "
        "alone. [cuda-extern]\n"
        "  Hint: build it for a CPU, target='c'."
    )


def test_a_kernel_of_the_cpu_is_not_emulated() -> None:
    with pytest.raises(TargetError) as refusal:
        tw.emulated(tw.build(chain(3, 4), "python"))
    assert str(refusal.value) == (
        "TargetError: emulated: 'chain' is built for python; expected a kernel for a GPU. "
        "[emulated-target]\n"
        "  Hint: tw.build(what, 'cuda:sm_90a') builds one."
    )


@pytest.mark.usefixtures("nvrtc")
def test_words_of_cpp_are_no_names() -> None:
    given = te.placeholder((8,), "float32", name="and")
    other = te.placeholder((8,), "float32", name="new")
    made = te.compute((8,), lambda i: given[i] + other[i], name="this")
    kernel = tw.build(te.func(given, other, made, name="class"), A100)
    assert "*__restrict__ and_1, const float *__restrict__ new_1" in kernel.source
    assert "this_1[" in kernel.source
