"""The recorder under a schedule: states, the trace, replay; what makes a step atomic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from ..tir.func import PrimFunc
from ..tir.target.target import Target
from ..tir.text.html import STEPS, details, highlight
from ..tir.text.side_by_side import SideBySide
from .canonical import has_same_blocks
from .errors import ScheduleError, ScheduleTypeError
from .legality.externs import check_calls
from .legality.tensorized import check_kept
from .primitives.parameters import StepSite
from .primitives.primitive import Primitive
from .primitives.sample import DecisionForm
from .primitives.table import STEP_FORMS
from .trace.decisions import Decisions, Default, Replay
from .trace.references import References
from .trace.steps import step_line
from .trace.trace import Step, Trace
from .trace.vocabulary import subscript, unknown_step

Made = TypeVar("Made")


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
        log_state: str = "",
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
        self.log_state = log_state
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
        taken = zip(self.trace.steps, self._states[:-1], self._states[1:], strict=True)
        return tuple(
            step_line(step, _made(step, number, after), before.func, before.references)
            for number, (step, before, after) in enumerate(taken)
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
        cls,
        func: PrimFunc,
        trace: Trace,
        target: Target | None = None,
        origin: str = "hand",
        log_state: str = "",
    ) -> Self:
        """The schedule that `trace` recorded, on a function with the same workload. Samples that
        follow are answered by the rule's own choice.

        Raises: ScheduleError when a step does not apply.
        """
        sch = cls(func, target, Replay(trace), origin, log_state)
        for step in trace.steps:
            sch.take(step)
        sch._decisions = Default()
        return sch

    def take(self, step: Step) -> None:
        """Take one recorded step, as `replay` does. Raises: ScheduleError if it does not apply."""
        number = len(self.trace.steps)
        form = STEP_FORMS.get(step.primitive)
        if form is None:
            raise ScheduleError(
                f"replay: step {number} is '{step.primitive}', which is no primitive.",
                code="replay-primitive",
            )
        arguments = form.decode(number, step, self._site(form.name))
        if isinstance(form, DecisionForm):
            self._ask(form, arguments)
        else:
            self._take(form, **arguments)

    def as_step(self, primitive: str, arguments: Mapping[str, object]) -> Step:
        """What the trace would say of a step that has not been taken."""
        return Step(primitive, STEP_FORMS[primitive].encode(arguments, self._site(primitive)))

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
        other = type(self)(self.original, self.target, self._decisions, self.origin, self.log_state)
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

    def __reduce__(
        self,
    ) -> tuple[Callable[..., Self], tuple[PrimFunc, Trace, Target | None, str, str]]:
        known = (self.original, self.trace, self.target, self.origin, self.log_state)
        return type(self).replay, known

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
        return self.func._repr_html_() + list_of_steps

    def _site(self, primitive: str) -> StepSite:
        state = self._states[-1]
        return StepSite(state.func, state.references, primitive)

    def _take(self, primitive: Primitive[Made], **arguments: object) -> Made:
        """Take a step. Returns what its caller gets of what it made. Raises: ScheduleError."""
        site = self._site(primitive.name)
        rewrite = primitive.rewrite(site, arguments, self.target)
        check_kept(site.func, rewrite.func, primitive.name)
        check_calls(site.func, rewrite.func, primitive.name)
        number = len(self.trace.steps)
        references = site.references.after(number, primitive.name, rewrite)
        step = Step(primitive.name, primitive.encode(arguments, site))
        self._states.append(State(rewrite.func, references, self._and(step)))
        return primitive.gives(*references.made(number))

    def _ask(self, decision: DecisionForm, arguments: Mapping[str, object]) -> int:
        """Have a question answered. Returns the index of the candidate. Raises: ScheduleError."""
        site = self._site(decision.name)
        question = decision.function(len(self.trace.steps), **arguments)
        chosen = self._decisions.choose(question)
        encoded = decision.encode(arguments, site)
        step = Step(decision.name, encoded, question.candidates[chosen])
        self._states.append(State(site.func, site.references, self._and(step)))
        return chosen

    def _and(self, step: Step) -> Trace:
        return Trace((*self.trace.steps, step))


def _made(step: Step, number: int, after: State) -> object:
    """What the caller of a step got; None for a decision."""
    form = STEP_FORMS[step.primitive]
    return form.gives(*after.references.made(number)) if isinstance(form, Primitive) else None
