"""Where the values of branches and loops lie, and the steps that bring them there.

A value that one launch computes and that a branch gives, or a loop collects, is computed in its
place; what has two places is copied. A carried value has one place, in which it lies before a loop,
in each iteration, and behind it; what the next iteration finds there is computed elsewhere and
copied at the end of an iteration, unless nobody reads the old value by then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...tir.dim import Dim
from ...tir.program.program import LoopRow
from ..ir.data_dims import size_makers
from ..ir.views import storage
from .choose import KernelChoice
from .flatten import FlatBlock, FlatBranch, FlatLoop, FlatModel


@dataclass(frozen=True, slots=True)
class Home:
    """The value in whose place another one lies, whole or as a row of it."""

    value: str
    moves: tuple[LoopRow, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyValue:
    """Copy one value to the place of another, or to the row of it that an iteration is at."""

    source: str
    target: Home


@dataclass(frozen=True, slots=True)
class NumberIteration:
    """Write the number of the iteration to its place."""

    loop: FlatLoop


@dataclass(frozen=True, slots=True)
class SizeStep:
    """A size is the number that the value `source` holds."""

    dim: Dim
    source: str


@dataclass(frozen=True, slots=True)
class IfSteps:
    """A branch."""

    branch: FlatBranch
    then: tuple[PlannedStep, ...]
    otherwise: tuple[PlannedStep, ...]


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """A loop. condition: the value in whose place the condition lies, where there is one."""

    loop: FlatLoop
    condition: str | None
    body: tuple[PlannedStep, ...]


PlannedStep = KernelChoice | CopyValue | NumberIteration | SizeStep | IfSteps | LoopSteps


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """The steps of a model. homes: of values that lie in the place of another one; extra: what has
    a place of its own and is no value of the graph: the value whose type it has.
    """

    steps: tuple[PlannedStep, ...]
    homes: Mapping[str, Home]
    extra: Mapping[str, str]


def plan_steps(model: FlatModel, parts: Sequence[KernelChoice]) -> PlannedSteps:
    """The steps of a model that `parts` compute, in order."""
    return _Steps(model, parts).run()


def parts_in(steps: Sequence[PlannedStep]) -> Iterator[KernelChoice]:
    """What is launched, in order."""
    for step in steps:
        match step:
            case KernelChoice():
                yield step
            case IfSteps():
                yield from parts_in((*step.then, *step.otherwise))
            case LoopSteps():
                yield from parts_in(step.body)


def copied_or_asked(steps: Sequence[PlannedStep]) -> Iterator[str]:
    """The values that are copied, or asked how a run goes on."""
    for step in steps:
        match step:
            case CopyValue() | SizeStep():
                yield step.source
            case IfSteps():
                yield step.branch.condition
                yield from copied_or_asked((*step.then, *step.otherwise))
            case LoopSteps():
                if isinstance(step.loop.count, str):
                    yield step.loop.count
                yield from (rows.array for rows in step.loop.rows)
                yield from copied_or_asked(step.body)


@dataclass(slots=True)
class _Owned:
    """What a block computes itself. order: of each root, the number of the item that does;
    last_use: of each root, the last item that reads it.
    """

    order: dict[str, int] = field(default_factory=dict)
    last_use: dict[str, int] = field(default_factory=dict)


class _Steps:
    def __init__(self, model: FlatModel, parts: Sequence[KernelChoice]) -> None:
        self._model = model
        self._types = model.graph.types
        self._roots = storage(model.graph)
        self._parts = {part.group.outputs[0]: part for part in parts}
        self._homes: dict[str, Home] = {}
        self._extra: dict[str, str] = {}
        self._behind_old_values: set[str] = set()  # those in the places of values of an iteration
        makers = size_makers(model.graph)
        self._sizes = {n.outputs[0]: SizeStep(d, n.inputs[0]) for d, n in makers.items()}
        self._uses = Counter(self._reads(model.block))
        self._uses.update(self._roots[name] for name in model.outputs)

    def run(self) -> PlannedSteps:
        """All steps."""
        steps = tuple(self._block(self._model.block, self._owned(self._model.block)))
        return PlannedSteps(steps, self._homes, self._extra)

    # -- what is read, and by whom ---------------------------------------------------------------

    def _reads(self, block: FlatBlock) -> Iterator[str]:
        """The root of every value that is read in a block, once for each read."""
        for item in block.items:
            yield from self._reads_of(item)
        yield from (self._roots[value] for value in block.outputs)

    def _reads_of(self, item: str | FlatBranch | FlatLoop) -> Iterator[str]:
        roots = self._roots
        match item:
            case FlatBranch():
                yield roots[item.condition]
                for block in item.blocks:
                    yield from self._reads(block)
            case FlatLoop():
                asked = (item.count if isinstance(item.count, str) else None, item.begins)
                yield from (roots[value] for value in (*asked, item.goes_on) if value is not None)
                for one in item.carried:
                    yield from (roots[one.first], roots[one.next])
                yield from (roots[rows.array] for rows in item.rows)
                yield from (roots[rows.row] for rows in item.collected)
                yield from self._reads(item.body)
            case str() if item in self._parts:
                yield from (roots[value] for value in self._parts[item].values)
            case str() if item in self._sizes:
                yield roots[self._sizes[item].source]

    def _owned(self, block: FlatBlock) -> _Owned:
        found = _Owned()
        for number, item in enumerate(block.items):
            for root in self._reads_of(item):
                found.last_use[root] = number
            made: Sequence[str] = ()
            if not isinstance(item, str):
                made = item.results
            elif item in self._parts:
                made = self._parts[item].group.outputs
            found.order.update((value, number) for value in made)
        return found

    # -- steps -----------------------------------------------------------------------------------

    def _block(self, block: FlatBlock, owned: _Owned) -> Iterator[PlannedStep]:
        for item in block.items:
            match item:
                case FlatBranch():
                    yield self._branch(item)
                case FlatLoop():
                    yield from self._loop(item, owned)
                case str() if item in self._parts:
                    yield self._parts[item]
                case str() if item in self._sizes:
                    yield self._sizes[item]

    def _branch(self, branch: FlatBranch) -> PlannedStep:
        bodies = []
        for block in branch.blocks:
            owned, copies = self._owned(block), list[CopyValue]()
            for result, value in zip(branch.results, block.outputs, strict=True):
                copies += self._put(value, Home(result), owned)
            bodies.append((*self._block(block, owned), *copies))
        return IfSteps(branch, *bodies)

    def _put(self, value: str, home: Home, owned: _Owned) -> Iterator[CopyValue]:
        """Let a value lie in a place: computed there where its own block computes it and it has no
        other place, else copied.
        """
        if self._types[value].elements == 0:
            return
        root = self._roots[value]
        if root in owned.order and root not in self._homes:
            self._homes[root] = home
        else:
            yield CopyValue(value, home)

    def _loop(self, loop: FlatLoop, around: _Owned) -> Iterator[PlannedStep]:
        owned = self._owned(loop.body)
        for rows in loop.rows:
            length = self._types[rows.array].shape[0]
            move = LoopRow(loop.number, length, rows.reverse)
            self._homes[rows.row] = Home(rows.array, (move,))
        for item in loop.carried:
            self._homes[item.now] = Home(item.last)
            yield from self._begin(item.first, Home(item.last), around)
        condition = None
        if loop.goes_on is not None and loop.begins is not None:
            condition = f"{loop.goes_on} of loop {loop.number}"
            self._extra[condition] = loop.goes_on
            yield CopyValue(loop.begins, Home(condition))
        if loop.count == 0:
            return
        ends: list[CopyValue] = []
        for rows in loop.collected:
            length = self._types[rows.array].shape[0]
            move = LoopRow(loop.number, length, rows.reverse)
            ends += self._put(rows.row, Home(rows.array, (move,)), owned)
        if condition is not None and loop.goes_on is not None:
            ends += self._put(loop.goes_on, Home(condition), owned)
        ends += self._next(loop, owned)
        body: list[PlannedStep] = []
        if self._uses[loop.iteration]:
            body.append(NumberIteration(loop))
        body += self._block(loop.body, owned)
        yield LoopSteps(loop, condition, (*body, *ends))

    def _begin(self, first: str, home: Home, around: _Owned) -> Iterator[CopyValue]:
        """A carried value before the first iteration: computed in its place where nobody else reads
        it, and where that place has not to wait until an old value in it has been read.
        """
        if self._uses[self._roots[first]] == 1 and home.value not in self._behind_old_values:
            yield from self._put(first, home, around)
        elif self._types[first].elements != 0:
            yield CopyValue(first, home)

    def _next(self, loop: FlatLoop, owned: _Owned) -> Iterator[CopyValue]:
        """The carried values for the next iteration. One that is another one's old value waits in a
        place of its own until that has been copied, too.
        """
        roots, now = self._roots, {item.now for item in loop.carried}
        waiting: list[CopyValue] = []
        for item in loop.carried:
            root, home = roots[item.next], Home(item.last)
            if root == item.now or self._types[item.next].elements == 0:
                continue
            if root in now:
                aside = f"{item.next} for {item.last}"
                self._extra[aside] = item.next
                yield CopyValue(item.next, Home(aside))
                waiting.append(CopyValue(aside, home))
            elif self._is_free(item.now, root, loop, owned):
                self._behind_old_values.add(root)
                yield from self._put(item.next, home, owned)
            else:
                waiting.append(CopyValue(item.next, home))
        yield from waiting

    def _is_free(self, now: str, root: str, loop: FlatLoop, owned: _Owned) -> bool:
        """Whether nobody reads the old value when the item runs that computes the new one, nor
        behind it.
        """
        kept = {self._roots[item.next] for item in loop.carried}
        kept |= {self._roots[rows.row] for rows in loop.collected}
        kept |= {self._roots[value] for value in (loop.goes_on,) if value is not None}
        if root not in owned.order or root in self._homes or now in kept:
            return False
        return owned.last_use.get(now, -1) < owned.order[root]
