"""Functions and modules as torch.compile makes them with our backend."""

from __future__ import annotations

from typing import Any

import torch

from tilewright.interop.torch import backend

REFUSE = {"fallback": "refuse", "training": "refuse"}


def compiled(function: Any, options: dict[str, object] | None = None, **more: Any) -> Any:
    """What torch.compile makes with our backend, whose graphs no one else may run."""
    chosen = REFUSE if options is None else options
    return torch.compile(function, backend=backend, fullgraph=True, options=chosen, **more)


def assert_equal(got: Any, expected: Any) -> None:
    """As near as two orders of additions are."""
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def network() -> Any:
    """Two layers."""
    layers = torch.nn
    return layers.Sequential(layers.Linear(16, 32), layers.GELU(), layers.Linear(32, 8)).eval()
