"""The models that we are measured on, as ONNX files: architectures of transformers, exported by
torch.onnx, with weights from a seeded generator.

    python -m benchmarks.export FOLDER [NAME ...] [--batch 1] [--open]

Needs what `pip install -e ".[models]"` brings. Shapes are fixed; a batch other than 1 is part of a
file's name. --open: batches and lengths stay open, and NAME_open.onnx is written. Networks with
batch normalisation take its statistics from random images, as training would leave them, so that
their outputs answer to their inputs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn

from .subjects.exported import one_of

OPSET = 20
SEQUENCE = 128
CLASSES = 1000
SIDE = 224
EXAMPLES = 2  # in a batch from which one of any size is exported


@dataclass(frozen=True)
class Exported:
    """A network, example inputs by name, and the names of what it returns.

    axes: the sizes that each input may leave open, by axis.
    """

    network: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    axes: dict[str, dict[int, str]]


class Adapter(nn.Module):
    """A network as a function of plain tensors."""

    def __init__(self, network: nn.Module, call: Callable[..., object]) -> None:
        super().__init__()
        self.network = network
        self._call = call

    def forward(self, *tensors: Tensor) -> object:
        return self._call(self.network, *tensors)


def pictures(batch: int, generator: torch.Generator) -> Tensor:
    """Images of noise at two scales, each of its own contrast."""
    coarse = torch.randn(batch, 3, 8, 8, generator=generator)
    shapes = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")
    contrast = 0.5 + torch.rand(batch, 1, 1, 1, generator=generator)
    return shapes * contrast + torch.randn(batch, 3, SIDE, SIDE, generator=generator) / 4


def seed(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """Weights that keep the scale of what passes; norms away from the identity; for inference."""
    with torch.no_grad():
        for part in network.modules():
            if isinstance(part, (nn.Conv2d, nn.Linear)):
                deviation = (1.5 / part.weight[0].numel()) ** 0.5
                part.weight.normal_(0.0, deviation, generator=generator)
            elif isinstance(part, (nn.BatchNorm2d, nn.LayerNorm)):
                part.weight.uniform_(0.7, 1.1, generator=generator)
            else:
                continue
            if part.bias is not None:
                part.bias.normal_(0.0, 0.05, generator=generator)
    return network.eval()


def settle(network: nn.Module, generator: torch.Generator) -> nn.Module:
    """Take the statistics of all batch norms from random images."""
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all images
        norm.train()
    with torch.no_grad():
        for _ in range(4):
            network(pictures(2, generator))
    return network.eval()


def _vision(network: nn.Module, batch: int, generator: torch.Generator) -> Exported:
    seeded = Adapter(seed(network, generator), lambda net, x: net(x).logits)
    images = {"x": pictures(batch, generator)}
    return Exported(settle(seeded, generator), images, ("logits",), {"x": {0: "batch"}})


def resnet50(batch: int, generator: torch.Generator) -> Exported:
    config = transformers.ResNetConfig(num_labels=CLASSES)
    return _vision(transformers.ResNetForImageClassification(config), batch, generator)


def mobilenetv2(batch: int, generator: torch.Generator) -> Exported:
    config = transformers.MobileNetV2Config(num_labels=CLASSES, image_size=SIDE)
    return _vision(transformers.MobileNetV2ForImageClassification(config), batch, generator)


def vit_base(batch: int, generator: torch.Generator) -> Exported:
    config = transformers.ViTConfig(num_labels=CLASSES)
    return _vision(transformers.ViTForImageClassification(config), batch, generator)


def _encoder(network: nn.Module, batch: int, generator: torch.Generator) -> Exported:
    def call(net: nn.Module, ids: Tensor, mask: Tensor, types: Tensor) -> Tensor:
        result = net(input_ids=ids, attention_mask=mask, token_type_ids=types)
        return result.last_hidden_state

    ids = torch.randint(1, 30_000, (batch, SEQUENCE), generator=generator)
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
    }
    axes = {key: {0: "batch", 1: "length"} for key in inputs}
    return Exported(Adapter(network, call), inputs, ("last_hidden_state",), axes)


def bert_base(batch: int, generator: torch.Generator) -> Exported:
    network = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False)
    return _encoder(seed(network, generator), batch, generator)


def minilm(batch: int, generator: torch.Generator) -> Exported:
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )
    network = transformers.BertModel(config, add_pooling_layer=False)
    return _encoder(seed(network, generator), batch, generator)


def _states(cache: transformers.DynamicCache) -> Iterator[Tensor]:
    for layer in cache.layers:
        yield layer.keys
        yield layer.values


def _state_names(network: nn.Module) -> list[str]:
    return [f"{kind}.{n}" for n in range(network.config.n_layer) for kind in ("key", "value")]


def gpt2_prefill128(batch: int, generator: torch.Generator) -> Exported:
    network = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()

    def call(net: nn.Module, ids: Tensor) -> tuple[Tensor, ...]:
        result = net(input_ids=ids, use_cache=True)
        return result.logits, *_states(result.past_key_values)

    ids = torch.randint(1, 50_000, (batch, SEQUENCE), generator=generator)
    outputs = ("logits", *_state_names(network))
    axes = {"input_ids": {0: "batch", 1: "length"}}
    return Exported(Adapter(network, call), {"input_ids": ids}, outputs, axes)


def gpt2_decode_past128(batch: int, generator: torch.Generator) -> Exported:
    network = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
    config = network.config

    def call(net: nn.Module, ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        cache = transformers.DynamicCache(config=config)
        for layer in range(config.n_layer):
            cache.update(past[2 * layer], past[2 * layer + 1], layer)
        position = torch.full((1, 1), past[0].shape[2])
        result = net(input_ids=ids, past_key_values=cache, position_ids=position, use_cache=True)
        return result.logits, *_states(result.past_key_values)

    shape = (batch, config.n_head, SEQUENCE, config.n_embd // config.n_head)
    names = _state_names(network)
    past = {f"past_{name}": torch.randn(shape, generator=generator) for name in names}
    ids = torch.randint(1, 50_000, (batch, 1), generator=generator)
    inputs, axes = {"input_ids": ids, **past}, {key: {2: "past"} for key in past}
    return Exported(Adapter(network, call), inputs, ("logits", *names), axes)


MODELS: dict[str, Callable[[int, torch.Generator], Exported]] = {
    make.__name__: make
    for make in (
        resnet50,
        mobilenetv2,
        vit_base,
        bert_base,
        minilm,
        gpt2_prefill128,
        gpt2_decode_past128,
    )
}


def network(name: str, batch: int = 1, *, half: bool = False) -> Exported:
    """The network of a name, the same each time; for inference. half: in float16."""
    torch.manual_seed(0)
    made = MODELS[name](batch, torch.Generator().manual_seed(1))
    made.network.eval()
    if not half:
        return made
    inputs = {n: t.half() if t.is_floating_point() else t for n, t in made.inputs.items()}
    return replace(made, network=made.network.half(), inputs=inputs)


def export(
    name: str, folder: Path, batch: int = 1, *, half: bool = False, opened: bool = False
) -> Path:
    """Write one model; its file. opened: with the sizes open that may be."""
    made = network(name, batch, half=half)
    if opened and any("batch" in axes.values() for axes in made.axes.values()):
        made = network(name, EXAMPLES, half=half)
    suffix = f"{'' if batch == 1 else f'_batch{batch}'}{'_float16' if half else ''}"
    path = folder / f"{name}{'_open' if opened else suffix}.onnx"
    with torch.no_grad():
        program = torch.onnx.export(
            made.network,
            tuple(made.inputs.values()),
            input_names=list(made.inputs),
            output_names=list(made.outputs),
            dynamic_shapes=open_shapes(made) if opened else None,
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    program.optimize()
    program.save(path, external_data=False)
    return path


def open_shapes(made: Exported) -> tuple[tuple[dict[int, torch.export.Dim], ...]]:
    """What torch.export asks of a network of any number of tensors."""
    names = {name for axes in made.axes.values() for name in axes.values()}
    dims = {name: torch.export.Dim(name, min=2, max=4096) for name in names}
    shapes = [made.axes.get(name, {}) for name in made.inputs]
    return (tuple({axis: dims[name] for axis, name in axes.items()} for axes in shapes),)


def main() -> None:
    """Export, and say what was written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", nargs="*", type=one_of(MODELS), default=list(MODELS))
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--open", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in options.models:
        began = time.perf_counter()
        path = export(name, options.folder, options.batch, opened=options.open)
        size, seconds = path.stat().st_size / 1e6, time.perf_counter() - began
        print(f"{path}: {size:.0f} MB in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
