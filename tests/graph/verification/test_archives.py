"""Archives of torch.export beside PyTorch, for which a module stands that computes by NumPy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import ModelError
from tilewright.graph.importers.pt2.importer import import_pt2
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.verification import archives
from tilewright.graph.verification.systems import SystemMissing

Golden = Callable[[str, str], None]
SMALL = Path(__file__).parents[1] / "importers" / "aten" / "models" / "small.pt2"


@dataclass
class _Tensor:
    array: np.ndarray

    def detach(self) -> _Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.array


class _Program:
    """What stands for a loaded archive; its first output is off by `error`."""

    def __init__(self, path: str, error: float) -> None:
        self.graph, self.error = import_pt2(path), error
        self.graph_signature = SimpleNamespace(user_inputs=list(self.graph.inputs))
        self.call_spec = SimpleNamespace(in_spec="spec")

    def module(self) -> Callable[..., list[_Tensor]]:
        def call(*given: _Tensor) -> list[_Tensor]:
            inputs = {n: t.array for n, t in zip(self.graph.inputs, given, strict=True)}
            found = evaluate(self.graph, inputs, dtype=None)
            first, *others = (found[name] for name in self.graph.outputs)
            return [_Tensor(first + np.float32(self.error)), *map(_Tensor, others)]

        return call


@pytest.fixture
def error(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> float:
    """PyTorch is there, and its first output is off by so much."""
    found: float = request.param

    def unflattened(flat: Sequence[object], spec: object) -> tuple[object, object]:
        return flat, {}

    trees = SimpleNamespace(tree_unflatten=unflattened, tree_leaves=list)
    torch = SimpleNamespace(
        export=SimpleNamespace(
            load=lambda path: _Program(path, found), ExportedProgram=type("Exported", (), {})
        ),
        from_numpy=_Tensor,
        no_grad=nullcontext,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.utils", SimpleNamespace(_pytree=trees))
    monkeypatch.setattr(archives, "find_spec", lambda name: name)
    monkeypatch.setattr(archives, "version", lambda name: "2.13.0")
    return found


@pytest.mark.parametrize("error", [0.0, 0.01], indirect=True)
def test_an_archive_is_held_against_pytorch(error: float) -> None:
    report = tw.verify_model(SMALL, target="python", shapes={"tokens": (1, 4)}, seeds=1)
    assert report.system == "torch 2.13.0"
    assert [one.is_equal for one in report.outputs] == [error == 0.0, True, True]


def test_without_pytorch_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.setattr(archives, "find_spec", lambda name: None)
    with pytest.raises(SystemMissing) as caught:
        tw.verify_model(SMALL)
    golden("errors/verify_torch_missing.txt", str(caught.value))


def test_other_systems_do_not_run_archives(golden: Golden) -> None:
    with pytest.raises(ModelError) as caught:
        tw.verify_model(SMALL, against="reference")
    golden("errors/verify_archive.txt", str(caught.value))
