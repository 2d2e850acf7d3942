"""What is said where torch's models, tensors and options are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import tilewright as tw

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tilewright.graph.importers.aten.importer import import_program  # noqa: E402
from tilewright.graph.importers.aten.program import (  # noqa: E402
    ExportedGraph,
    ExportedProgram,
    RecordedType,
)
from tilewright.interop.torch import backend  # noqa: E402
from tilewright.tir.errors import TilewrightError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
X = torch.zeros(2, 3)


def linear() -> Any:
    return torch.nn.Linear(3, 3).eval()


def run(function: Callable[..., Any], *args: Any, **options: object) -> None:
    """Compile and call, with an error in place of torch."""
    chosen = {"fallback": "refuse", **options}
    try:
        with torch.no_grad():
            torch.compile(function, backend=backend, fullgraph=True, options=chosen)(*args)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        raise error.inner_exception from None


def train(model: Any) -> None:
    try:
        torch.compile(model, backend=backend, options={"training": "refuse"})(X)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        raise error.inner_exception from None


def size_that_no_axis_tells() -> None:
    graph = ExportedGraph(("n",), (), (), {})
    size = {"n": "Symbol('s0', integer=True)"}
    import_program(ExportedProgram("m", graph, {}, (), (), {}, {}, size))


def size_that_others_contradict() -> None:
    symbol = "Symbol('s0', integer=True)"
    types = {
        "x": RecordedType("float32", (symbol,)),
        "y": RecordedType("float32", (f"Mul(Integer(2), {symbol})",)),
    }
    graph = ExportedGraph(("x", "y"), (), (), types)
    import_program(
        ExportedProgram("m", graph, {}, ("x", "y"), (), {}, {}), shapes={"x": (4,), "y": (9,)}
    )


CASES: dict[str, Callable[[], object]] = {
    "a module without inputs": lambda: tw.compile(linear()),
    "a module in training mode": lambda: tw.compile(linear().train(), args=(X,)),
    "shapes of no argument": lambda: tw.compile(linear(), args=(X,), shapes={"x": (1, 3)}),
    "inputs of a file": lambda: tw.compile("model.onnx", kwargs={"x": X}),
    "a module on meta": lambda: tw.compile(linear().to("meta"), args=(X.to("meta"),)),
    "sparse weights": lambda: tw.compile(Sparse().eval(), args=(X,)),
    "an unknown option": lambda: run(linear(), X, fallbak="torch"),
    "an unknown value": lambda: run(linear(), X, training="inductor"),
    "a mode": lambda: backend(torch.fx.symbolic_trace(linear()), [X], mode="max-autotune"),
    "gradients": lambda: train(linear()),
    "another device": lambda: run(lambda x: x + 1, X.to("meta")),
    "a size that no axis tells": size_that_no_axis_tells,
    "a size that others contradict": size_that_others_contradict,
    "operators without a rule": lambda: run(lambda x: (x.frexp()[0], torch.fft.fft(x).real), X),
}


class Sparse(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Has a weight of which most elements are not stored."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.eye(3).to_sparse())

    def forward(self, x: Any) -> Any:
        return torch.sparse.mm(self.weight, x.t())


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_says_what_and_why(case: str, golden: Callable[[str, str], None]) -> None:
    with pytest.raises(TilewrightError) as caught:
        CASES[case]()
    text = re.sub(r"test_refusals\.py:\d+", "test_refusals.py:7", str(caught.value))
    golden(f"errors/torch_{case.replace(' ', '_')}.txt", text)
