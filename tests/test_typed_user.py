"""Typed code of a user: what checkers say of it, what it gives, and what completion offers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import tilewright as tw
from tilewright import te
from tilewright.graph.samples.samples import tiny_model

from . import typed_user

ROOT = Path(tw.__file__).parent
USER = Path(typed_user.__file__)
WRONG = """\
import tilewright as tw
from tilewright import te

kernel = tw.build(te.func(name="f"))
number: int = kernel(1)
kernel.sauce
tw.Kernell
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A user's project beside an installed tilewright."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "tilewright").symlink_to(ROOT)
    shutil.copy(USER, tmp_path / "user.py")
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def test_mypy_finds_nothing_in_it_and_what_is_wrong_elsewhere(project: Path) -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--cache-dir", str(project / "cache"), "--no-error-summary"]
    command += ["--config-file=", "user.py", "wrong.py"]
    environment = {"MYPYPATH": "site"}
    found = subprocess.run(
        command, cwd=project, capture_output=True, text=True, check=False, env=environment
    )
    lines = [line.split(": error: ") for line in found.stdout.splitlines() if "error" in line]
    assert [place for place, _ in lines] == ["wrong.py:5", "wrong.py:6", "wrong.py:7"], found.stdout


def test_pyright_finds_nothing_in_it_and_what_is_wrong_elsewhere(project: Path) -> None:
    """In its standard mode, as an editor asks; basedpyright is pyright, all of it on PyPI."""
    pytest.importorskip("basedpyright")
    settings = {"extraPaths": ["site"], "typeCheckingMode": "standard"}
    settings |= {"include": ["user.py", "wrong.py"]}
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    found = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(found.stdout)["generalDiagnostics"]
    errors = [one for one in told if one["severity"] == "error"]
    places = [(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors]
    assert places == [("wrong.py", 5), ("wrong.py", 6), ("wrong.py", 7)], found.stdout


def test_it_runs() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((16, 16), dtype=np.float32) for _ in range(2))
    np.testing.assert_allclose(typed_user.product(a, b), a @ b, rtol=1e-4, atol=1e-5)
    values, places = typed_user.largest(a)
    np.testing.assert_array_equal(values, a.max(axis=1))
    np.testing.assert_array_equal(places, a.argmax(axis=1))


def test_its_operator_is_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    onnx.save(tiny_model().model, path)
    report = typed_user.extend(str(path))
    assert report, report


@pytest.mark.parametrize("module", [tw, te], ids=["tw", "te"])
def test_completion_offers_the_public_names_alone(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert dir(module) == sorted(names)
    assert all(hasattr(module, name) for name in names)
