from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilewright.tir.siblings import siblings


def test_modules_beside_one_and_in_folders_come_by_their_own_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("__init__", "table", "d", "a", "inner/__init__", "inner/c", "inner/b"):
        path = tmp_path / "set_of_files" / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    found = [module.__name__ for module in siblings("set_of_files.table")]
    for name in [name for name in sys.modules if name.startswith("set_of_files")]:
        monkeypatch.delitem(sys.modules, name)
    assert found == [f"set_of_files.{name}" for name in ("a", "inner.b", "inner.c", "d")]
