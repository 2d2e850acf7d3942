"""Back ends write C an expression or a statement at a time: no kernel hides in a string."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tilewright.codegen.c.program_frame import FOR

LONGEST = 120

# The entry's frame, and what it may hold: texts around generated code, no kernel.
FRAMES = (
    "codegen/c/program_frame.py",
    "codegen/c/export_frame.py",
    "codegen/cuda/device_functions.py",  # each a function of one instruction of PTX
)
POOLS = (
    "runtime/cpu/fibers.c",
    "runtime/cpu/gates.c",
    "runtime/cpu/places.c",
    "runtime/cpu/pool.c",
    "runtime/measure/probes.c",
)  # the thread pool; what measures the machine


def texts(source: str) -> dict[int, str]:
    """The string literals of a Python source by line, those of one f-string joined, without
    docstrings.
    """
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values}
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [p.value if isinstance(p, ast.Constant) else "x" for p in node.values]
            found[node.lineno] = "".join(map(str, parts))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            found[node.lineno] = node.value
    return found


def test_no_text_of_the_back_end_is_longer_than_an_expression(
    root: Path, sources: tuple[Path, ...]
) -> None:
    files = [path for path in sources if path.is_relative_to(root / "codegen")]
    assert len(files) > 20
    long = [
        f"{path.relative_to(root)}:{line}: {len(text)} characters"
        for path in files
        if str(path.relative_to(root)) not in FRAMES
        for line, text in texts(path.read_text(encoding="utf-8")).items()
        if len(text) > LONGEST
    ]
    assert not long, "\n".join(long)


def test_no_text_outside_of_the_frames_holds_a_loop(root: Path, sources: tuple[Path, ...]) -> None:
    """Loops are written from a For, in one place for both languages."""
    loops = [
        f"{path.relative_to(root)}:{line}"
        for path in sources
        if path.is_relative_to(root / "codegen") and str(path.relative_to(root)) not in FRAMES
        for line, text in texts(path.read_text(encoding="utf-8")).items()
        if re.search(r"\b(for|while) \(", text)
    ]
    assert [place.partition(":")[0] for place in loops] == ["codegen/text/statements.py"]


@pytest.mark.parametrize("frame", FRAMES[:1])
def test_a_frame_has_no_vector_and_no_loop_but_a_models(frame: str, root: Path) -> None:
    for text in texts((root / frame).read_text(encoding="utf-8")).values():
        assert text == FOR or not re.search(r"\b(for|while|do)\b *[({]|_mm\d*_", text), text


def test_the_only_files_of_c_are_the_pool_the_probes_and_the_emulation(
    root: Path, sources: tuple[Path, ...]
) -> None:
    layers = {path.parent for path in sources}
    found = {str(c.relative_to(root)) for folder in layers for c in folder.glob("*.[ch]")}
    assert found == {*POOLS, "runtime/cuda/emulator/emulation.h"}


def test_the_collector_joins_f_strings_and_skips_docstrings() -> None:
    assert texts('"""doc"""\na = f"one {a} two"\nb = "three" "four"\n') == {
        2: "one x two",
        3: "threefour",
    }
