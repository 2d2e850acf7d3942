"""What tests read in the assembly of a kernel for x86."""

from __future__ import annotations

import re


def innermost_loops(assembly: str, multiply_adds: int) -> list[str]:
    """The innermost loops that hold so many multiply-adds."""
    found = re.findall(
        r"\.L\d+:\n((?:(?!\.L\d+:).)*?vfmadd.*?)\n\s+j\w+\s+\.L", assembly, re.DOTALL
    )
    return [loop for loop in found if loop.count("vfmadd") == multiply_adds]


def spills(loop: str) -> bool:
    """Whether a loop moves a vector to the stack or from it."""
    stack = r"-?\d*\(%r[sb]p\)"
    return bool(re.search(rf"vmov\w+\s+(%[xyz]mm\d+, {stack}|{stack}, %[xyz]mm)", loop))
