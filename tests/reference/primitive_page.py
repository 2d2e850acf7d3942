"""The page of JAX's primitives: which have a rule, by the module that has it."""

from __future__ import annotations

from tilewright.graph.importers.jaxpr.rules import table
from tilewright.tir.siblings import siblings

_HEAD = """# Primitives of JAX

Functions of JAX are [compiled](../functions_of_jax.md) from their jaxprs. These primitives have a
rule; all others are refused at once, each with the line that made it. A parameter that a rule does
not know is refused, too.
"""


def primitive_page() -> str:
    """A heading for each module of rules, as its docstring has it, and its primitives."""
    parts = [_HEAD]
    for module in siblings(table.__name__):
        rules = getattr(module, "RULES", {})
        first = (module.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        names = ", ".join(f"`{name}`" for name in sorted(rules))
        title = first.removeprefix("Rules of ").rstrip(".")
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n{names}\n")
    return "\n".join(parts)
