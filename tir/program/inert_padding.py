"""Whether what is added behind the rows of a size changes anything of a program's run.

Padding along a size is inert where each element of each output is computed from its own row of the
inputs alone. Two programs show it: the one whose sizes calls decide, in which a row is the same
function of its inputs at any size, and the one at the size that is padded to, which runs. Its
functions are what the proof of each kernel compares the kernel with, so that what holds of them
holds of the code: no bit of a row depends on another row.

An index that is checked is one of its row, too, and equal rows fail alike: so where the rows that
are added equal one of the others, a check fails just where it would without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..analysis.row_flow import (
    MixedRowsError,
    RowLayout,
    RowSize,
    UnlikeRowsError,
    follow_rows,
    row_layout,
)
from ..dim import Dim
from ..sizes import AnySize, size_in, size_of
from .fitting import effects_of
from .program import (
    Branch,
    Copy,
    Launch,
    Program,
    Repeat,
    Slice,
    Step,
    Sync,
    actions,
    functions_by_name,
    step_text,
)


@dataclass(frozen=True, slots=True)
class PaddingObstacle:
    """What keeps padding from being inert. node: the model's, or the part of the program; reason:
    the rest of a sentence about it.
    """

    node: str
    reason: str

    def __str__(self) -> str:
        return f"{self.node} {self.reason}"


def padding_obstacle(
    opened: Program, dim: Dim, at: Program | None = None, values: Mapping[Dim, int] | None = None
) -> PaddingObstacle | None:
    """What keeps the padding of a run along a size from being inert; None: it is inert.

    opened: the program whose sizes calls decide. at: the same model at these values of its dims,
    where it is known; both have to keep rows apart.
    """
    size = size_of(dim)
    try:
        given = [_layout(tensor.name, tensor.shape, dim) for tensor in opened.inputs]
        made = [_layout(tensor.name, tensor.shape, dim) for tensor in opened.outputs]
        if not any(given):
            return PaddingObstacle("the model", f"has no input with '{dim.name}' rows")
        _Walk(opened, RowSize(dim.name, size, {})).check(given, made)
        if at is not None:
            assert values is not None
            at_size = RowSize(dim.name, values[dim], {})
            closed_given = [_at(one, values) for one in given]
            _Walk(at, at_size).check(closed_given, [_at(one, values) for one in made])
    except _Stopped as error:
        return error.obstacle
    return None


class _Stopped(Exception):
    def __init__(self, obstacle: PaddingObstacle) -> None:
        super().__init__(str(obstacle))
        self.obstacle = obstacle


def _layout(name: str, shape: Sequence[AnySize], dim: Dim) -> RowLayout | None:
    try:
        return row_layout(shape, RowSize(dim.name, size_of(dim), {}))
    except MixedRowsError as error:
        raise _Stopped(PaddingObstacle(f"'{name}'", str(error))) from error


def _at(layout: RowLayout | None, values: Mapping[Dim, int]) -> RowLayout | None:
    return None if layout is None else RowLayout(size_in(layout.inner, values))


class _Walk:
    """The steps of a program in order, and the rows of what lies in memory then."""

    def __init__(self, program: Program, size: RowSize) -> None:
        self._program = program
        self._size = size
        self._functions = functions_by_name(program)
        self._held: list[tuple[Slice, RowLayout | None]] = []
        self._known: dict[object, tuple[RowLayout | None, ...]] = {}
        self._unlike: list[PaddingObstacle] = []  # what matters only where nothing else does

    def check(self, given: Sequence[RowLayout | None], made: Sequence[RowLayout | None]) -> None:
        """See that rows stay apart from the inputs on to the outputs. Raises: _Stopped."""
        for position, (tensor, layout) in enumerate(zip(self._program.inputs, given, strict=True)):
            item = Slice("input", position, tensor.dtype, tensor.shape)
            self._held.append((item, layout))
        for step in self._program.body:
            try:
                self._take(step)
            except MixedRowsError as error:
                raise _Stopped(PaddingObstacle(_called(step), str(error))) from error
        for position, (tensor, wanted) in enumerate(zip(self._program.outputs, made, strict=True)):
            item = Slice("output", position, tensor.dtype, tensor.shape)
            found = self._layout(item)
            if (found and found.inner) != (wanted and wanted.inner):
                reason = f"does not have one element for each of '{self._size.name}' rows in turn"
                raise _Stopped(PaddingObstacle(f"the output '{tensor.name}'", reason))
        if self._unlike:
            raise _Stopped(self._unlike[0])

    def _take(self, step: Step) -> None:
        match step:
            case Sync():
                pass
            case Launch():
                self._launch(step)
            case Copy():
                self._write(step.target, self._layout(step.source))
            case _:
                self._flow(step)

    def _flow(self, step: Step) -> None:
        """A branch, a loop, or a size that data decide: none of them may see a row."""
        asked: list[Slice] = []
        if isinstance(step, Branch):
            asked = [step.condition]
        elif isinstance(step, Repeat):
            asked = [one for one in (step.condition, step.count) if isinstance(one, Slice)]
        effects = [effects_of(self._functions, action) for action in actions([step])]
        read = [*asked, *(item for one in effects for item in one.read)]
        if any(layout is not None for item in read for layout in self._overlapped(item)):
            raise MixedRowsError(
                f"reads '{self._size.name}' rows in a branch, a loop, or a size that data decide"
            )
        sizes = (size for one in effects for item in one.touched for size in item.whole.shape)
        if any(self._size.decides(size) for size in sizes):
            raise MixedRowsError(
                f"has tensors of the size '{self._size.name}' in a branch or a loop"
            )
        for one in effects:
            for item in one.written:
                self._write(item.whole, None)

    def _launch(self, step: Launch) -> None:
        func = self._functions[step.function]
        dims = dict(zip(func.dims, step.sizes, strict=True))
        size = RowSize(self._size.name, self._size.count, dims)
        roles = [parameter.role for parameter in func.parameters]
        pairs = list(zip(func.parameters, step.arguments, strict=True))
        given = {p.buffer: self._layout(item) for p, item in pairs if p.role != "output"}
        key = (step.function, tuple(step.sizes), tuple(given.values()))
        if key not in self._known:
            try:
                found = follow_rows(func, given, size)
            except UnlikeRowsError as error:
                self._unlike.append(PaddingObstacle(_called(step), str(error)))
                found = follow_rows(func, given, size, any_check=True)
            self._known[key] = tuple(found[p.buffer] for p in func.parameters)
        layouts = zip(roles, step.arguments, self._known[key], strict=True)
        for role, item, layout in layouts:
            if role == "output":
                self._write(item, layout)

    def _layout(self, item: Slice) -> RowLayout | None:
        """The rows of what a step reads. Raises: MixedRowsError for a part of what was written."""
        found = [one for one in self._held if one[0].overlaps(item)]
        if all(layout is None for _, layout in found):
            return None
        ((held, layout), *others) = found
        is_same = held.position == item.position and held.bytes == item.bytes
        if others or not is_same or held.dtype.bytes != item.dtype.bytes:
            raise MixedRowsError("reads a part of what was written, or several parts at once")
        return layout

    def _overlapped(self, item: Slice) -> list[RowLayout | None]:
        return [layout for held, layout in self._held if held.overlaps(item.whole)]

    def _write(self, item: Slice, layout: RowLayout | None) -> None:
        self._held = [one for one in self._held if not one[0].overlaps(item)]
        self._held.append((item, layout))


def _called(step: Step) -> str:
    """The model's nodes that a step computes."""
    label = getattr(step, "label", "")
    return f"'{label}'" if label else f"'{step_text(step)}'"
