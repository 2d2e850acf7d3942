"""Networks of torch, trained in a minute or two each, as ONNX files: of scikit-learn's digits a
convolutional network, an LSTM and a GRU, and of this repository's README a GPT of characters; and
inputs that they have not seen.

Needs `pip install torch onnxscript scikit-learn`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import onnx
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from tilewright.graph.types import Array

from .causal_layer import CausalLayer

OPSET = 20
EPOCHS = 30
STEPS = 400  # of the GPT
LENGTH, WIDTH, HEADS, LAYERS = 32, 48, 4, 2
TEXT = Path(__file__).parents[2] / "README.md"


class _Rows(nn.Module):
    """A recurrent network that reads an image row by row."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.steps = kind(8, 32, batch_first=True)
        self.last = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        made, _ = self.steps(x)
        scores: Tensor = self.last(made[:, -1])
        return scores


class _Characters(nn.Module):
    """A GPT that says which character comes next."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.kinds, self.places = nn.Embedding(count, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(*(CausalLayer(WIDTH, HEADS) for _ in range(LAYERS)))
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, count)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.kinds(tokens) + self.places.weight
        scores: Tensor = self.last(self.norm(self.layers(x)))
        return scores


def _convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def _fit(network: nn.Module, batch: Callable[[], tuple[Tensor, Tensor]], steps: int) -> None:
    learner = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        x, wanted = batch()
        loss = nn.functional.cross_entropy(network(x).flatten(0, -2), wanted.flatten())
        learner.zero_grad()
        loss.backward()
        learner.step()
    network.eval()


def _of_digits(network: nn.Module) -> Tensor:
    """Train on three quarters of the images; the others."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images, dtype=torch.float32).view(-1, 8, 8) / 16, torch.tensor(labels)
    order = torch.randperm(len(x))
    known, others = order[: 3 * len(x) // 4], order[3 * len(x) // 4 :]

    def batch() -> tuple[Tensor, Tensor]:
        chosen = known[torch.randint(len(known), (64,))]
        return x[chosen], y[chosen]

    _fit(network, batch, EPOCHS * len(known) // 64)
    return x[others]


def _of_text() -> tuple[nn.Module, Tensor]:
    """Train on nine tenths of the text; the rest in pieces."""
    text = TEXT.read_text()
    kinds = sorted(set(text))
    tokens = torch.tensor([kinds.index(letter) for letter in text])
    known = 9 * len(tokens) // 10
    network = _Characters(len(kinds))

    def batch() -> tuple[Tensor, Tensor]:
        starts = torch.randint(known - LENGTH - 1, (32,)).tolist()
        pieces = torch.stack([tokens[start : start + LENGTH + 1] for start in starts])
        return pieces[:, :-1], pieces[:, 1:]

    _fit(network, batch, STEPS)
    rest = tokens[known:]
    return network, rest[: len(rest) // LENGTH * LENGTH].view(-1, LENGTH)


def _digits(make: Callable[[], nn.Module]) -> Callable[[], tuple[nn.Module, Tensor]]:
    def trained() -> tuple[nn.Module, Tensor]:
        network = make()
        return network, _of_digits(network)

    return trained


SUBJECTS: dict[str, Callable[[], tuple[nn.Module, Tensor]]] = {
    "network_digits_convolutional": _digits(_convolutional),
    "network_digits_lstm": _digits(lambda: _Rows(nn.LSTM)),
    "network_digits_gru": _digits(lambda: _Rows(nn.GRU)),
    "network_characters": _of_text,
}


def fitted(name: str) -> tuple[onnx.ModelProto, Array]:
    """A trained network, whose number of rows is open, and inputs that it has not seen."""
    torch.manual_seed(0)
    network, unknown = SUBJECTS[name]()
    file = io.BytesIO()
    torch.onnx.export(
        network,
        (unknown[:2],),
        file,
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {0: "n"}, "y": {0: "n"}},
        opset_version=OPSET,
        dynamo=False,
    )
    array: Array = unknown.numpy()
    return onnx.load_from_string(file.getvalue()), array
