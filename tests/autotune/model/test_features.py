"""What is told of a candidate: finite for every rule, and what a look at the nest would say."""

from __future__ import annotations

import math
import random

import pytest

from tilewright.autotune.model.cache_traffic import cache_traffic
from tilewright.autotune.model.features import features
from tilewright.autotune.space.decisions import decisions_of, encode
from tilewright.autotune.space.space import TuningSpace
from tilewright.schedule.errors import ScheduleError
from tilewright.schedule.schedule import Schedule
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te

from ...schedule.nests import softmax
from ...schedule.programs import causal, gathered, pool, running

TARGET = Target.parse("c:avx512")


def product(m: int, n: int, k: int) -> PrimFunc:
    a = te.placeholder((m, k), "float32", name="A")
    b = te.placeholder((k, n), "float32", name="B", constant=True)
    r = te.reduce_axis(k, name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return te.func(a, b, c, name="product")


def copied(n: int) -> PrimFunc:
    x = te.placeholder((n, n), "float32", name="x")
    y = te.compute((n, n), lambda i, j: x[i, j] + 1.0, name="y")
    return te.func(x, y, name="copied")


def told(func: PrimFunc, rule: object = None) -> dict[str, float]:
    space = TuningSpace(func, TARGET, rule)  # type: ignore[arg-type]
    return features(space.candidate().schedule, TARGET)


def test_the_tile_of_a_product_is_told() -> None:
    found = told(product(512, 512, 512))
    assert found["registers"] == 8 * 3
    assert found["tile: lanes"] == 16
    assert found["tile: copies"] == pytest.approx(math.log2(1 + 8 * 3))
    assert found["tile: operations per load"] == pytest.approx(math.log2(1 + 48 / 11))
    assert found["vector operations"] == pytest.approx(math.log2(2 * 512**3 / 16), abs=0.1)
    assert found["scattered loads"] == 0
    assert found["tile of C[1]"] == 8


def test_vectors_and_columns_are_told_apart() -> None:
    def along(sch: Schedule) -> None:
        sch.vectorize(sch.split(sch.loops("y")[1], (None, 16))[1])

    def across(sch: Schedule) -> None:
        i, j = sch.loops("y")
        _, lane = sch.split(i, (None, 16))
        sch.reorder(j, lane)
        sch.vectorize(lane)

    assert told(copied(64), along)["scattered loads"] == 0
    assert told(copied(64), across)["scattered loads"] == pytest.approx(math.log2(1 + 256))
    assert told(copied(64), lambda sch: None)["vector operations"] == 0


def test_what_fits_a_cache_passes_it_once_and_what_does_not_as_often_as_it_is_used() -> None:
    def plain(sch: Schedule) -> None:
        """Each row of A meets the whole of B."""

    space = TuningSpace(product(64, 64, 64), TARGET, plain)
    body = space.candidate().schedule.func.body
    matrix = 64 * 64 * 4
    small, middle, large = cache_traffic(body, (1 << 10, 20 << 10, 1 << 20)).passed
    assert large == 3 * matrix
    assert middle == 3 * matrix
    assert small == pytest.approx(64 * 64 * 64 * 64, rel=0.1)


def test_answers_are_told_by_name_and_by_parts() -> None:
    def asks(sch: Schedule) -> None:
        sch.sample_categorical([[1, 2], [3, 4]], 1, name="tile")
        sch.sample_categorical(["a", "b"], 1, name="kind")
        sch.sample_categorical([0.5, 2])

    trace = TuningSpace(copied(8), TARGET, asks).candidate().schedule.trace
    assert encode(decisions_of(trace)) == {"tile[0]": 3, "tile[1]": 4, "kind": 1, "question 2": 0.5}


def row_sums() -> PrimFunc:
    x = te.placeholder((40, 100), "float32", name="x")
    r = te.reduce_axis(100, name="r")
    return te.func(x, te.compute((40,), lambda i: te.sum(x[i, r], axis=r), name="y"), name="sums")


def turned() -> PrimFunc:
    x = te.placeholder((40, 24), "float32", name="x")
    return te.func(x, te.compute((24, 40), lambda i, j: x[j, i], name="y"), name="turned")


def windowed(channels: bool) -> PrimFunc:
    x = te.placeholder((1, 10, 10, 16), "float32", name="x")
    w = te.placeholder(
        (3, 3, 16, 16) if channels else (3, 3, 16), "float32", name="w", constant=True
    )
    p, q, c = te.reduce_axis(3, name="p"), te.reduce_axis(3, name="q"), te.reduce_axis(16, name="c")
    if channels:
        y = te.compute(
            (1, 8, 8, 16),
            lambda n, i, j, o: te.sum(x[n, i + p, j + q, c] * w[p, q, c, o], axis=(p, q, c)),
            name="y",
        )
    else:
        y = te.compute(
            (1, 8, 8, 16),
            lambda n, i, j, o: te.sum(x[n, i + p, j + q, o] * w[p, q, o], axis=(p, q)),
            name="y",
        )
    return te.func(x, w, y, name="windowed")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "func",
    [
        product(33, 47, 19),
        copied(33),
        row_sums(),
        turned(),
        windowed(True),
        windowed(False),
        softmax(20, 70),
        gathered(30, 20, 10),
        running(24, 20),
        pool(13, 11, 20),
        causal(20, 20, 16),
    ],
    ids=lambda func: func.name,
)
@pytest.mark.parametrize("target", ["c:avx512", "c:avx2", "c:scalar"])
def test_features_are_finite_and_tell_points_apart(func: PrimFunc, target: str) -> None:
    resolved = Target.parse(target)
    space, source = TuningSpace(func, resolved), random.Random(0)
    seen = {}
    for _ in range(4):
        try:
            candidate = space.draw(source)
        except ScheduleError:
            continue
        found = features(candidate.schedule, resolved)
        assert all(map(math.isfinite, found.values()))
        assert found["estimate"] > 0
        assert found["footprint"] > 0
        assert found["computed in vain"] >= 1.0
        seen[tuple(found.items())] = candidate.point
    assert seen
    assert len(set(seen.values())) == len(seen)
