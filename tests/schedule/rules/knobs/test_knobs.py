"""What rules leave open: what an answer does to the loops; whatever is answered, values are right,
the proof holds and the trace replays; no answer is refused.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from tilewright.autotune.space.space import TuningSpace
from tilewright.schedule.rules.default import default_schedule
from tilewright.schedule.rules.knobs import knobs
from tilewright.schedule.trace.decisions import Question, Random
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ....driver.kernels import KERNELS
from ... import programs
from ...rule_checks import Answered, check

pytestmark = pytest.mark.sampled(5)

TARGETS = [replace(Target.parse(name), threads=2) for name in ("c:avx512+vnni", "c:avx2")]


def total(*shape: int, kept: int = 0) -> PrimFunc:
    """The sum over all axes but the last `kept` ones."""
    x = te.placeholder(shape, "float32", name="X")
    count = len(shape) - kept
    axes = tuple(te.reduce_axis(size, name=f"r{n}") for n, size in enumerate(shape[:count]))
    y = te.compute(
        shape[count:] or (1,),
        lambda *at: te.sum(x[(*axes, *(at if kept else ()))], axis=axes),
        name="Y",
    )
    return te.func(x, y, name="total")


def product(m: int, n: int, k: int, *, constant: bool = True) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=constant)
    axis = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name="C")
    return te.func(a, b, c, name="product")


def elements(*shape: int) -> PrimFunc:
    x = te.placeholder(shape, "float32", name="X")
    return te.func(x, te.compute(shape, lambda *at: x[at] + 1.0, name="Y"), name="elements")


# the function, what is answered, what stands in the text then and not by default
ANSWERS: dict[str, tuple[PrimFunc, Mapping[str, object], str]] = {
    "no threads": (elements(90, 100), {"loops for threads of Y": 0}, "for i0 in range(90):"),
    "two loops for threads": (
        elements(9, 10, 100),
        {"loops for threads of Y": 2},
        "for i0_i1 in parallel(90):",
    ),
    "copies": (
        elements(90, 100),
        {"copies of the body of Y": 2},
        'for i1_0 in range(7, tail="mask", unroll_hint=2):',
    ),
    "past the caches": (
        elements(700, 800),
        {"stores past the caches of Y": True},
        "for i0 in parallel(700, stream=1):",
    ),
    "transposed tile": (
        KERNELS["transpose"](),
        {"tile of Y": (8, 32)},
        "(j_0 * 2 + j_1) * 16 + j_2 < 19",
    ),
    "windows": (
        programs.pool(9, 8, 20),
        {"terms written out of Y": 0},
        "for r in range(3):",
    ),
    "one vector of sums": (
        total(600),
        {"vectors of Y": 1},
        "Y_rf = alloc(float32[16, 1]",
    ),
    "parts of neighbours": (
        total(512, 40, kept=1),
        {"parts of Y": 4},
        "X[vr0_0 * 128 + vr0, vi0]",
    ),
    "parts of every fourth": (
        total(512, 40, kept=1),
        {"parts of Y": 4, "neighbours in a part of Y": False},
        "X[vr0_1 + vr0 * 4, vi0]",
    ),
    "parts of pieces": (total(4301), {"parts of Y": 2}, "X[vr0_1 + (vr0_0_1 + vr0 * 2) * 128]"),
    "panels outside": (
        product(60, 96, 20),
        {"loops around panels of C": 0},
        "for j_0 in parallel(2):",
    ),
    "parts of a product": (
        product(40, 48, 1024),
        {"steps in a part of C": 256},
        "for k_0 in range(4):",
    ),
    "parts for threads": (
        product(4, 16, 2048),
        {"parts of C": 4},
        "for k_0_0 in parallel(4):",
    ),
    "every fourth step": (
        product(4, 16, 2050),
        {"parts of C": 4},
        "A[vi, vk_1 + vk * 4]",
    ),
    "lanes along the steps": (
        product(12, 5, 100),
        {"lanes along the steps of C": True},
        "A[vi, vk_1 + vk * 16] * B_packed[vj, vk_1 + vk * 16]",
    ),
    "blocks of a product": (
        product(40, 48, 600),
        {"steps in a block of C": 256},
        'for k_0 in range(3, tail="partition"):',
    ),
    "no chunks": (
        product(40, 48, 100),
        {"steps between prefetches of C": 0},
        "for k in range(100):",
    ),
    "early rows": (product(200, 48, 100), {"early rows of C": True}, "prefetch(A["),
    "weights as they lie": (
        product(40, 48, 100, constant=False),
        {"packed weights of C": False},
        "A[vi, vk] * B[vk, vj]",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_does_what_it_says(name: str) -> None:
    func, answers, expected = ANSWERS[name]
    decisions = Answered(answers)
    text = str(default_schedule(func, TARGETS[0], decisions).func)
    assert decisions.met == set(answers)
    assert expected in text
    assert expected not in str(default_schedule(func, TARGETS[0]).func)


CORPUS: dict[str, Callable[[], PrimFunc]] = {
    **KERNELS,
    "long sum": lambda: product(9, 21, 1100),
    "product": lambda: product(11, 21, 40, constant=False),
    "skinny": lambda: product(2, 5, 1641),
    "groups": lambda: programs.conv(7, 6, 3, 8, groups=2),
    "windows": lambda: programs.pool(9, 8, 20, pad=1),
    "several outputs": lambda: programs.moments(6, 29),
    "scan": lambda: programs.running(9, 21, axis=1),
    "columns": lambda: total(99, 20, kept=1),
    "pieces": lambda: total(4301),
}
HEAVY = {"long sum", "winograd", "winograd_4x4", "attention", "matmul", "depthwise_padded"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in HEAVY else []) for n in CORPUS]
)
def test_every_answer_keeps_the_meaning(name: str) -> None:
    for seed in range(2):
        check(CORPUS[name](), TARGETS[seed], Random(seed), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CORPUS)
def test_no_answer_is_refused_and_each_question_has_a_name_of_its_own(name: str) -> None:
    space = TuningSpace(CORPUS[name](), TARGETS[0])
    for seed in range(3):
        walk = space.draw(random.Random(seed)).walk
        names = [question.name for question in walk.questions]
        assert "" not in names
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("columns", [3, 18])
@pytest.mark.parametrize("target", TARGETS)
def test_a_narrow_product_with_lanes_along_its_steps_is_right(columns: int, target: Target) -> None:
    answers = {"lanes along the steps of C": True}
    check(product(5, columns, 41), target, Answered(answers), rtol=1e-4, atol=1e-4)


def test_what_does_little_of_the_work_is_no_question() -> None:
    """A border of few elements, the sum of a few parts; of one thread, what threads share out."""

    class Noted:
        def __init__(self) -> None:
            self.names: list[str] = []

        def choose(self, question: Question) -> int:
            self.names.append(question.name)
            return question.default

    noted = Noted()
    default_schedule(KERNELS["convolution"](), replace(TARGETS[0], threads=1), noted)
    assert noted.names == ["tile of Y", "copies of the body of Y"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("most", "offered"), [(knobs.MOST_COPIES, []), (22 * 7 * 8, [(0, 22)])])
def test_no_more_terms_are_written_out_than_lowering_copies(
    most: int, offered: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """22 terms of 7 rows of a vector of 8 lanes, which AVX2 takes apart at the end of a row."""
    monkeypatch.setattr(knobs, "MOST_COPIES", most)

    class Tiled:
        def __init__(self) -> None:
            self.asked: list[tuple[object, ...]] = []

        def choose(self, question: Question) -> int:
            if question.name.startswith("terms written out"):
                self.asked.append(tuple(question.candidates))
            if question.name.startswith("tile of"):
                return question.candidates.index((1, 7, 1))
            return question.default

    decisions = Tiled()
    default_schedule(KERNELS["dots"](), TARGETS[1], decisions)
    assert decisions.asked == offered


def test_a_first_loop_that_a_call_decides_is_joined_with_the_next_one() -> None:
    n = te.dim("n", 1, 8)  # of which two threads would share out all, but for one of them
    x = te.placeholder((n, 10, 100), "float32", name="X")
    func = te.func(x, te.compute((n, 10, 100), lambda *at: x[at] + 1.0, name="Y"), name="images")
    assert "for i0_i1 in parallel(80):" in str(default_schedule(func, TARGETS[0]))
