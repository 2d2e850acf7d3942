"""A Kernel: one function, ready to be called on arrays, with all there is to say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, cast

import numpy as np

from ..codegen.artifact import Artifact, Parameter, Written
from ..tir.errors import TilewrightError
from ..tir.sizes import largest
from ..tir.text.html import details, plain
from ..tir.text.source_text import AssemblyText, SourceText
from .arrays import Argument, ArgumentTypeError, Array, accept_call, empty_aligned
from .call_names import arrange_call
from .call_result import CallResult
from .cpu.native import NativeCode
from .engine.occupied import Occupied
from .index_checks import check_indices
from .kernel_code import Code
from .kernel_schedule import KernelSchedule
from .machine.host import default_threads
from .machine.threads import checked_threads
from .machine.timing import CacheState, Timing, compare, measure
from .measure.limits import fma_peak, limits
from .measure.roofline import Roofline, Work
from .toolchain.library import SharedObject

_ROOFLINE_ROUNDS = 9
_ROOFLINE_SECONDS = 2.0  # or five rounds, of a kernel that is slow


class KernelError(TilewrightError, ValueError):
    """A kernel is asked for what it was not built with."""


class Kernel(Generic[CallResult]):
    """A function on arrays; build one with `tilewright.build`.

    `kernel(*inputs)` returns a new array, or a tuple of them where there are several outputs;
    `kernel(*inputs, *outputs)` and `kernel(*inputs, out=outputs)` write into the outputs and return
    them; arguments may be given by name. A type checker takes what a call gives for one array, as
    `Kernel[tuple[Array, Array]]` for two. Immutable: any number of threads may call it at once. It
    pickles, with its compiled code and its constants.

    artifact: its source and parameters. proof: the verdict on its schedule, None where it was not
    proved. work: what it must do at least, None where that is not known. notes: the better
    schedules that gave way, and why; what was not checked. bound: the caller's arrays that
    constants were bound to, into which no call may write. tuning: "tuned" where a log's schedule is
    used that was found on this CPU, "similar: ..." for one from elsewhere, "by hand", "default:
    ..." with the reason, or "" where that is not known. code: what executes it.
    """

    def __init__(
        self,
        artifact: Written,
        code: Code,
        *,
        proof: object | None = None,
        work: Work | None = None,
        notes: tuple[str, ...] = (),
        bound: Mapping[str, Array] | None = None,
        tuning: str = "",
        schedule: KernelSchedule | None = None,
    ) -> None:
        self.artifact = artifact
        self.proof = proof
        self.work = work
        self.notes = notes
        self.tuning = tuning
        self._schedule = schedule
        self.code = code
        self._occupied = Occupied((bound or {},))
        results = [p for p in artifact.parameters if p.check is None]
        checks = [(p.check, p) for p in artifact.parameters if p.check is not None]
        self._inputs = tuple(_arguments(results, "input"))
        self._outputs = tuple(_arguments(results, "output"))
        self._checks = tuple(check for check, _ in checks)
        self._words = tuple(_arguments((p for _, p in checks), "output"))
        self._order = _order(artifact.parameters)

    @staticmethod
    def load(
        artifact: Artifact,
        shared: SharedObject,
        constants: Mapping[str, object] | None = None,
        *,
        proof: object | None = None,
        work: Work | None = None,
        notes: tuple[str, ...] = (),
    ) -> Kernel:
        """A kernel of compiled code; binds the constants and computes what depends on them alone.

        Raises: ArgumentTypeError, ArgumentValueError for constants that do not fit; TargetError
        where this machine lacks the instruction set; LibraryError.
        """
        bound = accept_constants(artifact, constants or {})
        code = NativeCode.load(artifact, shared, bound)
        return Kernel(artifact, code, proof=proof, work=work, notes=notes, bound=bound)

    def __reduce__(self) -> tuple[object, ...]:
        return _remake, (
            self.artifact,
            self.code,
            self.proof,
            self.work,
            self.notes,
            self.tuning,
        )

    def __call__(
        self, *arrays: object, out: object = None, threads: int | None = None, **named: object
    ) -> CallResult:
        """Run on NumPy arrays or on what shares its memory with them; nothing is copied.

        out: what to write into: the output, a tuple of all outputs, or a dict of them by name.
        threads: default TILEWRIGHT_NUM_THREADS, else the CPUs allowed to this process now. The
        result has the same bits at any number of threads.
        named: inputs and outputs by name, kernel(A=a, C=c); one that is called 'out' or 'threads'
        is given by its place.
        Raises: ArgumentTypeError, ArgumentValueError; IndexRangeError, an IndexError, after a run
        in which an index that te.checked checks lay outside of its range.
        """
        values: Sequence[object] = arrays
        if named or out is not None:
            values = self._arranged(arrays, named, out)
        inputs, outputs = accept_call(self.name, self._inputs, self._outputs, values)
        if len(values) > len(inputs):
            self._occupied.check(self.name, [a.name for a in self._outputs], outputs)
        words = [argument.new() for argument in self._words]
        self.run(inputs, [*outputs, *words], threads=threads)
        check_indices(
            self.name,
            ((check, int(word.item())) for check, word in zip(self._checks, words, strict=True)),
        )
        return cast("CallResult", outputs[0] if len(outputs) == 1 else tuple(outputs))

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array], *, threads: int | None = None
    ) -> None:
        """Run without argument checks. outputs: with the words of the checks after the others; a
        check that fails only sets its word.
        """
        self.code.run(self._in_order(inputs, outputs), self._threads(threads))

    def run_by(self, code: Code) -> Kernel[CallResult]:
        """The same kernel, executed by other code."""
        other: Kernel[CallResult] = object.__new__(type(self))
        other.__dict__.update(self.__dict__, code=code)
        return other

    @property
    def name(self) -> str:
        """The function's name."""
        return self.artifact.name

    @property
    def source(self) -> SourceText:
        """The generated source text; in a notebook beside the loop nest of `schedule`."""
        if self._schedule is None:
            return SourceText(self.artifact.source)
        from ..codegen.text.tied_source import beside_nest  # what is only run needs no language

        return beside_nest(self.artifact.source, self._schedule.func)

    @property
    def schedule(self) -> KernelSchedule | None:
        """The `tw.Schedule` that it was built by, whether a rule, a log or the caller made it: a
        copy, on which further steps may be tried. None where nothing was scheduled, as for an
        interpreter, and of a kernel that was unpickled or loaded from an artifact.
        """
        return None if self._schedule is None else self._schedule.copy()

    @property
    def assembly(self) -> AssemblyText:
        """The compiler's assembly text of the source; of CUDA C its PTX.

        Raises: CompilerNotFound, NvrtcNotFound, CompileFailed; KernelError where none is compiled.
        """
        text = self.code.assembly()
        if text is None:
            raise KernelError(
                f"assembly: '{self.name}' for {self.artifact.target} is interpreted; expected a "
                "kernel of a compiled target.",
                code="kernel-assembly",
            )
        return AssemblyText(text)

    @property
    def signature(self) -> str:
        """The arguments and results of a call: names, dtypes, shapes."""
        results = ", ".join(map(str, self._outputs))
        return f"{self.name}({', '.join(map(str, self._inputs))}) -> {results}"

    def time(
        self,
        *arrays: object,
        seconds: float = 0.5,
        cache: CacheState = "warm",
        threads: int | None = None,
    ) -> Timing:
        """Time runs on copies of the arrays for about `seconds`; argument checks are not timed.

        cache: "warm", or "cold" to have data and constants evicted before every run.
        Raises: ArgumentTypeError, ArgumentValueError.
        """
        return measure(self.bind_copies(*arrays, threads=threads), seconds, cache=cache)

    def roofline(self, *arrays: object, threads: int | None = None) -> Roofline:
        """Time runs on copies of the arrays beside the multiply-add peak, in the same rounds.

        Raises: KernelError for a kernel of a GPU, and where the kernel's work is not known, as for
        sizes that are not the largest; ArgumentTypeError, ArgumentValueError, CompilerNotFound.
        """
        if self.code.device == "GPU":
            raise KernelError(
                f"roofline: '{self.name}' runs on a GPU; the peak is measured of this machine's "
                "CPU alone.",
                code="kernel-roofline",
                hints=(f"{self.name}.time(...) tells its time on the device.",),
            )
        if self.work is None:
            raise KernelError(
                f"roofline: the work of '{self.name}' is not known; expected a kernel that was "
                "built from a function.",
                code="kernel-work",
            )
        self._check_largest(arrays)
        count = self._threads(threads)
        peak = fma_peak(count)
        calls: dict[str, Callable[[], object]] = {
            "kernel": self.bind_copies(*arrays, threads=count),
            "peak": peak,
        }
        timings = compare(calls, _ROOFLINE_ROUNDS, seconds=_ROOFLINE_SECONDS)
        return Roofline(
            timing=timings["kernel"],
            threads=count,
            work=self.work,
            peak_gflops=peak.rate(timings["peak"].median),
            peak_gb_per_s=limits().gb_per_s(count, self.work.bytes),
        )

    def _check_largest(self, arrays: Sequence[object]) -> None:
        """Refuse sizes other than those that `work` is known for."""
        inputs, _ = accept_call(self.name, self._inputs, self._outputs, arrays)
        for argument, array in zip(self._inputs, inputs, strict=True):
            largest_shape = tuple(map(largest, argument.shape))
            if array.shape != largest_shape:
                raise KernelError(
                    f"roofline: '{argument.name}' has shape {array.shape}; expected the largest, "
                    f"{largest_shape}, for which the work of '{self.name}' is known.",
                    code="kernel-work-size",
                    hints=(f"{self.name}.time(...) takes arrays of any size.",),
                )

    def bind_copies(
        self, *arrays: object, threads: int | None = None, rotated: int = 1
    ) -> Callable[[], object]:
        """A call without arguments that runs on copies of the arrays, for timing.

        rotated: how many copies of the constants, prepared ones too, calls take in turn; with
        enough of them each call finds its constants out of the caches, as an engine's kernels do.
        Raises: ArgumentTypeError, ArgumentValueError.
        """
        inputs, results = accept_call(self.name, self._inputs, self._outputs, arrays)
        copies = []
        for array in inputs:
            copy = empty_aligned(array.shape, array.dtype)
            copy[...] = array
            copies.append(copy)
        outputs = [empty_aligned(array.shape, array.dtype) for array in results]
        outputs += [argument.new() for argument in self._words]
        for output in outputs:
            output[...] = np.zeros(
                (), output.dtype
            )  # so that its pages exist before the clock runs
        bound, count = self._in_order(copies, outputs), self._threads(threads)
        return self.code.bind(bound, count, rotated)

    def __repr__(self) -> str:
        lines = [f"Kernel {self.signature}", f"  target: {self.artifact.target}"]
        if self.proof is not None:
            lines.append(f"  proof: {self.proof}")
        if self.work is not None:
            lines.append(f"  work: {self.work.operations} operations, {self.work.bytes} bytes")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return plain(repr(self)) + details("source", self.source._repr_html_())

    def _in_order(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> Sequence[Array]:
        """Inputs and outputs in the order of the parameters."""
        arrays = [*inputs, *outputs]
        return [arrays[index] for index in self._order] if self._order else arrays

    def _arranged(
        self, arrays: Sequence[object], named: Mapping[str, object], out: object
    ) -> list[object]:
        """The arrays of a call that names some of them, in order."""
        return arrange_call(
            self.name,
            [argument.name for argument in self._inputs],
            [argument.name for argument in self._outputs],
            arrays,
            named,
            out,
            constants=_constants(self.artifact),
        )

    def _threads(self, threads: int | None) -> int:
        return default_threads() if threads is None else checked_threads(threads, self.name)


def accept_constants(artifact: Written, constants: Mapping[str, object]) -> dict[str, Array]:
    """The arrays of an artifact's constants, by name, checked like arguments.

    Raises: ArgumentTypeError for one that is missing or unknown, and as for arguments.
    """
    needed = _constants(artifact)
    for name in constants:
        if name not in needed:
            raise ArgumentTypeError(
                f"{artifact.name}: '{name}' is not a constant of it; the constants are: "
                f"{', '.join(needed) or 'none'}.",
                code="constant-unknown",
            )
    for name, constant in needed.items():
        if name not in constants:
            raise ArgumentTypeError(
                f"{artifact.name}: the constant '{name}' is not bound; expected {constant}.",
                code="constant-unbound",
                hints=(f'tw.build(..., constants={{"{name}": {name.lower()}}})',),
            )
    return {name: needed[name].accept(value, artifact.name) for name, value in constants.items()}


def _constants(artifact: Written) -> dict[str, Argument]:
    """The constants of an artifact, by name."""
    prepare = artifact.prepare.parameters if artifact.prepare is not None else ()
    found = _arguments((*artifact.parameters, *prepare), "constant")
    return {constant.name: constant for constant in found}


def _arguments(parameters: Iterable[Parameter], role: str) -> list[Argument]:
    return [
        Argument(p.name, p.dtype.numpy, p.shape, role == "output")
        for p in parameters
        if p.role == role
    ]


def _order(parameters: Sequence[Parameter]) -> tuple[int, ...]:
    """Where each free parameter stands among inputs, then outputs; () where in that order."""
    free = [parameter.role for parameter in parameters if parameter.role in ("input", "output")]
    sources = [index for index, role in enumerate(free) if role == "input"]
    sources += [index for index, role in enumerate(free) if role == "output"]
    places = [sources.index(index) for index in range(len(free))]
    return () if places == sorted(places) else tuple(places)


def _remake(
    artifact: Written,
    code: Code,
    proof: object | None,
    work: Work | None,
    notes: tuple[str, ...],
    tuning: str = "",  # kernels that were pickled before it was kept say nothing of it
) -> Kernel:
    return Kernel(artifact, code, proof=proof, work=work, notes=notes, tuning=tuning)
