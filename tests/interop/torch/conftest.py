"""What tests with torch share; where torch is not installed none of them is collected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Each test begins with nothing compiled, and the same random numbers."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The engines that torch.compile makes, in order."""
    from tilewright.interop.torch import graph_call

    made: list[Any] = []
    compile_engine = graph_call.compile_engine

    def counted(*args: Any, **options: Any) -> Any:
        made.append(compile_engine(*args, **options))
        return made[-1]

    monkeypatch.setattr(graph_call, "compile_engine", counted)
    return made
