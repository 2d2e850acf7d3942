"""Picture: a drawing that shows itself in a notebook, and can be written to a file."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path

from ..output_file import writing

_FONT = "font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
_FITS = "max-width:100%;height:auto"  # of its column, however narrow
# a file stands alone: nobody else says what colour text has there
_ALONE = (
    "<style>svg{color:#1f1f1f;background:#ffffff}"
    "@media(prefers-color-scheme:dark){svg{color:#e4e4e4;background:#161616}}</style>"
)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing of `width` by `height` pixels.

    caption: what it shows, in words: its text where no pictures are shown, and for readers who see
    none. marks: its shapes, as SVG, the last one on top.
    """

    width: float
    height: float
    caption: str
    marks: tuple[str, ...]

    @property
    def svg(self) -> str:
        """The drawing as an SVG element for any page: it loads nothing, runs no script, and takes
        the colour of text from the page.
        """
        return self._element(f'style="{_FONT};{_FITS}"', "")

    def save(self, path: str | PathLike[str]) -> Path:
        """Write an SVG file, light or dark as its reader prefers; the file.

        Raises: OutputFileError.
        """
        file = Path(path)
        with writing(file):
            file.write_text(self._element(f'style="{_FONT}"', _ALONE), encoding="utf-8")
        return file

    def __str__(self) -> str:
        return self.caption

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.svg

    def _element(self, style: str, inside: str) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}"'
        box = f'viewBox="0 0 {self.width:g} {self.height:g}"'
        label = escape(self.caption.partition("\n")[0])
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} {style} role="img" '
            f'aria-label="{label}">{inside}{"".join(self.marks)}</svg>'
        )
