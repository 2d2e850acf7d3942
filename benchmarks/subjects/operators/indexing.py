"""Operators that read and write where data say, find, rank and accumulate."""

from __future__ import annotations

import numpy as np

from tilewright.runtime.arrays import Array

from .subject import Draw, Subject, fixed, integers, known, normal, orders, uniform

_OBJECTS = 40  # in an image, each of which several boxes see
_SEEN = 12


def _gather(name: str, body: str, x: Draw, at: Draw) -> Subject:
    return Subject(name, body, {"x": x, "i": at})


def _scatter(operator: str, sizes: str, x: Draw, at: Draw, updates: Draw) -> Subject:
    name, _, attributes = operator.partition(" ")
    draws = {"x": x, "i": at, "u": updates}
    return Subject(f"{operator} {sizes}", f"y = {name} {attributes} (x, i, u)", draws, 18)


GATHERING = (
    _gather(
        "Gather 30000x384 by 128",
        "y = Gather(x, i)",
        *(normal(30000, 384), integers(0, 30000, 128)),
    ),
    _gather(
        "GatherElements 64x1000 by 64x100",
        "y = GatherElements <axis=1> (x, i)",
        *(normal(64, 1000), integers(0, 1000, 64, 100)),
    ),
    _gather(
        "GatherElements 8400x4 by 300x4",
        "y = GatherElements <axis=0> (x, i)",
        *(normal(8400, 4), integers(0, 8400, 300, 4)),
    ),
    _gather(
        "GatherND 64x128x64 by 1000x2",
        "y = GatherND(x, i)",
        *(normal(64, 128, 64), integers(0, 64, 1000, 2)),
    ),
    _gather(
        "GatherND 4x100x256 by 4x10x1, batched",
        "y = GatherND <batch_dims=1> (x, i)",
        *(normal(4, 100, 256), integers(0, 100, 4, 10, 1)),
    ),
    Subject(
        "OneHot 128 of 1000",
        "y = OneHot(x, depth, values)",
        {"x": integers(0, 1000, 128), "depth": known(1000, "int64"), "values": known([0.0, 1.0])},
    ),
)
SCATTERING = (
    _scatter(
        "ScatterElements <axis=1>",
        "64x1000 by 64x100",
        normal(64, 1000),
        orders(64, 100, below=1000),
        normal(64, 100),
    ),
    _scatter(
        'ScatterElements <axis=0, reduction="add">',
        "1000x64 by 4000x64",
        normal(1000, 64),
        integers(0, 1000, 4000, 64),
        normal(4000, 64),
    ),
    _scatter(
        'ScatterElements <axis=1, reduction="max">',
        "16x256 by 16x256",
        normal(16, 256),
        integers(0, 256, 16, 256),
        normal(16, 256),
    ),
    _scatter(
        "ScatterND",
        "1000x256 by 100",
        normal(1000, 256),
        integers(0, 1000, 100, 1),
        normal(100, 256),
    ),
    _scatter(
        "ScatterND",
        "128x128x8 by 1000",
        normal(128, 128, 8),
        integers(0, 128, 1000, 2),
        normal(1000, 8),
    ),
    _scatter(
        'ScatterND <reduction="add">',
        "128x128x64 by 1000",
        normal(128, 128, 64),
        integers(0, 128, 1000, 2),
        normal(1000, 64),
    ),
    _scatter(
        "ScatterND", "100000 by 1000", normal(100000), integers(0, 100000, 1000, 1), normal(1000)
    ),
    _scatter(
        "ScatterElements <axis=1>",
        "64x1000 by 64x100, known",
        normal(64, 1000),
        fixed(orders(64, 100, below=1000)),
        normal(64, 100),
    ),
)


def _boxes(batch: int, classes: int, count: int, *, image: bool) -> tuple[Draw, Draw]:
    """image: most scores are next to none, and some boxes around each object have higher ones, as
    detectors of objects give; else all are random.
    """

    def both(rng: np.random.Generator) -> tuple[Array, Array]:
        rng = np.random.default_rng(0)
        corners = rng.random((batch, count, 2), np.float32) * 4
        sizes = rng.random((batch, count, 2), np.float32) * 3
        scores = rng.random((batch, classes, count), np.float32)
        boxes = np.concatenate([corners, corners + sizes], axis=2)
        if image:
            scores *= 0.02
            for number in range(_OBJECTS):
                at = rng.choice(count, _SEEN, replace=False)
                middle = rng.random(4, np.float32) * 600 + rng.normal(0, 4, (_SEEN, 4))
                boxes[:, at] = middle + np.array([-40, -40, 40, 40])
                scores[:, number % classes, at] = rng.random(_SEEN, np.float32)
        return boxes.astype(np.float32), scores

    return Draw(lambda rng: both(rng)[0]), Draw(lambda rng: both(rng)[1])


