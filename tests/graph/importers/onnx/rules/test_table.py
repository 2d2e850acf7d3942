"""The table holds the rules of every file, one of each operator."""

from __future__ import annotations

import ast
from pathlib import Path

from tilewright.graph.importers.onnx.rules.table import RULES


def test_each_rule_of_each_file_is_in_the_table(root: Path) -> None:
    found: list[str] = []
    for path in (root / "graph" / "importers" / "onnx" / "rules").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
                assert ast.unparse(node.target) == "RULES"
                found += [ast.literal_eval(key) for key in node.value.keys if key is not None]
    assert sorted(RULES) == sorted(found)
