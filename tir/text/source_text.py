"""The text of a program that was generated, which shows itself as it is."""

from __future__ import annotations

from .html import ASSEMBLY, highlight
from .html import C as C_LANGUAGE


class SourceText(str):
    """C or CUDA C: a str that shows its lines instead of its escapes, coloured in a notebook. What
    is selected there is the very text.
    """

    __slots__ = ()
    _language = C_LANGUAGE

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return highlight(self, self._language)


class AssemblyText(SourceText):
    """What a compiler made of it: the assembly of a CPU, or the PTX of a GPU."""

    __slots__ = ()
    _language = ASSEMBLY
