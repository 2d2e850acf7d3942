"""The closed set of operators is what their files define."""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.graph.kernels.winograd import Winograd
from tilewright.graph.ops.registry import OPERATORS


def test_each_operator_of_each_file_is_in_the_set(root: Path) -> None:
    bases: dict[str, set[str]] = {}
    for path in (root / "graph" / "ops").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base) for base in node.bases}
    shared = set().union(*bases.values())
    found = {name for name, own in bases.items() if _is_operator(own, bases)} - shared
    assert [kind.__name__ for kind in OPERATORS] == sorted(found)


def _is_operator(own: set[str], bases: dict[str, set[str]]) -> bool:
    return "Operator" in own or any(_is_operator(bases.get(name, set()), bases) for name in own)


def test_an_algorithm_of_a_kernel_is_no_operator_of_a_model() -> None:
    assert Winograd not in OPERATORS
