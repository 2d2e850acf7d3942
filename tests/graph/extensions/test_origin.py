"""Where classes of others come from."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from tilewright.graph import LOADED
from tilewright.graph.extensions.origin import is_ours, origin_of
from tilewright.graph.ops.activation import Relu


@pytest.fixture(autouse=True)
def fresh() -> None:
    origin_of.cache_clear()


def module(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of a file that is older than this process."""
    os.utime(path, (LOADED - 9, LOADED - 9))
    spec = importlib.util.spec_from_file_location(
        name, path, submodule_search_locations=[str(path.parent)] if "init" in path.stem else None
    )
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, made)
    spec.loader.exec_module(made)
    return made


def test_ours_is_ours_and_a_test_is_not() -> None:
    class Local:
        pass

    assert is_ours(Relu)
    assert not is_ours(Local)


def test_the_digest_is_that_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.py"
    path.write_text("class A: pass\nclass B: pass\n")
    own = module(path, "own", monkeypatch)
    a, b = origin_of(own.A), origin_of(own.B)
    assert (a.package, a.place, a.unknown) == ("", "own.A", "")
    assert a.digest == b.digest != ""
    assert a.key != b.key
    assert str(a) == "'own.A'"
    path.write_text("class A: pass\nclass B: pass\n\n")
    again = module(path, "own", monkeypatch)
    assert origin_of(again.A).digest != a.digest


def test_the_digest_of_a_package_covers_all_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "pack"
    (folder / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/helper.py"):
        (folder / name).write_text("")
        os.utime(folder / name, (LOADED - 9, LOADED - 9))
    (folder / "one.py").write_text("class A: pass\n")
    module(folder / "__init__.py", "pack", monkeypatch)
    one = module(folder / "one.py", "pack.one", monkeypatch)
    before = origin_of(one.A).digest
    (folder / "inner" / "helper.py").write_text("# changed\n")
    os.utime(folder / "inner" / "helper.py", (LOADED - 9, LOADED - 9))
    origin_of.cache_clear()
    assert origin_of(one.A).digest != before


def test_a_file_that_changed_meanwhile_is_not_what_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "late.py"
    path.write_text("class A: pass\n")
    late = module(path, "late", monkeypatch)
    os.utime(path, (time.time() + 9, time.time() + 9))
    found = origin_of(late.A)
    assert (found.key, found.unknown) == (None, "'late.py' changed while this process ran")


def test_what_a_function_makes_may_hold_anything() -> None:
    class Local:
        pass

    found = origin_of(Local)
    assert found.key is None
    assert found.unknown == "a function made it"


def test_an_installed_package_is_named_with_its_version() -> None:
    found = origin_of(pytest.MonkeyPatch)
    assert found.package.startswith("pytest ")
    assert found.key is not None
