"""What is installed is what stands in the folders."""

from __future__ import annotations

import ast
import configparser
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright


@pytest.fixture(scope="module")
def setup(root: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(root / "setup.cfg", encoding="utf-8")
    return parser


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_setup_lists_the_packages_that_have_an_init(
    setup: configparser.ConfigParser, sources: tuple[Path, ...], root: Path
) -> None:
    listed = setup["options"]["packages"].split()
    folders = [path.parent.relative_to(root).parts for path in sources if path.stem == "__init__"]
    assert listed == sorted(".".join(("tilewright", *parts)) for parts in folders)


def test_every_folder_with_python_has_an_init(sources: tuple[Path, ...], root: Path) -> None:
    bare = {path.parent for path in sources if not (path.parent / "__init__.py").exists()}
    assert not [str(folder.relative_to(root)) for folder in bare]


def test_the_version_is_the_same_in_both_places(setup: configparser.ConfigParser) -> None:
    assert tilewright.__version__ == setup["metadata"]["version"]


def test_every_public_name_has_its_home() -> None:
    for name in tilewright.__all__:
        assert getattr(tilewright, name) is not None
        assert name in dir(tilewright)


def test_type_checkers_are_told_the_names_that_exist_at_run_time(root: Path) -> None:
    tree = ast.parse((root / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
    told = {alias.asname for node in imports for alias in node.names}
    assert told == set(tilewright.__all__) - {"__version__"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tilewright' has no attribute 'tiles'"):
        _ = tilewright.tiles


@pytest.mark.parametrize("package", ["tir", "schedule", "codegen", "runtime", "driver", "cli"])
def test_a_bare_import_from_the_root_is_refused_with_a_hint(package: str, root: Path) -> None:
    done = run(f"import {package}", root)
    assert done.returncode == 1
    assert f"ImportError: '{package}' is a part of tilewright" in done.stderr
    assert f"import tilewright.{package}, not {package}" in done.stderr


def test_each_package_has_the_guard(sources: tuple[Path, ...]) -> None:
    inits = [path for path in sources[1:] if path.name == "__init__.py"]
    guard = 'if not __name__.startswith("tilewright."):\n    raise ImportError('
    assert not [path for path in inits if guard not in path.read_text(encoding="utf-8")]


def test_import_loads_no_dependency_and_no_package_of_ours(tmp_path: Path) -> None:
    code = "import sys; old = {*sys.modules}; import tilewright; print(*{*sys.modules} - old)"
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr
    heavy = {"numpy", "cffi", "islpy", "networkx", "onnx", "rich", "ml_dtypes"}
    heavy |= {"torch", "jax", "importlib.metadata"}
    loaded = set(done.stdout.split())
    assert not loaded & heavy
    assert not [name for name in loaded if name.startswith("tilewright.")]
