"""The elements of a picture, as SVG text: every text escaped, every number with one digit.

Lines and texts have the colour of the page's own text, so they can be read on a light page and on a
dark one; the other colours stand out from both. A shape may say more when the pointer rests on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

INK = "currentColor"
BLUE, ORANGE, GREEN, PURPLE, RED = "#3f7ade", "#cb5a12", "#1f8a54", "#ab54d6", "#d0453a"
TEAL, OLIVE, GREY = "#11868f", "#8a7a1c", "#7a7a7a"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, TEAL, OLIVE)  # in the order of their use

FAINT = 0.15  # the opacity of grids and of areas with a text on them
_LETTER = 0.56  # the mean width of a letter, as a share of the size of its font
SIZE = 12.0  # pixels, of a text


def rectangle(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    opacity: float = 1.0,
    stroke: str = "none",
    title: str = "",
) -> str:
    """A filled rectangle; x, y: its upper left corner."""
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return _shape("rect", f'{place} fill="{fill}" fill-opacity="{opacity:g}" {_pen(stroke)}', title)


def circle(x: float, y: float, radius: float, *, fill: str, stroke: str, title: str = "") -> str:
    """A circle around a point."""
    place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
    return _shape("circle", f'{place} fill="{fill}" {_pen(stroke)}', title)


def line(
    points: Iterable[tuple[float, float]],
    *,
    stroke: str = INK,
    opacity: float = 1.0,
    dashed: bool = False,
    title: str = "",
) -> str:
    """A line through points."""
    way = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    pen = f'fill="none" {_pen(stroke)} stroke-opacity="{opacity:g}"{dashes}'
    return _shape("polyline", f'points="{way}" {pen}', title)


def arrow(start: tuple[float, float], end: tuple[float, float], *, stroke: str = INK) -> str:
    """A line from a point to another one, with a head at its end."""
    (x0, y0), (x1, y1) = start, end
    length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5 or 1.0
    along, across = (
        ((x1 - x0) / length, (y1 - y0) / length),
        ((y0 - y1) / length, (x1 - x0) / length),
    )
    wings = [
        (x1 - 7 * along[0] + side * across[0], y1 - 7 * along[1] + side * across[1])
        for side in (3.5, -3.5)
    ]
    return line((start, end), stroke=stroke) + line((wings[0], end, wings[1]), stroke=stroke)


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: str = "start",
    size: float = SIZE,
    fill: str = INK,
    bold: bool = False,
    title: str = "",
) -> str:
    """A text on a base line. anchor: which of its places is at x: "start", "middle" or "end"."""
    weight = ' font-weight="600"' if bold else ""
    style = f'text-anchor="{anchor}" font-size="{size:g}" fill="{fill}"{weight}'
    return _element("text", f'x="{number(x)}" y="{number(y)}" {style}', escape(content), title)


def fitting(content: str, width: float, size: float = SIZE) -> str:
    """The text, cut where it is wider than `width` pixels; empty where nothing of it fits."""
    letters = int(width / (_LETTER * size))
    if len(content) <= letters:
        return content
    return f"{content[: letters - 1]}\u2026" if letters > 2 else ""


def width_of(content: str, size: float = SIZE) -> float:
    """About how many pixels a text takes."""
    return len(content) * _LETTER * size


def number(value: float) -> str:
    """A coordinate: one digit behind the point, or none."""
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"


def _pen(stroke: str) -> str:
    return f'stroke="{stroke}" stroke-width="1.5"' if stroke != "none" else 'stroke="none"'


def _shape(name: str, attributes: str, title: str) -> str:
    return _element(name, attributes, "", title)


def _element(name: str, attributes: str, content: str, title: str) -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    inside += content
    return f"<{name} {attributes}>{inside}</{name}>" if inside else f"<{name} {attributes}/>"
