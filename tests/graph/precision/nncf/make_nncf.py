"""Writes models that NNCF quantised, for ../test_nncf_models.py.

    python tests/graph/precision/nncf/make_nncf.py

Needs torch, transformers, onnx and nncf (3.4 made the files that stand here). The first is a
network of convolutions, one depthwise, with a residual sum; the second BERT of one layer. Each is
exported by torch and quantised by ranges of random data: its levels have no sign, or may have one.
"""

from __future__ import annotations

import io
from pathlib import Path

import nncf
import numpy as np
import onnx
import torch
from torch import nn
from transformers import BertConfig, BertModel

HERE = Path(__file__).parent
RANDOM = np.random.default_rng(0)


class Network(nn.Module):
    """Images of 3 channels to 10 numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, 2, 1)
        self.depthwise = nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.pointwise = nn.Conv2d(16, 24, 1)
        self.last = nn.Conv2d(24, 24, 3, 1, 1)
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: [1, 3, 24, 24]; the result: [1, 10]."""
        x = torch.clamp(self.depthwise(torch.relu(self.first(x))), 0, 6)
        x = torch.relu(self.pointwise(x))
        return self.head(torch.relu(x + self.last(x)).mean((2, 3)))


class Encoder(nn.Module):
    """BERT of one layer."""

    def __init__(self) -> None:
        super().__init__()
        sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64}
        config = BertConfig(vocab_size=50, num_hidden_layers=1, max_position_embeddings=24, **sizes)
        config._attn_implementation = "eager"
        self.model = BertModel(config)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """ids, mask: [1, 24]; the result: [1, 24, 32]."""
        return self.model(input_ids=ids, attention_mask=mask).last_hidden_state


def image() -> dict[str, np.ndarray]:
    return {"x": RANDOM.standard_normal((1, 3, 24, 24)).astype(np.float32)}


def words() -> dict[str, np.ndarray]:
    return {"ids": RANDOM.integers(0, 50, (1, 24)), "mask": np.ones((1, 24), np.int64)}


def main() -> None:
    torch.manual_seed(0)
    kinds = {"network": (Network(), image, None), "encoder": (Encoder(), words, "transformer")}
    for name, (module, draw, kind) in kinds.items():
        file, given = io.BytesIO(), draw()
        tensors = tuple(torch.from_numpy(array) for array in given.values())
        names = {"input_names": list(given), "output_names": ["y"]}
        torch.onnx.export(module.eval(), tensors, file, **names, opset_version=17, dynamo=False)
        model = onnx.load_model_from_string(file.getvalue())
        for preset in nncf.QuantizationPreset:
            quantised = nncf.quantize(
                model,
                nncf.Dataset([draw() for _ in range(20)]),
                preset=preset,
                subset_size=20,
                model_type=None if kind is None else nncf.ModelType(kind),
            )
            onnx.save(quantised, HERE / f"{name}_{preset.value}.onnx")


if __name__ == "__main__":
    main()
