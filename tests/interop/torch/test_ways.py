"""One model by each way in, ONNX, an archive, a module and torch.compile, has the same launches."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tilewright as tw

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")
pytest.importorskip("onnxscript", reason="torch.onnx needs it: pip install onnxscript")

from tilewright.interop.torch import explain  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default"),
]
WIDTH, HEADS, LENGTH = 64, 4, 16
attend = torch.nn.functional.scaled_dot_product_attention


class Encoder(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer as BERT has it: a mask, norms behind each part, GELU."""

    def __init__(self) -> None:
        super().__init__()
        nn = torch.nn
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        shape = (*x.shape[:2], HEADS, WIDTH // HEADS)
        q, k, v = (part(x).view(shape).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = attend(q, k, v, attn_mask=(mask > 0)[:, None, None, :])
        x = self.first(x + self.o(mixed.transpose(1, 2).reshape(x.shape)))
        return self.second(x + self.down(torch.nn.functional.gelu(self.up(x))))


class Decoder(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer as Llama has it: RMS norms, rotary positions, shared keys, SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        nn, self.size, kept = torch.nn, WIDTH // HEADS, WIDTH // 2
        self.q, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, kept, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, 2 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.first, self.second = (nn.Parameter(torch.rand(WIDTH) + 0.5) for _ in range(2))
        angles = torch.outer(
            torch.arange(LENGTH), 100 ** -(torch.arange(0, self.size, 2) / self.size)
        )
        self.register_buffer("angles", torch.cat((angles, angles), -1))

    def norm(self, x: Any, scale: Any) -> Any:
        return scale * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))

    def turn(self, x: Any) -> Any:
        half = torch.cat((-x[..., self.size // 2 :], x[..., : self.size // 2]), -1)
        return x * self.angles.cos() + half * self.angles.sin()

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        y = self.norm(x, self.first)
        q = self.turn(self.q(y).view(batch, length, HEADS, -1).transpose(1, 2))
        k = self.turn(self.k(y).view(batch, length, HEADS // 2, -1).transpose(1, 2))
        v = self.v(y).view(batch, length, HEADS // 2, -1).transpose(1, 2)
        k, v = (t.repeat_interleave(2, dim=1) for t in (k, v))
        mixed = attend(q, k, v, is_causal=True, scale=1 / math.sqrt(self.size))
        x = x + self.o(mixed.transpose(1, 2).reshape(x.shape))
        y = self.norm(x, self.second)
        return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


class Quick(torch.nn.Module):  # type: ignore[misc, name-defined]
    """QuickGELU, as CLIP has it, behind a convolution with a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.layer(x))
        return torch.nn.functional.max_pool2d(x * torch.sigmoid(1.702 * x), 2)


GIVEN = {
    Encoder: lambda: (torch.randn(2, LENGTH, WIDTH), torch.ones(2, LENGTH, dtype=torch.int64)),
    Decoder: lambda: (torch.randn(2, LENGTH, WIDTH),),
    Quick: lambda: (torch.randn(1, 3, 16, 16),),
}
FOUND = {
    Encoder: {"AttentionRecognition", "HeadMerging"},
    Decoder: {"AttentionRecognition", "LayerNormRecognition"},
    Quick: set[str](),
}


def fused(report: tw.EngineReport) -> Counter[str]:
    """Which operators each launch computes, whatever its nodes are called."""
    return Counter(re.findall(r"^fused: ([\w+]+):", "\n".join(report.notes), re.MULTILINE))


@pytest.mark.parametrize("kind", GIVEN, ids=lambda kind: kind.__name__)
def test_each_way_has_the_same_launches(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, given = kind().eval(), GIVEN[kind]()
    program = torch.export.export(model, given)
    torch.export.save(program, tmp_path / "m.pt2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, given, tmp_path / "m.onnx", dynamo=True, verbose=False)
    models = {"module": program, "archive": tmp_path / "m.pt2", "ONNX": tmp_path / "m.onnx"}
    reports = {way: tw.compile(one, verify="off").explain() for way, one in models.items()}
    with torch.no_grad():
        (graph,) = explain(model, *given, options={"fallback": "refuse", "verify": "off"}).graphs
    assert graph.report is not None
    reports["torch.compile"] = graph.report
    launches = {way: len(report.order) for way, report in reports.items()}
    assert len(set(launches.values())) == 1, launches
    groups = {way: fused(report) for way, report in reports.items()}
    assert all(found == groups["module"] for found in groups.values()), groups
    for way, report in reports.items():
        applied = {
            note.partition(":")[0].removeprefix("pass ")
            for note in report.notes
            if note.startswith("pass ") and "unchanged" not in note
        }
        assert applied >= FOUND[kind], (way, applied)
