"""Every tutorial runs from its first cell to its last, and stands in the repository with what it
showed.
"""

from __future__ import annotations

import asyncio
import re
from itertools import groupby
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[2] / "tutorials"
NOTEBOOKS = sorted(path.name for path in FOLDER.rglob("*.ipynb") if ".ipynb_" not in str(path))
SECONDS = 120  # for one cell
GALLERY = FOLDER / "gallery"
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


def read(name: str) -> NotebookNode:
    path = next(path for path in FOLDER.rglob("*.ipynb") if path.name == name)
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(cell: NotebookNode) -> list[str]:
    """The kinds of what a cell showed; a stream may come in several messages, as time has it."""
    return [kind for kind, _ in groupby(output.output_type for output in cell.outputs)]


def test_there_are_tutorials() -> None:
    assert NOTEBOOKS
    assert len(NOTEBOOKS) == len(set(NOTEBOOKS)), "a tutorial is found by its name alone"


def test_the_gallery_lists_each_of_its_notebooks_once() -> None:
    page = (GALLERY / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[\w+\]\((\w+\.ipynb)\)", page, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in GALLERY.glob("*.ipynb"))


def test_the_links_of_the_gallery_lead_somewhere() -> None:
    pages = {"README.md": (GALLERY / "README.md").read_text(encoding="utf-8")}
    for path in GALLERY.glob("*.ipynb"):
        cells = read(path.name).cells
        pages[path.name] = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    links = [(name, link) for name, text in pages.items() for link in LINK.findall(text)]
    assert {name for name, _ in links} == set(pages), "each says where to read on"
    assert [(name, link) for name, link in links if not (GALLERY / link).exists()] == []


@pytest.mark.needs_cc
@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_tutorial_runs_and_shows_what_it_showed_before(name: str, tmp_path: Path) -> None:
    kept = read(name)
    if "import torch" in "\n".join(cell.source for cell in code_cells(kept)):
        pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
    notebook = read(name)
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    )
    asyncio.run(client.async_execute())
    for before, after in zip(code_cells(kept), code_cells(notebook), strict=True):
        assert shown(after) == shown(before), after.source
        assert "stderr" not in [output.get("name") for output in after.outputs], after.source


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_tutorial_is_kept_as_it_ran(name: str) -> None:
    cells = code_cells(read(name))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert any(shown(cell) for cell in cells)
    assert "error" not in [kind for cell in cells for kind in shown(cell)]
