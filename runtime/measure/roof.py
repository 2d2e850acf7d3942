"""The roofline as a picture: what a machine can do at best with so many operations per byte, and
where kernels stand below that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...tir.svg.axes import Axes
from ...tir.svg.picture import Picture
from ...tir.svg.scale import Scale
from ...tir.svg.shapes import BLUE, ORANGE, circle, line, text, width_of

_WIDTH, _HEIGHT = 640.0, 320.0
_LOWEST = 1 / 16  # the least peak over the lowest end of the scale of rates
_AROUND = 4.0  # the scale goes on so far beyond the ridge on both sides


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """A kernel under a roof.

    intensity: operations for each byte; share: of the nearer limit, what it reaches.
    """

    name: str
    intensity: float
    gflops: float
    share: float

    def __str__(self) -> str:
        return f"{self.name}: {self.gflops:.3g} GFLOP/s, {self.share:.0%} of its limit"

    __repr__ = __str__


def draw_roof(
    points: Sequence[RoofPoint], peak_gflops: float, peak_gb_per_s: float, caption: str
) -> Picture:
    """The roof that two limits make, the last of the points under it full, the others hollow; those
    that count no operations have no place in it.
    """
    placed = [point for point in points if point.intensity > 0 and point.gflops > 0]
    ridge = peak_gflops / peak_gb_per_s
    across, upwards = Axes.spans(_WIDTH, _HEIGHT)
    x = Scale.over(
        [ridge / _AROUND, ridge * _AROUND, *(p.intensity for p in placed)],
        *across,
        logarithmic=True,
    )
    y = Scale.over(
        [peak_gflops, peak_gflops * _LOWEST, *(p.gflops for p in placed)],
        *upwards,
        logarithmic=True,
    )
    axes = Axes(x, y, "operations per byte", "GFLOP/s")
    marks = [*_roof(axes, ridge, peak_gflops, peak_gb_per_s), *_dots(axes, placed)]
    return axes.picture("\n".join([caption, *map(str, points)]), marks)


def _roof(axes: Axes, ridge: float, gflops: float, gb_per_s: float) -> Iterable[str]:
    left = max(axes.x.low, axes.y.low / gb_per_s)  # where the ramp leaves the frame
    way = ((left, left * gb_per_s), (ridge, gflops), (axes.x.high, gflops))
    yield line([(axes.x(a), axes.y(b)) for a, b in way], stroke=BLUE)
    yield text(
        axes.x.end,
        axes.y.end - 10,  # above the frame, where no line of the grid goes through it
        f"{gflops:.3g} GFLOP/s, {gb_per_s:.3g} GB/s",
        anchor="end",
        fill=BLUE,
    )


def _dots(axes: Axes, points: Sequence[RoofPoint]) -> Iterable[str]:
    for point in points:
        at = axes.x(point.intensity), axes.y(point.gflops)
        fill = ORANGE if point is points[-1] else "none"
        yield circle(*at, 4, fill=fill, stroke=ORANGE, title=str(point))
    if points:
        last = points[-1]
        x, y = axes.x(last.intensity), axes.y(last.gflops)
        label = f"{last.name}: {last.share:.1%}"
        fits = x + 10 + width_of(label) < axes.x.end
        base = y + 16 if y + 20 < axes.y.start else y - 8
        yield text(x + 10 if fits else x - 10, base, label, anchor="start" if fits else "end")
