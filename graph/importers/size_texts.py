"""What readers of sizes that are texts have in common: of SymPy's, which PyTorch writes, and JAX's.
They are parsed as Python, by a list of what is allowed, and never evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...tir.sizes import AnySize, product_of, quotient

LONGEST = 4096  # characters of a text
DEEPEST = 32
_LARGEST_POWER = 8


class UnknownSize(Exception):
    """A text is no size, or says what sizes cannot be."""


def parsed(text: str) -> ast.expr:
    """The expression that a text is. Raises: UnknownSize."""
    if len(text) > LONGEST:
        raise UnknownSize(f"an expression of {len(text)} characters")
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnknownSize(f"'{text[:80]}'") from error


def unknown(tree: ast.expr) -> UnknownSize:
    """What is wrong with an expression that is not allowed."""
    return UnknownSize(f"'{ast.unparse(tree)[:80]}'")


def check_depth(depth: int) -> None:
    """Raises: UnknownSize for an expression within too many others."""
    if depth > DEEPEST:
        raise UnknownSize("an expression within too many others")


def known_symbol(name: str, symbols: Mapping[str, AnySize]) -> AnySize:
    """The size that a symbol is. Raises: UnknownSize where no input has it."""
    if name not in symbols:
        raise UnknownSize(f"the symbol '{name}', which no input has")
    return symbols[name]


def power(base: AnySize, exponent: AnySize) -> AnySize:
    """A size to a small power. Raises: UnknownSize."""
    if not isinstance(exponent, int) or not 0 <= exponent <= _LARGEST_POWER:
        raise UnknownSize(f"the power {exponent} of a size")
    return product_of([base] * exponent)


def remainder(a: AnySize, b: AnySize) -> AnySize:
    """What is left of a size divided by another, which is positive."""
    return a - quotient(a, b) * b
