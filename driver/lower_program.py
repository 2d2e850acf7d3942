"""A program of plain functions becomes a program of LOWERED ones: each distinct function is
scheduled, proved and lowered once; what it computes from constants alone becomes prepared constants
of the program, one set for each choice of constants; Syncs are placed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..schedule.source import ScheduleSource
from ..schedule.verdict import Verdict
from ..tir.errors import TargetError, TilewrightError
from ..tir.func import PrimFunc
from ..tir.program.flow import with_actions
from ..tir.program.program import Action, Launch, Program, ProgramTensor, Slice
from ..tir.program.syncs import place_syncs
from ..tir.target.target import Target
from ..tir.text.canonical import workload_key
from .check.clock import Laps
from .check.program import KernelCheck
from .check.ways import Refusal, Ways, refusal_notes


class ProgramRefusedError(TilewrightError, ValueError):
    """A function of a program is refused as its rule schedules it, and its caller would rather take
    it apart than have it scheduled in a plainer way. functions: their names.
    """

    def __init__(self, name: str, function: str, refusal: Refusal) -> None:
        super().__init__(
            f"program: function '{function}' of '{name}' should be taken apart: {refusal}",
            code="program-refused",
        )
        self.functions = (function,)


@dataclass(frozen=True, slots=True)
class LoweredKernel:
    """A distinct function of a program.

    key: of its workload. run, prepare: of stage LOWERED. canonical, verdict, rule, strict: see
    `Lowered`; origin, state, steps: of its schedule. refusals: the better ways that gave way.
    seconds: what each step took. check: what an earlier build found when it ran the kernel beside
    its reference; None where this build made it, or that one did not run it. kept: an earlier build
    lowered and proved it.
    """

    func: PrimFunc
    key: str
    run: PrimFunc
    prepare: PrimFunc | None
    canonical: PrimFunc
    verdict: Verdict
    rule: str
    origin: str
    state: str
    steps: tuple[str, ...]
    strict: bool
    refusals: tuple[Refusal, ...]
    seconds: Laps
    check: KernelCheck | None = None
    kept: bool = False

    @property
    def functions(self) -> tuple[PrimFunc, ...]:
        """What it adds to the program, in order."""
        return (self.run,) if self.prepare is None else (self.prepare, self.run)

    def notes(self, name: str) -> tuple[str, ...]:
        """A line for each better way: why it is not taken. name: of the kernel."""
        return refusal_notes(name, self.refusals, self.rule)

    def counted(self) -> LoweredKernel:
        """The same, once the seconds of its parts have been told."""
        return replace(self, seconds=())


class KeptKernels(Protocol):
    """Kernels that earlier builds lowered, proved and checked."""

    def get(self, func: PrimFunc, key: str) -> LoweredKernel | None:
        """The kernel of a function with this workload key; None where none is kept."""
        ...


@dataclass(frozen=True, slots=True)
class LoweredProgram:
    """A program of LOWERED functions.

    kernels: by the name of the function that they are made of. kernel_of: the name of the kernel
    that stands for each function.
    """

    program: Program
    kernels: Mapping[str, LoweredKernel]
    kernel_of: Mapping[str, str]


def lower_program(
    program: Program,
    target: Target,
    *,
    source: ScheduleSource | None = None,
    strict: bool = False,
    allow: Sequence[str] = (),
    divisible: Collection[str] = (),
    known: dict[str, LoweredKernel] | None = None,
    ways: dict[str, Ways] | None = None,
    made: Callable[[LoweredKernel], object] | None = None,
    kept: KeptKernels | None = None,
) -> LoweredProgram:
    """Lower every distinct function in the best way that passes our checks.

    allow: the tensor intrinsics with a liberty that a rule may use. divisible: names of functions
    that are to be taken apart where their rule is refused. known: kernels by workload key, to which
    those that are made are added. ways: what is left of the ways to lower a function, by workload
    key, to which is added in the same way. made: is called with each kernel of the result as soon
    as it is there, in order. kept: kernels of earlier builds, of which one is taken where no way to
    lower its function was given up.
    Raises: ProgramRefusedError for one of `divisible`; DefinitionError; ScheduleError, TargetError,
    InternalError for a function that no way is left for.
    """
    known = {} if known is None else known
    ways = {} if ways is None else ways
    kernels: dict[str, LoweredKernel] = {}
    kernel_of: dict[str, str] = {}
    names: dict[str, str] = {}  # workload key -> the kernel's name
    for func in program.functions:
        key = workload_key(func)
        name = kernel_of[func.name] = names.setdefault(key, func.name)
        if name in kernels:
            continue
        if key not in known:
            _check_whole(func)
            found = None
            if key not in ways:
                ways[key] = Ways(func, target, source, strict=strict, allow=allow)
                found = None if kept is None else kept.get(func, key)
            known[key] = _lower(func, key, ways[key]) if found is None else found
        refused = [r for r in known[key].refusals if r.origin == "rule"]
        if refused and func.name in divisible:
            raise ProgramRefusedError(program.name, func.name, refused[0])
        kernels[name] = _renamed(known[key], func)
        if made is not None:
            made(kernels[name])
    joined = _Joined(program, kernels, kernel_of)
    return LoweredProgram(place_syncs(joined.program()), kernels, kernel_of)


def _check_whole(func: PrimFunc) -> None:
    for function in func.externs:
        raise TargetError(
            f"program: '{func.name}' calls the C function '{function.symbol}'; expected functions "
            "that hold all that they compute.",
            code="program-extern",
            hints=("tw.build makes a kernel of a schedule of it.",),
        )


def _lower(func: PrimFunc, key: str, ways: Ways) -> LoweredKernel:
    way = ways.best()
    lowered = way.lowered
    schedule, parts = lowered.schedule, lowered.parts
    return LoweredKernel(
        func,
        key,
        parts.run,
        parts.prepare,
        lowered.canonical,
        lowered.verdict,
        lowered.rule,
        schedule.origin,
        schedule.log_state,
        tuple(schedule.steps),
        lowered.strict,
        way.refusals,
        lowered.seconds,
    )


def _renamed(kernel: LoweredKernel, func: PrimFunc) -> LoweredKernel:
    """The kernel with its entries named after `func`."""
    prepare = kernel.prepare
    if prepare is not None:
        prepare = replace(prepare, name=f"{func.name}.prepare")
    return replace(kernel, run=replace(kernel.run, name=func.name), prepare=prepare)


class _Joined:
    """The program with its kernels in place of its functions."""

    def __init__(
        self, program: Program, kernels: Mapping[str, LoweredKernel], kernel_of: Mapping[str, str]
    ) -> None:
        self._program = program
        self._kernels = kernels
        self._kernel_of = kernel_of
        self._constants = list(program.constants)
        self._taken = {tensor.name for tensor in program.constants}
        self._keys: dict[str, str] = {}  # of what prepares, by name: its workload key
        self._prepared: dict[tuple[str, tuple[Slice, ...]], tuple[Slice, ...]] = {}
        self._prepare: list[Launch] = []

    def program(self) -> Program:
        """The program of LOWERED functions, its Syncs where they were."""
        body = with_actions(self._program.body, self._step)
        functions: list[PrimFunc] = []
        for kernel in self._kernels.values():
            functions += kernel.functions
        return replace(
            self._program,
            constants=tuple(self._constants),
            functions=tuple(functions),
            body=body,
            prepare=tuple(self._prepare),
        )

    def _step(self, step: Action) -> Action:
        if not isinstance(step, Launch):
            return step
        name = self._kernel_of[step.function]
        kernel = self._kernels[name]
        parameters = (p.name for p in kernel.func.parameters)
        slices = dict(zip(parameters, step.arguments, strict=True))
        if kernel.prepare is not None:
            slices |= self._prepared_for(kernel.prepare, slices)
        arguments = tuple(slices[p.name] for p in kernel.run.parameters)
        known = dict(zip(kernel.func.dims, step.sizes, strict=True))
        sizes = tuple(known[dim] for dim in kernel.run.dims)
        return replace(step, function=name, arguments=arguments, sizes=sizes)

    def _prepared_for(self, prepare: PrimFunc, slices: Mapping[str, Slice]) -> dict[str, Slice]:
        """The prepared constants of a launch, by parameter name; shared where the same is prepared
        of the same constants, for whichever kernel.
        """
        read = tuple(slices[p.name] for p in prepare.parameters if p.role != "output")
        if prepare.name not in self._keys:
            self._keys[prepare.name] = workload_key(prepare)
        key = (self._keys[prepare.name], read)
        if key not in self._prepared:
            self._prepared[key] = self._made(prepare, read, slices)
        names = (buffer.name for buffer in prepare.outputs)
        return dict(zip(names, self._prepared[key], strict=True))

    def _made(
        self, prepare: PrimFunc, read: tuple[Slice, ...], slices: Mapping[str, Slice]
    ) -> tuple[Slice, ...]:
        """New constants that `prepare` computes of those that it reads."""
        made: dict[str, Slice] = {}
        # a table of indices, say, reads no constant
        owner = self._constants[read[0].position].name if read else prepare.name
        for buffer in prepare.outputs:
            made[buffer.name] = Slice("constant", len(self._constants), buffer.type, buffer.shape)
            name = self._fresh(f"{owner}.{buffer.name}")
            self._constants.append(ProgramTensor(name, buffer.type, buffer.shape))
        arguments = [(made.get(p.name) or slices[p.name]) for p in prepare.parameters]
        self._prepare.append(Launch(prepare.name, tuple(arguments)))
        return tuple(made.values())

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}.{number}"
        self._taken.add(name)
        return name
