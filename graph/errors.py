"""What can be wrong with a model: its file, structure, types, or an operator that we lack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..tir.errors import TilewrightError


class ModelError(TilewrightError, ValueError):
    """A model, or what was said about it, has no meaning or exceeds a limit."""


class ModelFileError(ModelError, OSError):
    """A model's file, or a file that it names, cannot or must not be read."""


class OperatorError(ModelError):
    """An operator, or a pass, is declared in a way that no model could use, or fails in use."""


class ExtensionError(ModelError):
    """What another package brings does not load, or is not what its entry point says."""


@dataclass(frozen=True, slots=True)
class UnsupportedNode:
    """One node of a model that cannot be imported, why, and what would help where that is known.

    opset: None where operators have no versions; place: what made the node, a module and a line.
    """

    node: str
    operator: str
    domain: str
    opset: int | None
    reason: str
    hint: str = ""
    place: str = ""

    def __str__(self) -> str:
        return f"node {self.called}: {self.case}"

    @property
    def called(self) -> str:
        """The node's name, and its place where that is known."""
        return f"'{self.node}' ({self.place})" if self.place else f"'{self.node}'"

    @property
    def case(self) -> str:
        """What many nodes may have in common: their operator, and why they cannot be imported."""
        if self.opset is None:
            return f"{self.domain}.{self.operator}: {self.reason}"
        domain = self.domain or "ai.onnx"
        return f"{self.operator} of {domain} opset {self.opset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class UnsupportedPart:
    """What else of a model cannot be imported, and why. kind: "input", "initialiser", "opset", "IR
    version"; name: of an input or initialiser, or of the domain of an opset.
    """

    kind: str
    name: str
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        named = f"{self.kind} '{self.name}'" if self.name else self.kind
        return f"{named}: {self.reason}"


class UnsupportedOperator(ModelError):
    """What of a model cannot be imported, all at once: `nodes` lists every one of those, `parts`
    what else there is.
    """

    def __init__(
        self,
        message: str,
        nodes: tuple[UnsupportedNode, ...],
        parts: tuple[UnsupportedPart, ...] = (),
        *,
        code: str,
        hints: tuple[str, ...] = (),
    ) -> None:
        lines = "\n".join(f"  {line}" for line in (*map(str, parts), *_by_case(nodes)))
        super().__init__(message, code=code, where=f"in the model:\n{lines}", hints=hints)
        self.nodes = nodes
        self.parts = parts


def in_numbers(parts: Sequence[UnsupportedPart], nodes: str) -> str:
    """How many parts of each kind cannot be imported, and how many nodes: "" for none of these."""
    kinds = Counter(part.kind for part in parts)
    told = [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in kinds.items()]
    return ", ".join([*told, *([nodes] if nodes else [])])


def unsupported(
    what: str, nodes: Sequence[UnsupportedNode], parts: Sequence[UnsupportedPart], *, code: str
) -> UnsupportedOperator:
    """What of a model cannot be imported, with what would help, each once. what: in numbers."""
    hints = (*(part.hint for part in parts), *(node.hint for node in nodes))
    return UnsupportedOperator(
        f"model: {what} cannot be imported.",
        tuple(nodes),
        tuple(parts),
        code=code,
        hints=tuple(filter(None, dict.fromkeys(hints))),
    )


_NAMED = 3  # nodes of which all have the same reason


def _by_case(nodes: tuple[UnsupportedNode, ...]) -> Iterator[str]:
    """A line for all nodes of one operator that have one reason, in the order of the first."""
    cases: dict[str, list[str]] = {}
    for node in nodes:
        cases.setdefault(node.case, []).append(node.called)
    for case, names in cases.items():
        if len(names) == 1:
            yield f"node {names[0]}: {case}"
            continue
        named = ", ".join(names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield f"{len(names)} nodes: {case} (nodes {named}{more})"
