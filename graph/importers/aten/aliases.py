"""Operators that write to a tensor which exists, `relu_`: pure ones behind which the name stands
for the new values, where nobody could see the difference.

Somebody could where the tensor is an input, a weight or a buffer, or where it shares its elements
with another one, of which it is a view or that is a view of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .program import Argument, ExportedGraph, ExportedNode, Named, Subgraph
from .rules.table import RULES, rule_name

# operators whose results may share elements with their first operand: those whose schemas say so,
# and the last ones, of which it was seen
VIEWS = frozenset(
    {
        "dropout_",
        "alias",
        "as_strided",
        "chunk",
        "contiguous",
        "detach",
        "diagonal",
        "expand",
        "expand_as",
        "flatten.using_ints",
        "mT",
        "movedim.intlist",
        "narrow",
        "numpy_T",
        "permute",
        "ravel",
        "reshape",
        "reshape_as",
        "select.int",
        "slice.Tensor",
        "split.Tensor",
        "split.sizes",
        "split_with_sizes",
        "squeeze",
        "squeeze.dim",
        "squeeze.dims",
        "swapaxes",
        "t",
        "to.device",
        "to.dtype",
        "to.dtype_layout",
        "to.other",
        "transpose.int",
        "unbind.int",
        "unflatten.int",
        "unfold",
        "unsqueeze",
        "view",
        "view_as",
        *("_unsafe_view", "dropout", "einsum", "feature_dropout", "type_as"),
    }
)


class WrittenView(Exception):
    """A node writes to elements that something else reads, too."""

    hint = "x = x + 1 in place of x += 1 makes a tensor of its own."


class Aliases:
    """Which values share elements, and where each is read for the last time."""

    def __init__(self) -> None:
        self._roots: dict[str, str] = {}
        self._views: dict[str, set[str]] = {}
        self._sources: dict[str, tuple[str, int]] = {}  # of a view, and where it is made
        self._last: dict[str, int] = {}
        self._made: set[str] = set()

    def start(self, graph: ExportedGraph) -> None:
        """Look at a graph before its nodes are imported."""
        for position, node in enumerate(graph.nodes):
            for name in _read(node.arguments.values()):
                self._last[name] = position
            outputs = [one for output in node.outputs for one in _listed(output)]
            name = rule_name(node.target)
            source = next(_read(node.arguments.values()), "")
            if source and (name in VIEWS or self.pure(name) != name):
                root = self._roots.get(source, source)
                for output in outputs:
                    self._roots[output] = root
                    self._views.setdefault(root, set()).add(output)
                    self._sources[output] = source, position
            elif not any(isinstance(one, Subgraph) for one in node.arguments.values()):
                self._made.update(outputs)
        for name in _read(graph.outputs):
            self._last[name] = len(graph.nodes)

    def is_read(self, name: str) -> bool:
        """Whether anything reads a value."""
        return name in self._last

    def pure(self, name: str) -> str:
        """The operator that computes what one that writes does: "add_.Tensor" is "add.Tensor"."""
        base, dot, overload = name.partition(".")
        if base.endswith("_") and not base.startswith("_") and not base.endswith("__"):
            return f"{base[:-1]}{dot}{overload}"
        return name

    def written(self, node: ExportedNode, position: int) -> str:
        """The value that a node writes to; "" where it writes to none.

        Raises: WrittenView where that is more than a new value of the name.
        """
        name = rule_name(node.target)
        if name in RULES or self.pure(name) == name:
            return ""
        target = next(_read(node.arguments.values()), "")
        root = self._roots.get(target, target)
        if root not in self._made:
            raise WrittenView("it writes to an input, a weight or a buffer")
        own = {target, *(one for output in node.outputs for one in _listed(output))}
        others = {root, *self._views.get(root, ())} - own
        late = (one for one in others if self._last.get(one, -1) > position)
        if not all(self._sees(one, own, position) for one in late):
            raise WrittenView("it writes to elements that another tensor shares")
        return target

    def _sees(self, view: str, own: set[str], position: int) -> bool:
        """Whether a view is made, behind a position, of what is written there."""
        while view not in own:
            if view not in self._sources:
                return False
            view, made = self._sources[view]
            if made <= position:
                return False
        return True


def _listed(output: object) -> tuple[str, ...]:
    if isinstance(output, tuple):
        return output
    return (output,) if isinstance(output, str) else ()


def _read(arguments: Iterable[Argument]) -> Iterator[str]:
    """The values that are read; a graph within a node reads what the node gives it."""
    for value in arguments:
        if isinstance(value, Named):
            yield value.name
        elif isinstance(value, tuple):
            yield from _read(value)