def _suppression(
    shape: tuple[int, int, int],
    most: int,
    least: float | None,
    *,
    image: bool = False,
) -> Subject:
    boxes, scores = _boxes(*shape, image=image)
    draws = {
        "boxes": boxes,
        "scores": scores,
        "most": known([most], "int64"),
        "share": known([0.45]),
    }
    given = "boxes, scores, most, share"
    if least is not None:
        draws["least"], given = known([least]), f"{given}, least"
    sizes = "x".join(map(str, shape))
    name = f"NonMaxSuppression {sizes} {'all' if least is None else f'from {least}'}"
    return Subject(name, f"y = NonMaxSuppression({given})", draws)


def _nonzero(shape: tuple[int, ...], share: float, kind: str) -> Subject:
    def make(rng: np.random.Generator) -> Array:
        return (rng.random(shape) < share).astype(kind)

    name = f"NonZero {'x'.join(map(str, shape))} {kind} {share:.0%}"
    return Subject(name, "y = NonZero(x)", {"x": Draw(make)})


def _top(rows: int, count: int, many: int) -> Subject:
    draws = {"x": normal(rows, count), "k": known([many], "int64")}
    body, outputs = "y, places = TopK(x, k)", ("y", "places")
    return Subject(f"TopK {many} of {rows}x{count}", body, draws, outputs=outputs)


def _compress(count: int, width: int) -> Subject:
    draws = {"x": normal(count, width), "c": Draw(lambda rng: rng.random(count) < 0.5)}
    return Subject(f"Compress {count}x{width} 50%", "y = Compress <axis=0> (x, c)", draws)


FINDING = (
    _suppression((1, 80, 8400), 100, 0.25, image=True),
    _suppression((1, 1, 1000), 100, None),
    _suppression((1, 1, 1000), 100, 0.5),
    _suppression((2, 4, 200), 10, 0.5),
    _nonzero((10**4,), 0.01, "float32"),
    _nonzero((10**4,), 0.5, "bool"),
    _nonzero((100, 100, 100), 0.5, "bool"),
    _compress(1000, 64),
    Subject("Unique 1000 of int64", "y = Unique(x)", {"x": integers(0, 300, 1000)}),
    Subject("Unique 4000 of float32", "y = Unique(x)", {"x": normal(4000)}),
)
RANKING = (
    *(
        _top(rows, count, many)
        for rows in (1, 64)
        for count, many in ((1000, 5), (8400, 5), (8400, 100), (1000, 1000))
    ),
    _top(1, 8400, 300),
    _top(1, 50000, 50),
    Subject("ArgMax 64x1000", "y = ArgMax <axis=1> (x)", {"x": normal(64, 1000)}),
)
CUMULATIVE = (
    Subject(
        "CumSum 64x1000 along rows",
        "y = CumSum(x, axis)",
        {"x": normal(64, 1000), "axis": known(1, "int64")},
    ),
    Subject(
        "CumSum 1000x64 along columns",
        "y = CumSum(x, axis)",
        {"x": normal(1000, 64), "axis": known(0, "int64")},
    ),
    Subject(
        "CumSum 1x100000",
        "y = CumSum(x, axis)",
        {"x": normal(1, 100000), "axis": known(1, "int64")},
    ),
    Subject(
        "CumProd 64x1000 along rows",
        "y = CumProd(x, axis)",
        {"x": uniform(0.99, 1.01, 64, 1000), "axis": known(1, "int64")},
        26,
    ),
)
EINSUM = (
    Subject(
        "Einsum bhqd,bhkd->bhqk 1x12x128x64",
        'y = Einsum <equation="bhqd,bhkd->bhqk"> (a, b)',
        {"a": normal(1, 12, 128, 64), "b": normal(1, 12, 128, 64)},
    ),
    Subject(
        "Einsum bhwc,hkc->bhwk 12x14x14x64",
        'y = Einsum <equation="bhwc,hkc->bhwk"> (a, b)',
        {"a": normal(12, 14, 14, 64), "b": normal(14, 14, 64)},
    ),
    Subject(
        "Einsum bi,bj->bij 64x128x128",
        'y = Einsum <equation="bi,bj->bij"> (a, b)',
        {"a": normal(64, 128), "b": normal(64, 128)},
    ),
    Subject(
        "Einsum bii->bi 64x100x100",
        'y = Einsum <equation="bii->bi"> (a)',
        {"a": normal(64, 100, 100)},
    ),
)
