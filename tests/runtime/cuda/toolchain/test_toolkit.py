from __future__ import annotations

from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tilewright.runtime.cuda.toolchain import toolkit
from tilewright.runtime.cuda.toolchain.toolkit import find_tool, library_candidates, wheel_roots


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site-packages with two wheels, and a toolkit."""
    spec = ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "nvidia")]
    monkeypatch.setattr(toolkit, "find_spec", lambda name: spec)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    monkeypatch.setenv("CUDA_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    files = ["nvidia/cu12/lib/libnvrtc.so.12", "nvidia/cu13/lib/libnvrtc.so.13"]
    files += ["nvidia/cu13/lib/libnvrtc-builtins.so.13.5", "nvidia/cu13/bin/nvdisasm"]
    files += ["toolkit/lib64/libnvrtc.so.9", "toolkit/lib64/libnvrtc.so.11", "path/ptxas"]
    files += ["toolkit/bin/ptxas", "toolkit/bin/nvdisasm", "path/cuobjdump"]
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o755)


def test_the_folder_of_the_newest_version_is_the_first(tmp_path: Path) -> None:
    assert wheel_roots() == (tmp_path / "nvidia/cu13", tmp_path / "nvidia/cu12")


def test_without_wheels_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "find_spec", lambda name: None)
    assert wheel_roots() == ()


def test_a_library_is_looked_for_in_wheels_then_toolkits_then_by_the_loader(tmp_path: Path) -> None:
    assert list(library_candidates("nvrtc")) == [
        str(tmp_path / "nvidia/cu13/lib/libnvrtc.so.13"),
        str(tmp_path / "nvidia/cu12/lib/libnvrtc.so.12"),
        str(tmp_path / "toolkit/lib64/libnvrtc.so.11"),
        str(tmp_path / "toolkit/lib64/libnvrtc.so.9"),
        "libnvrtc.so.13",
        "libnvrtc.so.12",
        "libnvrtc.so",
    ]


def test_a_tool_is_looked_for_in_wheels_then_toolkits_then_on_the_path(tmp_path: Path) -> None:
    assert find_tool("nvdisasm") == tmp_path / "nvidia/cu13/bin/nvdisasm"
    assert find_tool("ptxas") == tmp_path / "toolkit/bin/ptxas"
    assert find_tool("cuobjdump") == tmp_path / "path/cuobjdump"
    assert find_tool("nvcc") is None


def test_a_tool_that_may_not_be_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "nvidia/cu13/bin/nvdisasm").chmod(0o644)
    assert find_tool("nvdisasm") == tmp_path / "toolkit/bin/nvdisasm"
