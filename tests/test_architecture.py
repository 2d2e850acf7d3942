"""The house keeps its shape: who may import whom, no cycles, sizes, names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import networkx as nx

MAY_IMPORT: dict[str, frozenset[str]] = {
    "tir": frozenset(),
    "schedule": frozenset({"tir"}),
    "codegen": frozenset({"tir"}),
    "runtime": frozenset({"tir", "codegen"}),
    "driver": frozenset({"tir", "schedule", "codegen", "runtime"}),
    "graph": frozenset({"tir", "schedule", "codegen", "runtime", "driver"}),
    "autotune": frozenset({"tir", "schedule", "codegen", "runtime", "driver"}),
    "cli": frozenset({"tir", "schedule", "codegen", "runtime", "driver", "graph", "autotune"}),
    "interop": frozenset({"tir", "runtime", "graph"}),
}
FILE_LINES, FUNCTION_LINES, INIT_LINES = 500, 60, 40
ROOT_LINES = 160  # the root's __init__ also says where each public name lives

# Named exceptions to the caps: "path" or "path::function" -> its lines. This list may only shrink.
EXCEPTIONS: dict[str, int] = {}

# Class names that are used more than once, and how often. A name means one thing in the whole
# product, so this list may only shrink. The operators of graph/ops are named as ONNX names them.
REPEATED_NAMES: dict[str, int] = {
    "Add": 2,
    "And": 2,
    "Cast": 2,
    "Div": 2,
    "Max": 2,
    "Min": 2,
    "Mul": 2,
    "Not": 2,
    "Or": 2,
    "Parameter": 2,
    "Slice": 2,
    "Sub": 2,
    "Sum": 2,
    "Tile": 2,
}

# Text that must not stand in a file of ours: paths and tools of the machine it was written on.
FOREIGN = re.compile(
    r"(?<![\w.\-/:])/(?:home|root|work|Users)/\w"
    r"|\.\./shar[e]d\b"
    r"|/tmp/t[w]\b"
    r"|\bpyen[v]\b"
    r"|\bissues (?:show|list|comment|close)\b"
)
TEXT = {".py", ".md", ".cfg", ".toml", ".yaml", ".c", ".h", ".txt", ".ipynb", ".sh", ".json"}


@dataclass(frozen=True)
class Outline:
    """What a file imports and defines, wherever that stands in it: its import statements; name and
    lines of each function, from its first decorator to its last line; the names of its classes.
    """

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    functions: tuple[tuple[str, int], ...]
    classes: tuple[str, ...]


@cache
def outline(path: Path) -> Outline:
    """The outline of a file, which is parsed once for all tests."""
    imports, functions, classes = [], [], []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            functions.append((node.name, (node.end_lineno or node.lineno) - first + 1))
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name)
    return Outline(tuple(imports), tuple(functions), tuple(classes))


def module_name(path: Path, root: Path) -> str:
    """`tir/expr.py` -> `tilewright.tir.expr`; a package is named by its folder."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(("tilewright", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imported_names(path: Path, root: Path) -> Iterator[str]:
    """Absolute names of all that a file imports; `from a import b` gives `a.b`."""
    name = module_name(path, root)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in outline(path).imports:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            relative = "." * node.level + (node.module or "")
            base = resolve_name(relative, package) if node.level else relative
            yield from (f"{base}.{alias.name}" for alias in node.names)


def import_graph(sources: tuple[Path, ...], root: Path) -> nx.DiGraph:
    """Edges from module to module of ours; the root, which holds lazy names only, has none."""
    modules = {module_name(path, root) for path in sources}
    graph = nx.DiGraph()
    graph.add_nodes_from(modules)
    for path in sources[1:]:
        for target in imported_names(path, root):
            while target not in modules and "." in target:
                target = target.rpartition(".")[0]
            if target in modules:
                graph.add_edge(module_name(path, root), target)
    return graph


def cap(path: Path, root: Path) -> int:
    """The most lines that a file may have."""
    if path.name == "__init__.py":
        return ROOT_LINES if path.parent == root else INIT_LINES
    return FILE_LINES


def over_the_cap(files: tuple[Path, ...], root: Path) -> dict[str, tuple[int, int]]:
    """Each file and function that is longer than its cap: its lines and the cap."""
    found = {}
    for path in files:
        name = str(path.relative_to(root))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        parts = [(name, lines, cap(path, root))]
        parts += [
            (f"{name}::{part}", size, FUNCTION_LINES) for part, size in outline(path).functions
        ]
        found.update({part: (size, most) for part, size, most in parts if size > most})
    return found


def test_packages_import_only_what_the_table_allows(sources: tuple[Path, ...], root: Path) -> None:
    wrong = []
    for importer, target in import_graph(sources, root).edges:
        layer, other = importer.split(".")[1], target.partition(".")[2].partition(".")[0]
        if other != layer and other not in MAY_IMPORT[layer]:
            wrong.append(f"{importer} imports {target}: {layer} may not import '{other}'")
    assert not wrong, "\n".join(wrong)


