"""C identifiers for the names of users and models: readable, legal, unique, and never the text
itself.
"""

from __future__ import annotations

import re

from ...tir.buffer import Buffer
from ...tir.expr import Var

_LONGEST = 40
_RESERVED = frozenset(
    [
        "alignas",
        "alignof",
        "asm",
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "constexpr",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "false",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "nullptr",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "struct",
        "switch",
        "thread_local",
        "true",
        "typedef",
        "typeof",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "main",
        "errno",
        "NULL",
        "EOF",
        "stdin",
        "stdout",
        "stderr",
        "args",
        "team",
        "thread",
        "threads",
        "workspace",
        "own",
        "signbit",
        "isnan",
        "isinf",
        "linux",
        "unix",
        "i386",
        "int8_t",
        "int16_t",
        "int32_t",
        "int64_t",
        "uint8_t",
        "uint16_t",
        "uint32_t",
        "uint64_t",
        "size_t",
        "ptrdiff_t",
        "intptr_t",
        "uintptr_t",
    ]
)
_TAKEN_PREFIXES = ("tw_", "mm_", "INT", "UINT", "SIZE_", "memcpy", "memset", "memmove", "str")


def mangle(name: str) -> str:
    """A legal C identifier that recalls `name`: letters, digits and single underscores, at most 40,
    not a word of C.
    """
    text = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")[:_LONGEST].rstrip("_") or "v"
    if text[0].isdigit() or text in _RESERVED or text.startswith(_TAKEN_PREFIXES):
        text = f"v_{text}"
    return text


class CNames:
    """The identifiers of one C function: one per variable or buffer, all different, so nothing is
    ever shadowed.
    """

    def __init__(self) -> None:
        self._given: dict[Var | Buffer, str] = {}
        self._used: set[str] = set()
        self._reserved: set[str] = set()

    def __getitem__(self, item: Var | Buffer) -> str:
        return self._given[item]

    def __contains__(self, item: Var | Buffer) -> bool:
        return item in self._given

    def declare(self, item: Var | Buffer) -> str:
        """A new identifier for `item`, for the declaration that comes next."""
        name = self._given[item] = self.fresh(item.name)
        return name

    def call(self, item: Var | Buffer, text: str) -> None:
        """Let `item` be written as `text`, which is declared already, or a number."""
        self._given[item] = text

    def fresh(self, hint: str) -> str:
        """A new identifier that recalls `hint`."""
        base = name = mangle(hint)
        count = 0
        while name in self._used or name in self._reserved:
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        return name

    def reserve(self, name: str) -> str:
        """Keep `name`, which must be legal, for the whole function: no identifier that is made
        later is like it.
        """
        self._reserved.add(name)
        return name

    def forget_uses(self, kept: frozenset[str]) -> None:
        """Make every identifier but `kept` free again, where the scope of the others has ended."""
        self._used &= kept

    @property
    def used(self) -> frozenset[str]:
        """The identifiers in use."""
        return frozenset(self._used)
