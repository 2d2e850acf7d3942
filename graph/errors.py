"""What can be wrong with a model: its file, structure, types, or an operator that we lack."""

from __future__ import annotations

from dataclasses import dataclass

from ..tir.errors import TilewrightError


class ModelError(TilewrightError, ValueError):
    """A model, or what was said about it, has no meaning or exceeds a limit."""


class ModelFileError(ModelError, OSError):
    """A model's file, or a file that it names, cannot or must not be read."""


@dataclass(frozen=True, slots=True)
class UnsupportedNode:
    """One node of a model that cannot be imported, and why."""

    node: str
    operator: str
    domain: str
    opset: int
    reason: str

    def __str__(self) -> str:
        domain = self.domain or "ai.onnx"
        return f"node '{self.node}': {self.operator} of {domain} opset {self.opset}: {self.reason}"


class UnsupportedOperator(ModelError):
    """A model has nodes that cannot be imported; `nodes` lists every one of them."""

    def __init__(self, message: str, nodes: tuple[UnsupportedNode, ...], *, code: str) -> None:
        lines = "\n".join(f"  {node}" for node in nodes)
        super().__init__(
            message,
            code=code,
            where=f"in the model:\n{lines}",
            hints=(
                "export the model in the operators of ONNX itself; CONTRIBUTING.md says how "
                "tilewright gets another operator.",
            ),
        )
        self.nodes = nodes
