"""Lowered cases as C: one source for a batch, run on fenced and poisoned memory, bits compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...codegen.artifact import Entry, Parameter, ToldSize
from ...codegen.c.build import entry
from ...codegen.c.emit import emit_function
from ...codegen.c.externs import with_externs
from ...codegen.c.frame import prelude
from ...runtime.cpu.native import NativeEntry
from ...runtime.toolchain.compile import compile_shared
from ...runtime.toolchain.library import Library
from ...tir.func import PrimFunc
from ...tir.sizes import shape_in
from ...tir.target.target import Target
from ..check.fenced import Fenced, poisoned
from .case import Array
from .examine import CaseFailure, Failed, LoweredCase, differing, stage

THREADS = (1, 3)


@dataclass(frozen=True, slots=True)
class _Part:
    """A function of a batch: its C text and how to call it."""

    func: PrimFunc
    text: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class _Written:
    """A lowered case as C. prepare: what computes on constants alone, None where nothing does."""

    case: LoweredCase
    prepare: _Part | None
    run: _Part

    @property
    def parts(self) -> tuple[_Part, ...]:
        return (self.run,) if self.prepare is None else (self.prepare, self.run)


def run_batch(cases: Sequence[LoweredCase]) -> list[CaseFailure | None]:
    """Compile the cases, all for one target, together; run each. What is wrong with each.

    A source that the compiler refuses is compiled again case by case, to find who is to blame.
    """
    written: list[_Written | CaseFailure] = [_attempt(case, n) for n, case in enumerate(cases)]
    good = [item for item in written if isinstance(item, _Written)]
    name = f"C for {cases[0].target}" if cases else "C"
    failures: dict[int, CaseFailure | None] = {}
    if good:
        try:
            with stage(name):
                library = _library(good, cases[0].target)
        except Failed as error:
            if len(good) == 1:
                return [
                    item if isinstance(item, CaseFailure) else error.failure for item in written
                ]
            return [run_batch([case])[0] for case in cases]
        for item in good:
            failures[id(item.case)] = _run(item, library, name)
    return [
        item if isinstance(item, CaseFailure) else failures[id(case)]
        for item, case in zip(written, cases, strict=True)
    ]


def _attempt(case: LoweredCase, number: int) -> _Written | CaseFailure:
    try:
        with stage(f"C for {case.target}"):
            return _write(case, number)
    except Failed as error:
        return error.failure


def _write(case: LoweredCase, number: int) -> _Written:
    prepare = case.parts.prepare
    return _Written(
        case,
        None if prepare is None else _part(prepare, case.target, f"tw_p{number}"),
        _part(case.parts.run, case.target, f"tw_f{number}"),
    )


def _part(func: PrimFunc, target: Target, symbol: str) -> _Part:
    return _Part(func, emit_function(func, target, symbol), entry(func, symbol))


def _library(written: Sequence[_Written], target: Target) -> Library:
    body = "\n".join(part.text for item in written for part in item.parts)
    called = with_externs(body, *(part.func for item in written for part in item.parts))
    source = f"{prelude(target, body)}\n{called}"
    return Library(compile_shared(source, target, name="fuzz"), name="fuzz")


def _run(item: _Written, library: Library, name: str) -> CaseFailure | None:
    try:
        with stage(name):
            for threads in THREADS:
                values = dict(item.case.given)
                for part in item.parts:
                    values |= _call(part.entry, library, values, threads, name)
                _compare(item.case, values, name, threads)
    except Failed as error:
        return error.failure
    return None


def _call(
    what: Entry, library: Library, values: dict[str, Array], threads: int, name: str
) -> dict[str, Array]:
    """The outputs of an entry."""
    fenced = {
        p.name: Fenced(
            poisoned(p.dtype, _shape(p, what, values)) if p.role == "output" else values[p.name]
        )
        for p in what.parameters
    }
    placed = [fenced[p.name].array for p in what.parameters]
    NativeEntry(library, what, {}).run(placed, threads)
    torn = [parameter for parameter, memory in fenced.items() if not memory.intact()]
    if torn:
        raise Failed(CaseFailure(name, "fence", f"it wrote outside of '{torn[0]}'"))
    return {p.name: fenced[p.name].array for p in what.parameters if p.role == "output"}


def _shape(output: Parameter, what: Entry, values: Mapping[str, Array]) -> tuple[int, ...]:
    """The shape of an output beside these inputs."""
    told = {
        size.dim: values[what.parameters[size.parameter].name].shape[size.axis]
        for size in what.sizes
        if isinstance(size, ToldSize) and size.parameter is not None
    }
    return shape_in(output.shape, told)


def _compare(case: LoweredCase, values: dict[str, Array], name: str, threads: int) -> None:
    for output, expected in case.outputs.items():
        count = differing(values[output], expected)
        if count:
            raise Failed(
                CaseFailure(
                    name,
                    "bits",
                    f"{count} of {expected.size} elements of '{output}' differ in their bits from "
                    f"the LOWERED function's, on {threads} thread(s)",
                )
            )
