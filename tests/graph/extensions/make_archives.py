"""Write the archives of this folder: programs that call operators of a library of one's own.

    python tests/graph/extensions/make_archives.py

Needs torch (the files here are of 2.13); nothing else of the tests does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

HERE = Path(__file__).parent


@torch.library.custom_op("my::mish", mutates_args=())
def mish(x: Tensor, beta: float = 1.0) -> Tensor:
    return x * torch.tanh(softplus(beta * x))


@torch.library.custom_op("my::near_mean", mutates_args=())
def near_mean(x: Tensor, width: int) -> Tensor:
    return x.unfold(-1, width, 1).mean(-1)


@torch.library.custom_op("my::scale_", mutates_args=("x",))
def scale(x: Tensor, by: float) -> None:
    x.mul_(by)


@mish.register_fake
def _(x: Tensor, beta: float = 1.0) -> Tensor:
    return torch.empty_like(x)


@near_mean.register_fake
def _(x: Tensor, width: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], x.shape[-1] - width + 1))


class _Calls(nn.Module):
    """The two operators between a product and what is fused."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = nn.Linear(8, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mish behind a product, and means of it."""
        y = torch.ops.my.mish(self.mixed(x), 0.5)
        return torch.ops.my.mish(x) + 1, torch.relu(torch.ops.my.near_mean(y, width=4))


class _Writes(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """An operator that changes its argument."""
        y = torch.relu(x)
        torch.ops.my.scale_(y, 2.0)
        return y


def main() -> None:
    torch.manual_seed(0)
    calls = _Calls().eval()
    x = torch.randn(3, 8)
    rows = torch.export.Dim("rows", min=1, max=64)
    for name, module, shapes in (("calls", calls, ({0: rows},)), ("writes", _Writes(), None)):
        exported = torch.export.export(module, (x,), dynamic_shapes=shapes)
        torch.export.save(exported, HERE / f"{name}.pt2")
    arrays = {"x": x.numpy()}
    with torch.no_grad():
        arrays |= {f"y{n}": y.numpy() for n, y in enumerate(calls(x))}
    np.savez_compressed(HERE / "calls.npz", **arrays)


if __name__ == "__main__":
    main()
