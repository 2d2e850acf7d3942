"""The command line in this process, a small model on disk, and a machine without a compiler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.cli.main import main
from tilewright.graph.samples.samples import tiny_model


@dataclass(frozen=True)
class Done:
    """A finished command."""

    code: int
    out: str
    err: str


Command = Callable[..., Done]


@pytest.fixture(autouse=True, scope="session")
def _settings() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.delenv("CC", raising=False)
        yield


@pytest.fixture
def tilewright(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """tilewright("run", "model.onnx"): run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse ends the process itself
            code = int(exit_.code or 0)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of six nodes: image float32[1, 3, 8, 8] -> classes float32[1, 10]."""
    path = tmp_path_factory.mktemp("models") / "tiny.onnx"
    onnx.save(tiny_model().model, path)
    return path


@pytest.fixture(scope="session")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Relu of x float32[batch, 4]."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "relu")], "open", [x], [y])
    path = tmp_path_factory.mktemp("models") / "open.onnx"
    opset = helper.make_opsetid("", 13)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), path)
    return path


@pytest.fixture(scope="session")
def unknown_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with an operator that we do not have."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    node = helper.make_node("Frobnicate", ["x"], ["y"], "twist", domain="com.example")
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([node], "unknown", [x], [y])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.example", 1)]
    path = tmp_path_factory.mktemp("models") / "unknown.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


@pytest.fixture
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH without a compiler, and no ziglang wheel."""
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.setattr("tilewright.runtime.toolchain.compilers.find_spec", lambda name: None)
