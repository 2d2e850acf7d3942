"""The code of the pages that need a library of others runs, where that is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_of_jax_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("jax", "flax"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    text = (root / "tutorials" / "functions_of_jax.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code in BLOCK.findall(text):
        exec(compile(code, "functions_of_jax.md", "exec"), names)
    said = capsys.readouterr().out
    assert "jax.svd: there is no rule for it" in said
    assert "jax.lgamma: there is no rule for it" in said


@pytest.mark.needs_cc
def test_the_page_of_calibration_runs(
    root: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (root / "tutorials" / "calibration.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for code in BLOCK.findall(text):
        exec(compile(code, "calibration.md", "exec"), names)
    said = capsys.readouterr().out
    assert said.startswith("calibration of 'tiny' by entropy: ")
    assert said == f"{names['again']}\n"
