"""Write models/ao_*.pt2: a small network as torchao's `quantize_` changes it, with an input and
what it computes.

    python tests/graph/importers/aten/make_quantized.py

Needs torch and torchao (the files here are of 2.13 and 0.18); nothing else of the tests does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn
from torchao.core.config import AOBaseConfig
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup
from torchao.utils import unwrap_tensor_subclass

MODELS = Path(__file__).parent / "models"
GROUP = PerGroup(32)
CONFIGS: dict[str, AOBaseConfig] = {
    "w4": IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=GROUP),
    "w8": Int8WeightOnlyConfig(),
    "a8w4": Int8DynamicActivationIntxWeightConfig(
        weight_dtype=torch.int4, weight_granularity=GROUP
    ),
    "a8w8": Int8DynamicActivationInt8WeightConfig(),
}


def main() -> None:
    """Quantise, open the number of rows, and write."""
    torch.manual_seed(0)
    x = torch.randn(3, 96)
    arrays = {"x": x.numpy()}
    for name, config in CONFIGS.items():
        torch.manual_seed(1)
        network = nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, 96)).eval()
        quantize_(network, config)
        with torch.no_grad():
            arrays[name] = network(x).numpy()
        unwrap_tensor_subclass(network)
        rows = torch.export.Dim("rows", min=1, max=32)
        made = torch.export.export(network, (x,), dynamic_shapes=({0: rows},))
        torch.export.save(made, MODELS / f"ao_{name}.pt2")
    np.savez_compressed(MODELS / "ao.npz", **arrays)


if __name__ == "__main__":
    main()
