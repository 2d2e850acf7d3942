"""What a language writes in its own way. What C and CUDA C write alike stands beside this file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from ...tir.dtype import DType
from .functions import Helper
from .names import mangle

_CALL = re.compile(r"\btw_\w+(?=\()")


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language.

    name: what messages call it. types: the type of one element in memory, by the name of its dtype.
    index: the type of a loop's variable. infinity, nan: floats that no decimal stands for, by their
    bits; smallest: likewise the integers that are no literal with a sign. float_of, bits_of: the
    functions from an integer to the float of so many bits, and back.
    barrier: where threads wait for each other. unroll: the line before a loop with the hint to
    unroll it `{}` times. inline: what stands in front of a helper. helpers: what expressions call.
    """

    name: str
    types: Mapping[str, str]
    index: str
    infinity: Mapping[int, str]
    nan: Mapping[int, str]
    smallest: Mapping[int, str]
    float_of: Mapping[int, str]
    bits_of: Mapping[int, str]
    barrier: str
    unroll: str
    inline: str
    helpers: Mapping[str, Helper]

    def type_of(self, dtype: DType) -> str:
        """The type of one element in memory; of a storage type, that of its bits."""
        return self.types[f"uint{8 * dtype.bytes}" if dtype.is_storage else str(dtype.scalar)]

    def entry_symbol(self, name: str) -> str:
        """The symbol of the entry of a function: none that a helper has."""
        symbol = f"tw_{mangle(name)}"
        return f"{symbol}_" if symbol in self.helpers else symbol

    def definitions(self, body: str) -> list[str]:
        """The helpers that a text calls, each behind those that it calls itself."""
        wanted: dict[str, None] = {}

        def want(name: str) -> None:
            called = _CALL.findall(self.helpers[name].expression)
            for other in self.helpers:
                if other in called:
                    want(other)
            wanted.setdefault(name)

        for name in dict.fromkeys(_CALL.findall(body)):
            if name in self.helpers:
                want(name)
        return [self._definition(name) for name in wanted]

    def _definition(self, name: str) -> str:
        helper = self.helpers[name]
        text = (
            f"{self.inline} {helper.result} {name}({helper.parameters})\n"
            f"{{\n    return {helper.expression};\n}}\n"
        )
        return Template(text).substitute(self.types)
