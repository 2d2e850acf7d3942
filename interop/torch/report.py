"""What is told of a function that torch.compile took: as text, as HTML, as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from html import escape

from ...runtime.model.precision_json import precision_to_json
from ...runtime.model.report import EngineReport
from ...tir.text.display import printable
from ...tir.text.html import details, html_table


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """Where a graph ends before the function does. line: "file.py:7"."""

    reason: str
    line: str

    def __str__(self) -> str:
        return printable(f"{self.line}: {self.reason}" if self.line else self.reason)


@dataclass(frozen=True, slots=True)
class CompiledGraph:
    """What became of a graph of `nodes` operators. weights: how many an engine holds; fallback: why
    torch runs it, node by node; empty where an engine does. interface: of the engine; sizes: those
    that calls decide, with their bounds; report: how the engine was built.
    """

    name: str
    nodes: int
    weights: int
    fallback: tuple[str, ...]
    interface: str
    sizes: tuple[tuple[str, int, int], ...]
    report: EngineReport | None

    @property
    def head(self) -> str:
        """One line of it."""
        if self.report is None:
            return f"{self.name}: {self.nodes} nodes, run by torch"
        sizes = "".join(f", {name} {low} to {high}" for name, low, high in self.sizes)
        held, launches = f"{self.weights} weights held", f"{len(self.report.order)} launches"
        return f"{self.name}: {self.nodes} nodes, {held}, {launches}{sizes}"

    def __str__(self) -> str:
        lines = [self.head, *(f"  {line}" for line in self.fallback)]
        if self.report is not None:
            lines += [
                f"  {self.interface}",
                *(f"  {line}" for line in str(self.report).splitlines()),
            ]
        return printable("\n".join(lines))

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        report = self.report
        kernels = Counter(kernel.name for kernel in report.kernels) if report else {}
        return {
            "name": self.name,
            "nodes": self.nodes,
            "weights": self.weights,
            "run_by": "torch" if report is None else "tilewright",
            "fallback": list(self.fallback),
            "sizes": {name: [low, high] for name, low, high in self.sizes},
            "launches": list(report.order) if report else [],
            "kernels": list(kernels),
            "notes": list(report.notes) if report else [],
            "precision": precision_to_json(report.precision) if report else None,
        }


@dataclass(frozen=True, slots=True)
class TorchReport:
    """The graphs of a function, in the order in which they were first run; where they break; what
    torch compares before each call.
    """

    graphs: tuple[CompiledGraph, ...]
    breaks: tuple[GraphBreak, ...]
    guards: tuple[str, ...]

    def __str__(self) -> str:
        counts = f"{_counted(self.graphs, 'graph')}, {_counted(self.breaks, 'break')}"
        lines = [f"{counts}, {_counted(self.guards, 'guard')}"]
        lines += [f"break at {one}" for one in self.breaks]
        return printable("\n".join([*lines, *map(str, self.graphs)]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        breaks = html_table(
            ("line", "a graph ends because"), [(b.line, b.reason) for b in self.breaks]
        )
        parts = [breaks] if self.breaks else []
        for graph in self.graphs:
            if graph.report is None:
                why = html_table(("run by torch because",), [(line,) for line in graph.fallback])
                parts.append(details(graph.head, why, shown=True))
            else:
                said = f"<p>{escape(graph.interface)}</p>{graph.report._repr_html_()}"
                parts.append(details(graph.head, said))
        guards = html_table(("before each call torch compares",), [(one,) for one in self.guards])
        return "".join([*parts, details(_counted(self.guards, "guard"), guards)])

    def to_json(self) -> dict[str, object]:
        """Plain values, for json.dumps."""
        return {
            "graphs": [graph.to_json() for graph in self.graphs],
            "breaks": [{"line": b.line, "reason": b.reason} for b in self.breaks],
            "guards": list(self.guards),
        }


def _counted(items: tuple[object, ...], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"
