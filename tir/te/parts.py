"""An element that is higher than the compiler takes is computed in parts: a sub-expression becomes
a tensor of its own over the axes that it mentions, and the element reads that. Each part computes
what it computed before, in the same order and types, so no bit changes.

What stands where a condition may forbid it (a branch of a select, the right side of `and`) is a
part only if no load in it can leave its tensor; the indices of a load are not parts, since a tensor
in an index would be data. Indices that are long sums are put in order instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..analysis.bounds import known_interval
from ..analysis.expr_size import MOST_HEIGHT, MOST_SIZE, height, levels, parts_of, size
from ..analysis.linear import expression, linear
from ..buffer import Load
from ..checked import Checked
from ..dim import Extent, dims_of, most
from ..errors import IRError
from ..expr import And, Expr, Or, Select, Var
from ..node import Node
from ..reduce import Reduce
from ..visit import free_vars, substitute
from .tensor import Computation, Tensor

Axes = Mapping[Var, Extent]


def in_parts(name: str, value: Expr, axes: Axes) -> Expr:
    """The element `value` of a te.compute, no higher and no larger than the compiler takes.

    axes: the extent of each variable. Raises: IRError where some part of it cannot stand alone.
    """
    if height(value) <= MOST_HEIGHT and size(value) <= MOST_SIZE:
        return value
    if isinstance(value, Reduce):
        axes = {**axes, **dict(zip(value.axes, value.extents, strict=True))}
        values = tuple(in_parts(name, item, axes) for item in value.values)
        return replace(value, values=values, where=in_parts(name, value.where, axes))
    found = _Parts(name, value, axes).run()
    if height(found) > MOST_HEIGHT or size(found) > MOST_SIZE:
        raise IRError(
            f"te.compute: the element of '{name}' is {height(value)} levels high; expected at most "
            f"{MOST_HEIGHT}, or parts of it that can be computed without its conditions.",
            code="te-height",
            hints=(
                "give parts of it a te.compute of their own; of a long chain of te.select make a "
                "tree: te.select(i < n // 2, first half, second half).",
            ),
        )
    return found


class _Parts:
    """One element that is too high or too large."""

    def __init__(self, name: str, root: Expr, axes: Axes) -> None:
        self.name = name
        self.root = root
        self.axes = axes
        self.ranges = {axis: (0, max(most(extent) - 1, 0)) for axis, extent in axes.items()}
        self.marks = _marks(root)
        self.made: dict[int, Node] = {}  # by identity of a part of the root: what stands for it
        self.heights: dict[int, int] = {}
        self.sizes: dict[int, int] = {}
        self.safe: dict[int, bool] = {}  # whether no load of it can leave its tensor

    def run(self) -> Expr:
        """The root with parts taken out of it."""
        for node in parts_of(self.root):
            self._keep(node, node.map_children(lambda child: self.made[id(child)]))
            if self._is_part(node):
                self._keep(node, self._load(self.made[id(node)]))
        root = self.made[id(self.root)]
        assert isinstance(root, Expr)
        return root

    def _keep(self, node: Node, new: Node) -> None:
        """Let `new` stand for a part of the root."""
        below = [id(child) for child in node.children()]
        self.heights[id(node)] = levels(new) + max((self.heights[c] for c in below), default=0)
        self.sizes[id(node)] = 1 + sum(self.sizes[c] for c in below)
        self.safe[id(node)] = all(self.safe[c] for c in below)
        if isinstance(new, Load):
            if self.heights[id(node)] > MOST_HEIGHT:
                new = replace(new, indices=tuple(expression(linear(at)) for at in new.indices))
            self.heights[id(node)], self.sizes[id(node)] = height(new), size(new)
            self.safe[id(node)] = self._stays_inside(new)
        self.made[id(node)] = new

    def _stays_inside(self, load: Load) -> bool:
        """Whether a load, which is no state of a scan, is inside of its tensor at all points."""
        if isinstance(load.buffer, Tensor) and load.buffer.state:
            return False
        found = (known_interval(at, self.ranges) for at in load.indices)
        return all(
            low >= 0 and high < extent
            for (low, high), extent in zip(found, load.buffer.shape, strict=True)
        )

    def _is_part(self, node: Node) -> bool:
        """Whether a part of the root becomes a tensor: as high or large as can be, and such that it
        may be computed on its own.
        """
        full = self.heights[id(node)] >= MOST_HEIGHT or self.sizes[id(node)] >= MOST_SIZE
        if not full or node is self.root or not isinstance(node, Expr):
            return False
        conditional, in_index = self.marks[id(node)]
        return not in_index and (self.safe[id(node)] or not conditional)

    def _load(self, part: Node) -> Expr:
        """The element of a new tensor that a part becomes."""
        assert isinstance(part, Expr)
        mentioned = free_vars(part)
        used = [axis for axis in self.axes if axis in mentioned]
        shape = tuple(self.axes[axis] for axis in used)
        own = tuple(Var(axis.name) for axis in used)
        value = substitute(part, dict(zip(used, own, strict=True)))
        name = f"{self.name}_part"
        computation = Computation((name,), shape, own, (value,))
        sizes, dims = tuple(map(most, shape)), dims_of(shape)
        return Tensor(name, part.dtype, sizes, dims=dims, computation=computation)[tuple(used)]


def _marks(root: Expr) -> dict[int, tuple[bool, bool]]:
    """For each part of an expression, whether it stands under a condition that may forbid it, and
    whether it stands in an index, or holds a check, which a part may not.
    """
    found: dict[int, tuple[bool, bool]] = {}
    stack: list[tuple[Node, bool, bool]] = [(root, False, False)]
    while stack:
        node, conditional, fixed = stack.pop()
        before = found.get(id(node), (False, False))
        now = (before[0] or conditional, before[1] or fixed)
        if id(node) in found and now == before:
            continue
        found[id(node)] = now
        first, *others = node.children() or (None,)
        if first is None:
            continue
        guards = isinstance(node, Select | And | Or)
        in_index = now[1] or isinstance(node, Load | Checked)
        stack.append((first, now[0], in_index))
        stack += [(other, now[0] or guards, in_index) for other in others]
    return found
