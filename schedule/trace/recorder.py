"""The recorder under a schedule: states, references, the trace, replay; what makes a step
atomic.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self

from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.func import PrimFunc
from ...tir.target import Target
from ...tir.text.html import STEPS, details, highlight
from ...tir.text.side_by_side import SideBySide
from ..canonical import has_same_blocks
from ..errors import ScheduleError, ScheduleTypeError
from ..legality.externs import check_calls, check_loops
from ..legality.tensorized import check_kept
from ..nest import Rewrite
from .argument_types import misfit
from .decisions import Decisions, Default, Replay
from .references import LoopRef, References
from .steps import step_line
from .trace import Step, Trace
from .vocabulary import subscript, unknown_step

RECORDED = frozenset(
    {
        "split",
        "fuse",
        "reorder",
        "loop_partition",
        "merge",
        "add_unit_loop",
        "parallel",
        "bind",
        "vectorize",
        "unroll",
        "compute_at",
        "reverse_compute_at",
        "compute_inline",
        "reverse_compute_inline",
        "cache_read",
        "cache_write",
        "rolling_buffer",
        "reindex",
        "join_axes",
        "split_axis",
        "set_scope",
        "stage",
        "storage_align",
        "swizzle",
        "transform_layout",
        "pad",
        "narrow",
        "pad_axes",
        "decompose_padding",
        "decompose_reduction",
        "rfactor",
        "prefetch",
        "annotate",
        "blockize",
        "tensorize",
        "sample_categorical",
    }
)


@dataclass(frozen=True, slots=True)
class State:
    """A schedule after some steps."""

    func: PrimFunc
    references: References
    trace: Trace


class Recorder:
    """A function, the steps taken on it so far, and who answers the questions of a rule."""

    def __init__(
        self,
        func: PrimFunc,
        target: Target | None = None,
        decisions: Decisions | None = None,
        origin: str = "hand",
    ) -> None:
        if not isinstance(func, PrimFunc):
            raise ScheduleTypeError(
                f"schedule: got a {type(func).__name__}; expected a PrimFunc.",
                code="schedule-what",
                hints=("te.func makes one of tensors; sch.copy() goes on from another schedule.",),
            )
        self.original = func
        self.target = target
        self.origin = origin
        self._decisions = decisions or Default()
        self._states = [State(func, References.of(func), Trace())]

    @property
    def func(self) -> PrimFunc:
        """The function as it is now."""
        return self._states[-1].func

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return self._states[-1].trace

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps so far, as lines that name the loops and blocks which they met and made."""
        return tuple(
            step_line(number, step, before.func, before.references, after.references)
            for number, (step, before, after) in enumerate(
                zip(self.trace.steps, self._states[:-1], self._states[1:], strict=True)
            )
        )

    @property
    def rewrites(self) -> tuple[str, ...]:
        """The primitives of the steps that changed what blocks compute, each once, in order."""
        funcs = [state.func for state in self._states]
        found = (
            step.primitive
            for step, before, after in zip(self.trace.steps, funcs[:-1], funcs[1:], strict=True)
            if not has_same_blocks(before, after)
        )
        return tuple(dict.fromkeys(found))

    def show(self) -> None:
        """Print the loop nest as it is now, and the steps that led here."""
        print(self.func)
        for number, line in enumerate(self.steps):
            print(f"# {number}: {line}")

    def compare(self, steps: int = 1) -> SideBySide:
        """The function before its last `steps` steps beside the one as it is now.

        Raises: ScheduleError where fewer steps were taken, or for less than one.
        """
        taken = len(self._states) - 1
        if type(steps) is not int or not 1 <= steps <= taken:
            raise ScheduleError(
                f"compare: steps is {steps!r}; expected 1 to the number of steps so far, {taken}.",
                code="compare-steps",
            )
        before = self._states[-1 - steps].func
        return SideBySide(str(before), str(self.func), self.steps[-steps:])

    @classmethod
    def replay(
        cls, func: PrimFunc, trace: Trace, target: Target | None = None, origin: str = "hand"
    ) -> Self:
        """The schedule that `trace` recorded, on a function with the same workload. Samples that
        follow are answered by the rule's own choice.

        Raises: ScheduleError when a step does not apply.
        """
        sch = cls(func, target, Replay(trace), origin)
        for step in trace.steps:
            sch.take(step)
        sch._decisions = Default()
        return sch

    def take(self, step: Step) -> None:
        """Take one recorded step, as `replay` does. Raises: ScheduleError if it does not apply."""
        number = len(self.trace.steps)
        method = getattr(self, step.primitive, None)
        if step.primitive not in RECORDED or method is None:
            raise ScheduleError(
                f"replay: step {number} is '{step.primitive}', which is no primitive.",
                code="replay-primitive",
            )
        arguments = {key: self._decode(number, value) for key, value in step.arguments}
        loops = arguments.pop("loops", ())
        positional = loops if isinstance(loops, tuple) else (loops,)
        try:
            bound = inspect.signature(method).bind(*positional, **arguments)
        except TypeError as error:
            raise ScheduleError(
                f"replay: step {number}, '{step.primitive}', has other arguments than the "
                f"primitive: {error}.",
                code="replay-arguments",
            ) from None
        wrong = misfit(getattr(type(self), step.primitive), bound)
        if wrong is not None:
            raise ScheduleError(
                f"replay: step {number}, '{step.primitive}', has {wrong[0]} "
                f"{bound.arguments[wrong[0]]!r}; expected {wrong[1]}.",
                code="replay-kind",
            )
        method(*positional, **arguments)

    def as_step(self, primitive: str, arguments: Mapping[str, object]) -> Step:
        """What the trace would say of a step that has not been taken."""
        return Step(primitive, self._encoded(arguments))

    def apply(self, function: Callable[[Self], object]) -> Self:
        """Run a function of this schedule; when it raises, every step that it took is undone.
        Returns this schedule.
        """
        before = list(self._states)
        try:
            function(self)
        except BaseException:
            self._states = before
            raise
        return self

    def attempt(self, step: Callable[[Self], object]) -> bool:
        """Whether `step` applied; when it is refused, the schedule stays as it was."""
        try:
            self.apply(step)
        except ScheduleError:
            return False
        return True

    def copy(self) -> Self:
        """Another schedule with the same steps."""
        other = type(self)(self.original, self.target, self._decisions, self.origin)
        other._states = list(self._states)
        return other

    def undo(self) -> Self:
        """Take back the last step, if there is one. Returns this schedule."""
        if len(self._states) > 1:
            self._states.pop()
        return self

    def reset(self) -> Self:
        """Take back every step. Returns this schedule."""
        del self._states[1:]
        return self

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[PrimFunc, Trace, Target | None, str]]:
        return type(self).replay, (self.original, self.trace, self.target, self.origin)

    def __getitem__(self, key: object) -> NoReturn:
        raise subscript(key)

    if not TYPE_CHECKING:  # a checker knows the steps, and that there are no others

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):  # copy, pickle and notebooks ask for what is not there
                raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'")
            raise unknown_step(name, (n for n in dir(type(self)) if not n.startswith("_")))

    def __repr__(self) -> str:
        return str(self.func)

    def _repr_html_(self) -> str:
        steps = self.steps
        lines = "\n".join(f"{number:2}  {line}" for number, line in enumerate(steps))
        title = f"{len(steps)} step{'' if len(steps) == 1 else 's'} so far"
        list_of_steps = details(title, highlight(lines, STEPS), shown=True) if steps else ""
        return highlight(str(self.func)) + list_of_steps

    def _loop(self, ref: LoopRef, primitive: str) -> Var:
        state = self._states[-1]
        return state.references.loop(state.func, ref, primitive)

    def _block(self, name: str, primitive: str) -> str:
        state = self._states[-1]
        state.references.block_key(state.func, name, primitive)
        check_loops(state.func, name, primitive)
        return name

    def _tensor(self, name: str, primitive: str) -> Buffer:
        state = self._states[-1]
        return state.references.tensor(
            state.func, state.references.tensor_key(state.func, name, primitive)
        )

    def _storage(self, name: str, primitive: str) -> Buffer:
        state = self._states[-1]
        return state.references.storage(
            state.func, state.references.tensor_key(state.func, name, primitive)
        )

    def _loops(
        self, primitive: str, rewrite: Callable[[PrimFunc], Rewrite], **arguments: object
    ) -> tuple[LoopRef, ...]:
        made = self._do(primitive, rewrite, **arguments)
        references = self._states[-1].references
        return tuple(references.handle(var) for var in made.loops)

    def _block_made(
        self, primitive: str, rewrite: Callable[[PrimFunc], Rewrite], **arguments: object
    ) -> str:
        return self._do(primitive, rewrite, **arguments).blocks[0]

    def _do(
        self, primitive: str, rewrite: Callable[[PrimFunc], Rewrite], **arguments: object
    ) -> Rewrite:
        state = self._states[-1]
        made = rewrite(state.func)
        check_kept(state.func, made.func, primitive)
        check_calls(state.func, made.func, primitive)
        encoded = self._encoded(arguments)
        number = len(state.trace.steps)
        references = state.references.after(number, primitive, made)
        trace = Trace((*state.trace.steps, Step(primitive, encoded)))
        self._states.append(State(made.func, references, trace))
        return made

    def _encoded(self, arguments: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
        return tuple(
            (key, self._encode(key, value)) for key, value in arguments.items() if value is not None
        )

    def _encode(self, name: str, value: object) -> object:
        state = self._states[-1]
        if isinstance(value, LoopRef):
            return {"loop": value.key, "name": value.name}
        if isinstance(value, tuple):
            return tuple(self._encode("", item) for item in value)
        if name == "block":
            return {"block": state.references.block_key(state.func, str(value), name)}
        if name == "buffer":
            return {"tensor": state.references.tensor_key(state.func, str(value), name)}
        return value

    def _decode(self, step: int, value: object) -> object:
        state = self._states[-1]
        if isinstance(value, tuple):
            return tuple(self._decode(step, item) for item in value)
        if not isinstance(value, dict):
            return value
        if "loop" in value:
            return LoopRef(str(value["loop"]), str(value.get("name", value["loop"])))
        try:
            if "block" in value:
                return state.references.blocks[value["block"]]
            return state.references.storage(state.func, value["tensor"]).name
        except (KeyError, IndexError, ValueError, TypeError, AttributeError):
            raise ScheduleError(
                f"replay: step {step} names {value!r}, which '{state.func.name}' does not have.",
                code="replay-reference",
                hints=("the trace belongs to another workload.",),
            ) from None
