from __future__ import annotations

from tilewright.autotune.measure.bench import MOST_COPIES, Bench, Benches
from tilewright.runtime.machine.host import last_level_bytes
from tilewright.tir.te import te

from ..samples import scaled


def weighted(size: int) -> str:
    x = te.placeholder((size,), "float32", name="x")
    w = te.placeholder((size,), "float32", name="w", constant=True)
    return str(te.func(x, w, te.compute((size,), lambda i: x[i] * w[i], name="y"), name="weighted"))


def test_benches_are_kept_as_long_as_they_fit() -> None:
    texts = [str(scaled(n)) for n in (64, 128, 256)]
    benches = Benches(most=3 * 4 * (64 + 128))
    first, second = (benches.of(text, 0) for text in texts[:2])
    assert benches.of(texts[0], 0) is first
    assert benches.of(texts[0], 1) is not first
    third = benches.of(texts[2], 0)
    assert benches.of(texts[2], 0) is third
    assert benches.of(texts[1], 0) is not second


def test_constants_are_copied_until_they_fill_twice_the_last_cache() -> None:
    (bench,) = Bench.at_sizes(weighted(1 << 20), 0)
    assert bench.rotated == bench.copies * (4 << 20) >= 2 * last_level_bytes()
    assert Bench.at_sizes(weighted(64), 0)[0].copies == MOST_COPIES
    assert Bench.at_sizes(str(scaled()), 0)[0].copies == 1


def test_the_constants_are_the_same_at_each_size() -> None:
    n = te.dim("n", 1, 64)
    x = te.placeholder((n, 8), "float32", name="x")
    w = te.placeholder((8,), "float32", name="w", constant=True)
    y = te.compute((n, 8), lambda i, j: x[i, j] * w[j], name="y")
    text = str(te.func(x, w, y, name="weighted"))
    small, large = Bench.at_sizes(text, 0, sizes=((3,), (64,)))
    assert [one.inputs[0].shape for one in (small, large)] == [(3, 8), (64, 8)]
    assert small.constants["w"] is large.constants["w"]
    assert (small.sizes, large.sizes) == ((3,), (64,))