def test_modules_form_no_cycle(sources: tuple[Path, ...], root: Path) -> None:
    knots = nx.strongly_connected_components(import_graph(sources, root))
    cycles = [" <-> ".join(sorted(knot)) for knot in knots if len(knot) > 1]
    assert not cycles, "\n".join(cycles)


def folder_graphs(modules: nx.DiGraph) -> dict[str, nx.DiGraph]:
    """For each folder, the edges between the folders in it: the one holds a module that imports a
    module in the other.
    """
    graphs: dict[str, nx.DiGraph] = {}
    for importer, target in modules.edges:
        one, other = importer.split(".")[:-1], target.split(".")[:-1]
        same = 0
        while same < min(len(one), len(other)) and one[same] == other[same]:
            same += 1
        if same < min(len(one), len(other)):
            graph = graphs.setdefault(".".join(one[:same]), nx.DiGraph())
            graph.add_edge(one[same], other[same])
    return graphs


def test_folders_side_by_side_form_no_cycle(sources: tuple[Path, ...], root: Path) -> None:
    cycles = [
        f"{folder}: " + " <-> ".join(sorted(knot))
        for folder, graph in folder_graphs(import_graph(sources, root)).items()
        for knot in nx.strongly_connected_components(graph)
        if len(knot) > 1
    ]
    assert not cycles, "\n".join(cycles)


def test_a_class_name_means_one_thing(sources: tuple[Path, ...]) -> None:
    names = Counter(
        name for path in sources for name in outline(path).classes if not name.startswith("_")
    )
    assert {name: count for name, count in names.items() if count > 1} == REPEATED_NAMES


def test_imports_between_packages_are_relative(sources: tuple[Path, ...], root: Path) -> None:
    wrong = []
    for path in sources[1:]:
        for node in outline(path).imports:
            absolute = isinstance(node, ast.Import) or node.level == 0
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if absolute and any(
                name.split(".")[0] in {"tilewright", *MAY_IMPORT} for name in names
            ):
                wrong.append(f"{path.relative_to(root)}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)


def test_files_and_functions_stay_under_their_caps(
    python_files: tuple[Path, ...], root: Path
) -> None:
    over = [
        f"{name}: {lines} lines, at most {EXCEPTIONS.get(name, most)}"
        for name, (lines, most) in over_the_cap(python_files, root).items()
        if lines > EXCEPTIONS.get(name, most)
    ]
    assert not over, "\n".join(over)


def test_each_exception_to_the_caps_is_as_small_as_its_subject(
    python_files: tuple[Path, ...], root: Path
) -> None:
    lines = {name: size for name, (size, _) in over_the_cap(python_files, root).items()}
    assert {name: lines.get(name) for name in EXCEPTIONS} == EXCEPTIONS


def test_no_file_is_a_drawer_for_everything(python_files: tuple[Path, ...]) -> None:
    drawers = {"utils.py", "util.py", "helpers.py", "misc.py", "common.py"}
    assert not [path for path in python_files if path.name in drawers]


def test_the_root_holds_no_python_file_but_its_init(root: Path) -> None:
    """Any other one would land in the wheel as a module of the package."""
    assert [path.name for path in root.glob("*.py")] == ["__init__.py"]


def test_nothing_names_the_machine_it_was_written_on(root: Path) -> None:
    folders = [*MAY_IMPORT, "tests", "benchmarks", "tutorials", ".ci"]
    files = [path for path in root.iterdir() if path.is_file()]
    files += [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    wrong = []
    for path in files:
        if path.suffix in TEXT or path.parent.name == ".ci":
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if found := FOREIGN.search(line):
                    wrong.append(f"{path.relative_to(root)}:{number}: {found.group()}")
    assert not wrong, "\n".join(wrong)


def test_the_import_graph_sees_relative_imports_in_functions_and_of_packages(
    tmp_path: Path,
) -> None:
    texts = {
        "__init__.py": "",
        "tir/__init__.py": "",
        "tir/a.py": "def f():\n    from ..schedule.b import g\n",
        "schedule/__init__.py": "from . import b\n",
        "schedule/b.py": "import numpy\nfrom ..tir import a\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    edges = import_graph(tuple(tmp_path / name for name in texts), tmp_path).edges
    tir, schedule = "tilewright.tir", "tilewright.schedule"
    assert set(edges) == {
        (f"{tir}.a", f"{schedule}.b"),
        (schedule, f"{schedule}.b"),
        (f"{schedule}.b", f"{tir}.a"),
    }


def test_folders_are_joined_by_the_imports_of_what_lies_in_them() -> None:
    edges = [("p.a.x", "p.b.c.y"), ("p.b.z", "p.a.x"), ("p.a.x", "p.loose"), ("p.a.x", "p.a.w")]
    graphs = folder_graphs(nx.DiGraph(edges))
    assert {name: set(graph.edges) for name, graph in graphs.items()} == {
        "p": {("a", "b"), ("b", "a")}
    }
