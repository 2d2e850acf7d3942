"""Every error code of the sources stands in a golden text, `[that-code]`, of some test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

CODE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@cache
def codes_in(path: Path) -> dict[str, int]:
    """Each code that a file gives to an error, with its line: the literals of `code="..."`."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.keyword) or node.arg != "code":
            continue
        for part in ast.walk(node.value):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                found.setdefault(part.value, part.lineno)
    return found


def test_every_error_code_is_shown_whole_by_a_golden(sources: tuple[Path, ...], root: Path) -> None:
    files = [path for path in (root / "tests").rglob("*") if path.suffix in {".py", ".txt"}]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    missing = [
        f"{path.relative_to(root)}:{line}: [{code}]"
        for path in sources
        for code, line in codes_in(path).items()
        if f"[{code}]" not in text
    ]
    assert not missing, "codes without a golden:\n" + "\n".join(missing)


def test_error_codes_are_short_and_in_kebab_case(sources: tuple[Path, ...]) -> None:
    codes = {code for path in sources for code in codes_in(path)}
    assert not [code for code in codes if not CODE.fullmatch(code) or len(code) > 40]


def test_the_collector_sees_literals_conditional_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text('raise E("x", code="one" if a else "two")\nF(other="three")\n')
    assert codes_in(path) == {"one": 1, "two": 1}
