"""What attentions need of sizes, and torch does not ask when it follows a program: that some are
equal, which it leaves to the kernel; and that others are numbers, by which scores are scaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import sympy

_ATTENTION = "aten._scaled_dot_product_flash_attention_for_cpu.default"


def solved(module: Any) -> dict[Any, Any]:
    """Symbols of a graph that others, or numbers, say, where its operators compute at all."""
    found: dict[Any, Any] = {}
    for one, other in _pairs(module.graph.nodes):
        left, right = (_expression(size).subs(found) for size in (one, other))
        for symbol in sorted((left - right).free_symbols, key=str, reverse=True):
            answers = sympy.solve(left - right, symbol, dict=True)
            if len(answers) == 1 and _is_whole(answers[0][symbol]):
                found = {key: value.subs(answers[0]) for key, value in found.items()}
                found |= answers[0]
                break
    return found


def scaling(module: Any) -> set[str]:
    """Symbols that are widths of heads."""
    found = (node.args[0].meta["val"].shape for node in module.graph.nodes if _attends(node))
    widths = (size for shape in found for size in (shape[-3], shape[-1]))
    return {str(symbol) for size in widths for symbol in _expression(size).free_symbols}


def _pairs(nodes: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Sizes that must be equal: of the keys, of the values and of a mask's last axis."""
    for node in nodes:
        if not _attends(node):
            continue
        key, value = (argument.meta["val"].shape for argument in node.args[1:3])
        yield key[-2], value[-2]
        mask = node.kwargs.get("attn_mask")
        if mask is not None:
            last = mask.meta["val"].shape[-1]
            if not isinstance(last, int) or last != 1:  # else it is the same for all keys
                yield last, key[-2]


def _attends(node: Any) -> bool:
    return str(node.target) == _ATTENTION


def _is_whole(expression: Any) -> bool:
    """Whether an expression is a whole number at each choice of its symbols."""
    factors = expression.as_coefficients_dict().values()
    return bool(expression.is_polynomial()) and all(factor.is_Integer for factor in factors)


def _expression(size: Any) -> Any:
    return sympy.Integer(size) if isinstance(size, int) else size.node.expr
