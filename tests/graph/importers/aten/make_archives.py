"""Write the archives of this folder: for each family of operators one program of many calls, with
inputs and what PyTorch computes.

    python tests/graph/importers/aten/make_archives.py [FAMILY ...]

Needs torch and torchao (the files here are of 2.13 and 0.18); nothing else of the tests does. Each
call is of one overload, by its own name, so that torch.export keeps it. `schemas.txt` is written,
too: the schemas of all overloads that have a rule.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
import torch.ao.quantization.fx._decomposed  # it declares quantized_decomposed
import torchao.quantization.quant_primitives  # noqa: F401  # it declares torchao
from calls.given import Calls, numbers, whole
from torch import Tensor, nn

HERE = Path(__file__).parent
FAMILIES = tuple(
    path.stem for path in sorted(HERE.glob("calls/*.py")) if path.stem not in ("__init__", "given")
)

SPACES = ("prims", "quantized_decomposed", "torchao")


class _Family(nn.Module):
    """All calls of a family, one behind the other."""

    def __init__(self, names: list[str], calls: Calls) -> None:
        super().__init__()
        self.names, self.calls = names, calls

    def forward(self, *given: Tensor) -> list[Tensor]:
        """What all of them return."""
        named = dict(zip(self.names, given, strict=True))
        found = list[Tensor]()
        for call in self.calls:
            made = call(named)
            found += [made] if isinstance(made, Tensor) else list(made)  # type: ignore[call-overload]
        return found


class _Small(nn.Module):
    """A network of words with an attention, a convolution and a state that nobody changes."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.mixed, self.norm = nn.Linear(16, 16), nn.LayerNorm(16)
        self.near = nn.Conv1d(16, 8, 3, padding=1)
        self.register_buffer("shift", torch.arange(4.0))

    def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Means over the words, and the two halves of what each of them sees."""
        batch, length = tokens.shape
        x = self.norm(self.words(tokens))
        with torch.no_grad():
            q = self.mixed(x).view(batch, length, 2, 8).transpose(1, 2)
        seen = nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
        seen = seen.transpose(1, 2).reshape(batch, length, 16)
        made = self.near((seen + x).transpose(1, 2)).mean(-1) + self.shift.sum()
        return made, *seen.split(8, -1)


class _Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        """x and how often it was called."""
        self.calls.add_(1)
        return x + self.calls


class _WritesView(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Two tensors that share elements, one of which is written to."""
        y = torch.relu(x)
        z = y.view(-1)
        y.add_(1)
        return y, z


class _WritesSeen(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """A view of a product that nobody else reads, changed, and views of that."""
        y = (x * 2).reshape(1, 9)
        y.add_(1)
        return y.view(3, 3).t(), y.to(torch.float32)


class _WritesBefore(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """A view from before a tensor is changed, of which another is made behind that."""
        y = x * 2
        before = y.view(1, 9)
        y.add_(1)
        return before.view(9)


class _WritesDropped(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """As two tensors, where no element is dropped: what they share, no schema says."""
        y = torch.relu(x)
        z = nn.functional.dropout(y, 0.5, training=False)
        z.add_(1)
        return y, z


class _WritesInput(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        """Its input, changed."""
        x.add_(1)
        return x * 2


class _Sorts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList([nn.Softsign(), nn.Tanh()])

    def forward(self, x: Tensor) -> Tensor:
        """Two operators that no rule knows, one of them twice."""
        y = torch.special.bessel_j0(x) + torch.special.bessel_j0(x + 1)
        return self.inner[1](torch.cholesky_inverse(y @ y.mT))


def _saved(name: str, network: nn.Module, given: tuple[Tensor, ...], **options: object) -> None:
    with torch.no_grad():
        exported = torch.export.export(network.eval(), given, **options)
    torch.export.save(exported, HERE / "models" / f"{name}.pt2")


def write_models() -> None:
    """Small programs, some of which cannot be imported; values of the first at three sizes."""
    torch.manual_seed(0)
    (HERE / "models").mkdir(exist_ok=True)
    small, dim = _Small(), torch.export.Dim
    sizes = {0: dim("batch", max=8), 1: dim("length", min=2, max=64)}
    with torch.enable_grad():
        exported = torch.export.export(
            small.eval(), (torch.zeros(2, 6, dtype=torch.int64),), dynamic_shapes=(sizes,)
        )
    torch.export.save(exported, HERE / "models" / "small.pt2")
    arrays = {}
    for n, shape in enumerate(((1, 2), (3, 17), (8, 64))):
        tokens = whole(*shape, low=0, high=20, seed=n)
        arrays[f"in{n}"] = tokens.numpy()
        for m, made in enumerate(small(tokens)):
            arrays[f"out{n}_{m}"] = made.detach().numpy()
    np.savez_compressed(HERE / "models" / "small.npz", **arrays)
    x = (numbers(3, 3),)
    _saved("counts", _Counts(), x)
    _saved("writes_dropped", _WritesDropped(), x)
    _saved("writes_before", _WritesBefore(), x)
    _saved("writes_seen", _WritesSeen(), x)
    _saved("writes_view", _WritesView(), x)
    _saved("writes_input", _WritesInput(), x)
    _saved("unknown", _Sorts(), x)


def write(name: str) -> None:
    """One archive, and what belongs to it."""
    family = import_module(f"calls.{name}")
    given, calls = family.GIVEN, family.CALLS
    network = _Family(list(given), calls)
    with torch.no_grad():
        exported = torch.export.export(network, tuple(given.values()), strict=False)
        wanted = network(*given.values())
    torch.export.save(exported, HERE / f"{name}.pt2")
    arrays = {f"in{n}": value.numpy() for n, value in enumerate(given.values())}
    arrays |= {f"out{n:03}": value.numpy() for n, value in enumerate(wanted)}
    np.savez_compressed(HERE / f"{name}.npz", **arrays)


def write_schemas() -> None:
    """The schema of each overload that has a rule."""
    from tilewright.graph.importers.aten.rules.table import RULES

    lines = []
    for name in sorted(RULES):
        space = next((one for one in SPACES if name.startswith(f"{one}.")), "aten")
        base, _, overload = name.removeprefix(f"{space}.").partition(".")
        if base not in ("_operator", "math", "torch"):
            operators = getattr(getattr(torch.ops, space), base)
            lines.append(str(getattr(operators, overload or "default")._schema))
    (HERE / "schemas.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write_schemas()
    write_models()
    for chosen in sys.argv[1:] or FAMILIES:
        write(chosen)
