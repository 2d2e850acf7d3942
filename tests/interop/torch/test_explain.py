"""What torch.compile made of a function, told as text, HTML and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tilewright.interop.torch import explain  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


def function(x: Any) -> Any:
    y = torch.relu(x) @ x.t()
    torch._dynamo.graph_break()
    return torch.fft.fft(y).real


def test_graphs_breaks_and_what_torch_runs() -> None:
    with torch.no_grad():
        report = explain(function, torch.randn(4, 4))
    first, second = report.graphs
    assert first.report is not None
    assert not first.fallback
    assert second.report is None
    assert any("_fft_r2c" in line and "test_explain.py" in line for line in second.fallback)
    (found,) = report.breaks
    line = function.__code__.co_firstlineno + 2
    assert found.line.endswith(f"test_explain.py:{line}")
    assert "graph_break" in found.reason
    assert any("TENSOR_MATCH" in guard for guard in report.guards)


def test_it_is_told_as_text_html_and_json() -> None:
    with torch.no_grad():
        report = explain(function, torch.randn(4, 4))
    text = str(report)
    assert text.startswith("2 graphs, 1 break, ")
    assert "run by torch" in text
    assert "fused" in text
    html = report._repr_html_()
    assert "<details" in html
    assert "run by torch because" in html
    told = json.loads(json.dumps(report.to_json()))
    assert [graph["run_by"] for graph in told["graphs"]] == ["tilewright", "torch"]
    assert told["graphs"][0]["launches"]


def test_open_sizes_and_weights_are_told() -> None:
    model, x = torch.nn.Linear(4, 4).eval(), torch.randn(5, 4)
    torch._dynamo.mark_dynamic(x, 0)
    with torch.no_grad():
        (graph,) = explain(model, x).graphs
    assert graph.weights == 2
    ((_, low, high),) = graph.sizes
    assert low <= 5 <= high


def test_gradients_are_told() -> None:
    model = torch.nn.Linear(4, 4)
    (graph,) = explain(model, torch.randn(5, 4)).graphs
    assert graph.fallback == ("its gradients are needed",)
