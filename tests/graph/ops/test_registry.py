"""The closed set of operators is what their files define."""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.graph.ops.registry import OPERATORS
from tilewright.graph.winograd import Winograd

SHARED = {"ArgReduction", "Elementwise", "Operator", "Reduction", "Spatial"}


def test_each_operator_of_each_file_is_in_the_set(root: Path) -> None:
    bases: dict[str, set[str]] = {}
    for path in (root / "graph" / "ops").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base) for base in node.bases}
    found = {name for name, own in bases.items() if own & SHARED} - SHARED
    assert [kind.__name__ for kind in OPERATORS] == sorted(found)


def test_an_algorithm_of_a_kernel_is_no_operator_of_a_model() -> None:
    assert Winograd not in OPERATORS
