"""Faults of compiled kernels, each of which one part of the check alone finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.driver.check import check
from tilewright.driver.check.check import CheckError, check_kernel
from tilewright.driver.check.data import PERIOD, Draw, draw_arrays, draws_for, random_array
from tilewright.driver.check.guarded import GuardedProcess, given_arrays
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.tir.dtype import FLOAT32, dtype
from tilewright.tir.number import integer_range

from ..runtime import handwritten
from ..runtime.handwritten import COLUMNS, ROWS

CONSTANTS = {name: np.arange(COLUMNS, dtype=np.float32) for name in "BC"}
ADDITION = "y[i * COLUMNS + j] = a[i * COLUMNS + j] + mine[j];"


def addition() -> tw.PrimFunc:
    a = te.placeholder((ROWS, COLUMNS), "float32", name="A")
    b, c = (te.placeholder((COLUMNS,), "float32", name=n, constant=True) for n in "BC")
    y = te.compute(a.shape, lambda i, j: a[i, j] + (b[j] * 2.0 + c[j]), name="Y")
    return te.func(a, b, c, y, name="sum")


def refused(old: str = "", new: str = "") -> str:
    """What the check says of the hand-written kernel with a part of its C replaced."""
    made = handwritten.artifact()
    assert old in made.source
    made = replace(
        made,
        source=made.source.replace(old, new if "thread)" in old else f"{{ {new} }}")
        if old
        else made.source,
    )
    kernel = Kernel.load(made, compile_shared(made.source, made.target), CONSTANTS)
    with pytest.raises(CheckError) as caught:
        check_kernel(kernel, addition(), CONSTANTS)
    return str(caught.value)


@pytest.fixture
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedProcess, "check", lambda self, entries, arrays, meanwhile: False)


def test_the_kernel_itself_passes() -> None:
    made = handwritten.artifact()
    kernel = Kernel.load(made, compile_shared(made.source, made.target), CONSTANTS)
    assert check_kernel(kernel, addition(), CONSTANTS)


LOOK = "{{ volatile float seen = {}; (void)seen; }} " + ADDITION


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (LOOK.format("a[ROWS * COLUMNS]"), "it reads or writes behind 'A', where it may not"),
        (LOOK.format("a[-1]"), "it reads or writes before 'A', where it may not"),
        (LOOK.format("doubled[COLUMNS + 900]"), "it reads or writes behind 'B_twice', where it ma"),
        (ADDITION + " y[ROWS * COLUMNS] = 0;", "it reads or writes behind 'Y', where it may not"),
        (
            ADDITION + " ((float *)args[4])[(64 + 128 * threads) / 4] = 0;",
            "it reads or writes behind its scratch memory, where it may not",
        ),
        (ADDITION + " if (y[0] > -1e30f) __builtin_trap();", "it ends its process by SIG"),
    ],
)
def test_a_guard_page_finds_what_is_touched_although_no_result_shows_it(
    new: str, said: str
) -> None:
    text = refused(ADDITION, new)
    assert text.startswith("CheckError: check: kernel 'sum': it ")
    assert said in text
    assert text.endswith(" [check-page]")


def test_a_touched_page_is_told_with_the_array() -> None:
    assert refused(ADDITION, LOOK.format("a[-1]")) == (
        "CheckError: check: kernel 'sum': it reads or writes before 'A', where it may not. "
        "[check-page]"
    )


def test_threads_that_share_what_is_one_thread_s_own_are_told_whenever_they_meet() -> None:
    assert refused("64 + 128 * thread)", "64 + 16 * thread)") == (
        "CheckError: check: kernel 'sum': threads 0 and 1 write the same bytes of scratch "
        "memory that is one thread's own. [check-own]"
    )


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("tilewright.driver.check.guarded.sys.executable", ""),
        ("tilewright.driver.check.guarded.MOST", 50),
    ],
)
def test_a_check_says_that_it_ran_without_guard_pages(
    place: str, value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = handwritten.artifact()
    shared = compile_shared(made.source, made.target)
    given = {**CONSTANTS, "A": np.zeros((ROWS, COLUMNS), np.float32)}
    entries = [entry for entry in (made.prepare, made.run) if entry is not None]
    arrays = given_arrays(entries, given)
    assert GuardedProcess(shared).check(entries, arrays)
    monkeypatch.setattr(place, value)
    assert not GuardedProcess(shared).check(entries, arrays)
    assert check.describe([Draw.WIDE], False) == "wide data on 2 threads; without guard pages"


def test_a_check_says_on_how_many_threads_each_kind_of_data_ran(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert check.describe([Draw.NORMAL, Draw.POSITIVE], True) == (
        "normal data on 1, 2 and 3 threads, positive data on 3 threads; with guard pages"
    )
    monkeypatch.setitem(check.THREADS_OF, Draw.NORMAL, (1,))
    assert check.describe([Draw.NORMAL], True) == "normal data on 1 thread; with guard pages"


@pytest.mark.usefixtures("no_pages")
@pytest.mark.parametrize(
    ("new", "said"),
    [
        # a comparison with NaN is false, one with the largest float is not
        (ADDITION[:-1] + " + (a[-1] > 1e30f);", "depends on what lies outside"),
        (ADDITION[:-1] + " + (a[ROWS * COLUMNS + 64] < -1e30f);", "depends on what lies outside"),
        (ADDITION[:-1] + " + (mine[20] > 1e30f);", "on memory that it did not write"),
        (ADDITION[:-1] + " + 0 * a[-1];", "depends on what lies outside"),
        (ADDITION + " y[-500] = 0;", "it wrote outside of 'Y'"),
        (ADDITION + " mine[32 * threads - 32 * thread] = 0;", "wrote outside of its scratch memo"),
        (ADDITION + " ((float *)a)[0] = 0;", "it wrote into 'A', which it may only read"),
        (
            "if (threads < 3 || i < 5) " + ADDITION,
            "its Y[5, 0] has other bits on 3 threads than on 1",
        ),
        ("if (i < 5) " + ADDITION, "it does not write Y[5, 0]"),
        (ADDITION + " if (threads == 2) y[0] += 1e-6f;", "has other bits on 2 threads than on 1"),
    ],
)
def test_a_fence_and_a_change_of_threads_find_what_shows_in_results(new: str, said: str) -> None:
    assert said in refused(ADDITION, new)


@pytest.mark.usefixtures("no_pages")
def test_what_is_said_of_dependence_threads_and_inputs() -> None:
    assert refused(ADDITION, ADDITION[:-1] + " + (a[-1] > 1e30f);") == (
        "CheckError: check: kernel 'sum': its Y[0, 0] depends on what lies outside of its "
        "arrays, or on memory that it did not write. [check-outside]"
    )
    assert refused(ADDITION, "if (i < 5) " + ADDITION) == (
        "CheckError: check: kernel 'sum': it does not write Y[5, 0]. [check-unwritten]"
    )
    assert refused(ADDITION, "if (threads < 3 || i < 5) " + ADDITION) == (
        "CheckError: check: kernel 'sum': its Y[5, 0] has other bits on 3 threads than on 1. "
        "[check-threads]"
    )
    assert refused(ADDITION, ADDITION + " ((float *)a)[0] = 0;") == (
        "CheckError: check: kernel 'sum': it wrote into 'A', which it may only read. [check-input]"
    )


@pytest.mark.parametrize("size", [1, 24, 70])
def test_each_of_the_sizes_of_a_dim_is_checked(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n = te.dim("n", 1, 70)
    x = te.placeholder((n,), "float32", name="X")
    func = te.func(x, te.compute((n,), lambda i: x[i] + 1.0, name="Y"), name="flat")
    kernel = tw.build(func, "c:scalar", verify="off")
    run = Kernel.run

    def wrong(self: Kernel, inputs: list, outputs: list, *, threads: int | None = None) -> None:
        run(self, inputs, outputs, threads=threads)
        if len(outputs[0]) == (47 if size == 24 else size):
            outputs[0][-1] += 1

    monkeypatch.setattr(Kernel, "run", wrong)
    with pytest.raises(CheckError, match="differ from its reference"):
        check_kernel(kernel, func, {})


def test_the_sizes_are_the_ends_the_middle_and_each_end_beside_the_others() -> None:
    n, m = te.dim("n", 1, 10), te.dim("m", 2, 8)
    x, y = te.placeholder((n,), "float32", name="X"), te.placeholder((m,), "float32", name="Y")
    outputs = [te.compute(t.shape, lambda i, t=t: t[i] + 1.0, name=f"{t.name}1") for t in (x, y)]
    sizes = check.sample_sizes(te.func(x, y, *outputs, name="both"))
    found = [tuple(one.values()) for one in sizes]
    assert found == [(10, 8), (1, 2), (7, 6), (1, 8), (10, 2)]


def test_wide_floats_reach_from_a_millionth_to_a_million_with_both_zeros() -> None:
    wide = random_array(np.random.default_rng(0), FLOAT32, (10_000,), Draw.WIDE)
    size = np.abs(wide[wide != 0])
    assert 1e-6 <= size.min() < 2e-6
    assert 5e5 < size.max() <= 1e6
    zeros = wide[wide == 0]
    assert 0 < np.signbit(zeros).sum() < zeros.size
    assert 0.45 < (wide > 0).mean() < 0.55
    half = random_array(np.random.default_rng(0), dtype("float16"), (10_000,), Draw.WIDE)
    assert np.isfinite(half.astype(np.float32) ** 2).all()


def test_positive_floats_have_one_sign_and_normal_ones_both() -> None:
    positive = random_array(np.random.default_rng(0), FLOAT32, (1000,), Draw.POSITIVE)
    normal = random_array(np.random.default_rng(0), FLOAT32, (1000,))
    assert (positive > 0).all()
    assert (normal < 0).any()
    assert (normal > 0).any()


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint64", "int4"])
def test_integers_are_of_the_whole_range_with_both_ends_and_of_small_numbers(name: str) -> None:
    kind = dtype(name)
    low, high = integer_range(kind)
    drawn = random_array(np.random.default_rng(0), kind, (1000,))
    values = [int(value) for value in drawn]
    assert (min(values), max(values)) == (low, high)
    assert len(set(values)) > min(300, (high - low) * 3 // 4)
    assert sum(value > high // 2 for value in values) > 100
    assert sum(0 <= value <= 100 for value in values) > 400


def test_indices_lie_inside_of_their_table_half_of_the_time() -> None:
    table = te.placeholder((5000, 2), "float32", name="T")
    at = te.placeholder((400,), "int64", name="I")
    inside = lambda i: te.minimum(te.maximum(at[i], 0), 4999)  # noqa: E731
    y = te.compute((400, 2), lambda i, j: table[inside(i), j], name="Y")
    drawn = draw_arrays(te.func(table, at, y, name="rows"), Draw.NORMAL, np.random.default_rng(0))
    found = drawn["I"]
    assert 150 < ((found >= -5000) & (found < 5000)).sum() < 250
    assert len({int(value) for value in found if 100 <= value < 5000}) > 80


def test_a_function_of_integers_is_tried_with_two_seeds_one_of_floats_with_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def func(kind: str) -> tw.PrimFunc:
        x = te.placeholder((64,), kind, name="X")
        return te.func(x, te.compute((64,), lambda i: x[i] + 1, name="Y"), name="f")

    assert draws_for(func("float32")) == (Draw.NORMAL, Draw.WIDE, Draw.POSITIVE)
    monkeypatch.setattr("tilewright.driver.check.data.MOST_OPERATIONS", 3)
    assert draws_for(func("float32")) == (Draw.NORMAL,)
    monkeypatch.undo()
    seeds = [
        draw_arrays(func("int32"), draw, np.random.default_rng(draw.value))["X"].tobytes()
        for draw in draws_for(func("int32"))
    ]
    assert len(seeds) == len(set(seeds)) == 2


def test_random_numbers_repeat_after_a_prime_count(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(3).standard_normal((4, 5), np.float32)
    whole = random_array(np.random.default_rng(3), FLOAT32, (4, 5))
    assert whole.tobytes() == drawn.tobytes()
    assert all(PERIOD % factor for factor in range(2, 1001))
    monkeypatch.setattr("tilewright.driver.check.data.PERIOD", 3)
    few = random_array(np.random.default_rng(3), FLOAT32, (4, 5)).reshape(-1)
    assert few.tobytes() == np.resize(drawn.reshape(-1)[:3], 20).tobytes()
    assert few.size == 20


def test_a_function_of_large_arrays_runs_on_normal_data(monkeypatch: pytest.MonkeyPatch) -> None:
    x = te.placeholder((64,), "float32", name="X")
    func = te.func(x, te.compute((64,), lambda i: x[i] + 1, name="Y"), name="f")
    monkeypatch.setattr("tilewright.driver.check.data.MOST_ELEMENTS", 128)
    assert draws_for(func) == (Draw.NORMAL, Draw.WIDE, Draw.POSITIVE)
    monkeypatch.setattr("tilewright.driver.check.data.MOST_ELEMENTS", 127)
    assert draws_for(func) == (Draw.NORMAL,)
