"""The arena of a model as a map: which bytes each tensor has, from which launch to which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...tir.program.program import (
    Action,
    Branch,
    Effects,
    Launch,
    Repeat,
    Slice,
    Step,
    action_title,
    actions,
)
from ...tir.sizes import AnySize, greatest, largest, product_of
from ...tir.svg.axes import Axes
from ...tir.svg.picture import Picture
from ...tir.svg.scale import Scale, whole_text
from ...tir.svg.shapes import RED, SERIES, fitting, line, rectangle, text
from ...tir.text.size import bytes_text, size_unit

_WIDTH, _HEIGHT = 720.0, 320.0
_LOW = 14.0  # pixels: an area below this height has no text
_AREA = 0.35  # opacity


@dataclass(frozen=True, slots=True)
class ArenaTensor:
    """A tensor in the arena: `size` bytes from `offset` on, from launch `first`, which writes it,
    to launch `last`, the last one that reads it.

    label: of the launch that writes it; kind: its dtype and shape. Launches, copies among them,
    count from 0.
    """

    label: str
    kind: str
    offset: int
    size: AnySize
    first: int
    last: int

    @property
    def bytes(self) -> int:
        """The most that it takes, for which there is room."""
        return largest(self.size)

    def __str__(self) -> str:
        return (
            f"{self.label}: {self.kind}, {bytes_text(self.bytes)} at {self.offset:,}, "
            f"launches {self.first} to {self.last}"
        )

    __repr__ = __str__


def arena_tensors(
    body: Iterable[Step], effects: Callable[[Launch], Effects]
) -> tuple[ArenaTensor, ...]:
    """The tensors of a run that lie in the arena, in the order in which they are written."""
    found: list[ArenaTensor] = []
    held: list[tuple[Slice, int]] = []  # what is there now, and its number in `found`
    for number, (step, first, last) in enumerate(_in_loops(tuple(body), 0)):
        done = effects(step) if isinstance(step, Launch) else step.effects
        for place, tensor in held:
            if any(place.overlaps(item) for item in done.read):
                until = number if found[tensor].first >= first else last
                found[tensor] = replace(found[tensor], last=max(until, found[tensor].last))
        written = [item.whole for item in done.written if item.space == "arena"]
        held = [one for one in held if not any(one[0].overlaps(item) for item in written)]
        for item in written:
            held.append((item, len(found)))
            found.append(_tensor(step, item, number))
    return tuple(found)


def live_bytes(tensors: Sequence[ArenaTensor]) -> AnySize:
    """The bytes of the tensors that some launch needs at once, where they are most."""
    changes: dict[int, AnySize] = {}
    for tensor in tensors:
        changes[tensor.first] = changes.get(tensor.first, 0) + tensor.size
        changes[tensor.last + 1] = changes.get(tensor.last + 1, 0) - tensor.size
    now: AnySize = 0
    sums: dict[AnySize, None] = {0: None}
    for launch in sorted(changes):
        now = now + changes[launch]
        sums[now] = None
    return greatest(*sums)


def _in_loops(steps: Sequence[Step], at: int) -> Iterator[tuple[Action, int, int]]:
    """The steps that read and write, each with the first and the last one of the outermost loop
    around it, by their numbers from `at` on; itself outside of loops.
    """
    for step in steps:
        inside = tuple(actions((step,)))
        if isinstance(step, Branch):
            yield from _in_loops((*step.then, *step.otherwise), at)
        elif isinstance(step, Repeat):
            yield from ((one, at, at + len(inside) - 1) for one in inside)
        else:
            yield from ((one, at, at) for one in inside)
        at += len(inside)


def draw_arena(
    tensors: Sequence[ArenaTensor], size: int, lower_bound: int | None, caption: str
) -> Picture:
    """Each tensor as an area: its launches across, its bytes upwards."""
    across, upwards = Axes.spans(_WIDTH, _HEIGHT)
    launches = max((tensor.last for tensor in tensors), default=0) + 1
    name, unit = size_unit(size)
    axes = Axes(
        Scale(0.0, float(launches), *across),
        Scale(0.0, size / unit, *upwards),
        "launches",
        f"offset in the arena, {name}",
        x_text=whole_text,
    )
    marks = list(_areas(axes, tensors, unit))
    if lower_bound is not None:
        marks += _bound(axes, lower_bound, unit)
    return axes.picture(caption, marks)


def _tensor(step: Action, item: Slice, number: int) -> ArenaTensor:
    label = (step.label or step.function) if isinstance(step, Launch) else action_title(step)
    kind = f"{item.dtype}[{', '.join(map(str, item.shape))}]"
    size = item.dtype.bytes * product_of(item.shape)
    return ArenaTensor(label, kind, item.position, size, number, number)


def _areas(axes: Axes, tensors: Sequence[ArenaTensor], unit: int) -> Iterator[str]:
    for number, tensor in enumerate(tensors):
        left, right = axes.x(tensor.first), axes.x(tensor.last + 1)
        top, bottom = axes.y((tensor.offset + tensor.bytes) / unit), axes.y(tensor.offset / unit)
        colour = SERIES[number % len(SERIES)]
        yield rectangle(
            left,
            top,
            right - left,
            bottom - top,
            fill=colour,
            opacity=_AREA,
            stroke=colour,
            title=str(tensor),
        )
        if bottom - top >= _LOW:
            label = fitting(tensor.label, right - left - 8)
            yield text(left + 4, (top + bottom) / 2 + 4, label, title=str(tensor))


def _bound(axes: Axes, lower_bound: int, unit: int) -> Iterator[str]:
    at = axes.y(lower_bound / unit)
    yield line(((axes.x.start, at), (axes.x.end, at)), stroke=RED, dashed=True)
    label = f"lower bound {bytes_text(lower_bound)}"
    yield text(axes.x.end, at - 6, label, anchor="end", fill=RED)
