"""Write models/pt2e.pt2: a small network that torchao quantised, with an input and its result.

    python tests/graph/importers/aten/make_pt2e.py

Needs torch and torchao (the file here is of 2.13 and 0.18); nothing else of the tests does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (
    X86InductorQuantizer,
    get_default_x86_inductor_quantization_config,
)

MODELS = Path(__file__).parent / "models"


class Network(nn.Module):
    """Convolutions, a residual sum, a pool, a mean, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.c, self.pool, self.last = nn.Conv2d(16, 32, 3, 2), nn.MaxPool2d(2), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        """[n, 3, 20, 20] -> [n, 10]"""
        y = torch.relu(self.a(x))
        y = torch.relu(self.b(y) + y)
        return self.last(self.pool(torch.relu(self.c(y))).mean((2, 3)))


def main() -> None:
    """Quantise, calibrate on random data, and write."""
    torch.manual_seed(0)
    x = torch.randn(2, 3, 20, 20)
    quantizer = X86InductorQuantizer()
    quantizer.set_global(get_default_x86_inductor_quantization_config())
    with torch.no_grad():
        network = torch.export.export(Network().eval(), (x,)).module()
        network = prepare_pt2e(network, quantizer)
        for _ in range(4):
            network(torch.randn(2, 3, 20, 20))
        network = convert_pt2e(network)
        torch.export.save(torch.export.export(network, (x,)), MODELS / "pt2e.pt2")
        np.savez_compressed(MODELS / "pt2e.npz", x=x.numpy(), y=network(x).numpy())


if __name__ == "__main__":
    main()
