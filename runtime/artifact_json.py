"""Artifacts, and what else stands in an engine's file, as JSON and back; what writing cannot have
made is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields, replace
from functools import partial
from typing import TypeVar

from ..codegen.artifact import Artifact, Entry, Parameter, ToldSize
from ..codegen.check_memory import check_memory
from ..codegen.program_artifact import EmittedProgram, ProgramArtifact, Scratch, slices_of
from ..tir.dtype import UINT64
from ..tir.errors import IRError
from ..tir.index_check import IndexCheck
from ..tir.json_reader import Json, Reader, cut_line
from ..tir.program.json import launch_from_json, step_from_json, step_to_json
from ..tir.program.program import Launch, actions
from ..tir.program.sizes_json import (
    NO_DIMS,
    Dims,
    dims_from_json,
    dims_to_json,
    shape_from_json,
    shape_to_json,
)
from ..tir.sizes import AnySize, size_of
from ..tir.target.gpu import GpuRates
from ..tir.target.kinds import BUILT_IN, is_kind
from ..tir.target.names import FEATURES, machines_of, names_gpu
from ..tir.target.target import CpuTarget, GpuTarget, Target
from .model.precision_json import precision_from_json, precision_to_json
from .model.precision_report import PrecisionReport
from .model.report import EngineReport, KernelReport, MemoryPlan

Emitted = TypeVar("Emitted", bound=EmittedProgram)

_ROLES = ("input", "constant", "prepared", "output")
SYMBOL = 200  # characters
_LONGEST_KIND = 80
# fields of a target: of a CPU those that are whole numbers, of a GPU its rates
_WHOLE = ("vector_bytes", "vector_registers", "fma_per_cycle", "l1_bytes", "l2_bytes", "l3_bytes")
_RATES = tuple(field.name for field in fields(GpuRates))


def program_to_json(program: EmittedProgram) -> dict[str, Json]:
    """What every back end's program has, without its kernels."""
    return {
        "name": program.name,
        "target": dict(program.target.to_json()),
        "dims": dims_to_json(program.all_dims),
        "inputs": [parameter_to_json(p) for p in program.inputs],
        "constants": [parameter_to_json(p) for p in program.constants],
        "read": list(program.read),
        "outputs": [parameter_to_json(p) for p in program.outputs],
        "body": [step_to_json(step) for step in program.body],
        "prepare": [step_to_json(launch) for launch in program.prepare],
        "arena_bytes": program.arena_bytes,
        "workspace_bytes": program.workspace_bytes,
    }


def program_from_json(data: Reader, make: Callable[..., Emitted]) -> Emitted:
    """What `make` makes of the fields that `program_to_json` wrote. Raises: IRError."""
    dims = dims_from_json(data.optional("dims"))
    program = make(
        name=data["name"].text(),
        target=target_from_json(data["target"]),
        inputs=tuple(parameter_from_json(item, dims) for item in data["inputs"].items()),
        constants=tuple(parameter_from_json(item) for item in data["constants"].items()),
        read=tuple(item.integer() for item in data["read"].items()),
        outputs=tuple(parameter_from_json(item, dims) for item in data["outputs"].items()),
        body=tuple(step_from_json(item, dims) for item in data["body"].items()),
        prepare=tuple(launch_from_json(item) for item in data["prepare"].items()),
        arena_bytes=data["arena_bytes"].integer(),
        workspace_bytes=data["workspace_bytes"].integer(),
    )
    if any(position >= len(program.constants) for position in program.read):
        raise wrong("'read' names a constant that does not exist")
    return program


def artifact_to_json(artifact: ProgramArtifact) -> dict[str, Json]:
    """A program's artifact without its texts."""
    return {
        **program_to_json(artifact),
        "symbol": artifact.symbol,
        "kernels": [_entry_to_json(kernel) for kernel in artifact.kernels],
        "scratch": [[place.bytes, place.thread_bytes] for place in artifact.scratch],
        "thread_workspace_bytes": artifact.thread_workspace_bytes,
    }


def artifact_from_json(data: Reader, sources: tuple[str, ...]) -> ProgramArtifact:
    """The artifact that `artifact_to_json` wrote. Raises: IRError.

    sources: a text for each kernel, then the main one.
    """
    scratch = data.optional("scratch")
    make = partial(
        ProgramArtifact,
        symbol=data["symbol"].text(SYMBOL),
        kernels=tuple(_entry(item) for item in data["kernels"].items()),
        texts=sources[:-1],
        main=sources[-1],
        scratch=() if scratch is None else tuple(map(_scratch, scratch.items())),
        thread_workspace_bytes=data["thread_workspace_bytes"].integer(),
    )
    artifact = program_from_json(data, make)
    _check(artifact)
    return artifact


def _scratch(data: Reader) -> Scratch:
    bytes_, thread_bytes = data.items(2)
    return Scratch(bytes_.integer(), thread_bytes.integer())


def kernel_to_json(artifact: Artifact) -> dict[str, Json]:
    """A kernel's artifact without its text."""
    told = [size for size in artifact.sizes if isinstance(size, ToldSize)]
    # whatever a size is made of, for a kernel it is one: dims with names of their own stand for it
    dims = {one.dim: replace(one.dim, name=f"v{n}") for n, one in enumerate(told)}
    named: dict[AnySize, AnySize] = {size_of(dim): size_of(own) for dim, own in dims.items()}
    return {
        "name": artifact.name,
        "target": dict(artifact.target.to_json()),
        "run": _entry_to_json(artifact.run),
        "prepare": None if artifact.prepare is None else _entry_to_json(artifact.prepare),
        "dims": dims_to_json(dims.values()),
        "told": [[one.parameter, one.axis] for one in told],
        "shapes": [
            shape_to_json(named.get(size, size) for size in p.shape) for p in artifact.parameters
        ],
    }


def kernel_from_json(data: Reader, source: str = "") -> Artifact:
    """The artifact that `kernel_to_json` wrote, with its text. Raises: IRError."""
    run, dims = _entry(data["run"]), dims_from_json(data["dims"])
    shapes = [shape_from_json(shape, dims) for shape in data["shapes"].items()]
    told = [tuple(item.items(2)) for item in data["told"].items()]
    return Artifact(
        data["name"].text(),
        run.symbol,
        source,
        target_from_json(data["target"]),
        tuple(replace(p, shape=s) for p, s in zip(run.parameters, shapes, strict=True)),
        run.workspace_bytes,
        run.thread_workspace_bytes,
        data["prepare"].or_none(_entry),
        tuple(
            ToldSize(dim, parameter.or_none(Reader.integer), axis.integer())
            for dim, (parameter, axis) in zip(dims.values(), told, strict=True)
        ),
    )


def report_to_json(report: EngineReport) -> Json:
    """How an engine was built, as plain JSON values."""
    return {
        "kernels": [_kernel_to_json(kernel) for kernel in report.kernels],
        "notes": [cut_line(note) for note in report.notes],
        "seconds": [[name, seconds] for name, seconds in report.seconds],
        "tolerance": report.tolerance,
        "whole": report.whole,
        "precision": precision_to_json(report.precision),
        "allow": list(report.allow),
    }


def _kernel_to_json(kernel: KernelReport) -> Json:
    lines = {name: cut_line(getattr(kernel, name)) for name in ("proof", "check")}
    return {**asdict(kernel), **lines, "labels": [cut_line(label) for label in kernel.labels]}


def report_from_json(data: Reader) -> EngineReport:
    """The report that `report_to_json` wrote. Raises: IRError."""
    pairs = [list(item.items(2)) for item in data["seconds"].items()]
    whole, allow = (data.optional(name) for name in ("whole", "allow"))
    return EngineReport(
        tuple(_kernel_report(item) for item in data["kernels"].items()),
        tuple(item.line() for item in data["notes"].items()),
        tuple((pair[0].text(), pair[-1].number()) for pair in pairs if pair),
        data["tolerance"].or_none(Reader.number),
        "off" if whole is None else whole.text(),
        precision=_precision(data),
        allow=() if allow is None else tuple(item.line() for item in allow.items()),
    )


def _precision(data: Reader) -> PrecisionReport:
    """What products compute with; older files have only lines of the products that are rounded."""
    kept, rounded = (data.optional(name) for name in ("precision", "rounded"))
    if kept is not None:
        return precision_from_json(kept)
    lines = () if rounded is None else tuple(item.line() for item in rounded.items())
    return PrecisionReport(remarks=lines)


def plan_to_json(plan: MemoryPlan) -> Json:
    """A memory plan as plain JSON values, without the map of the arena: the steps of a run say
    that.
    """
    made = asdict(plan)
    del made["tensors"]
    return made


def plan_from_json(data: Reader) -> MemoryPlan:
    """The plan that `plan_to_json` wrote. Raises: IRError."""
    padding = data.optional("padding_bytes")  # older files have none
    return MemoryPlan(
        data["weights_bytes"].integer(),
        data["arena_bytes"].integer(),
        data["workspace_bytes"].integer(),
        data["thread_workspace_bytes"].integer(),
        data["lower_bound_bytes"].or_none(Reader.integer),
        data["kept_bytes"].integer(),
        0 if padding is None else padding.integer(),
    )


def parameter_to_json(parameter: Parameter) -> Json:
    """A parameter as plain JSON values."""
    return {
        "name": parameter.name,
        "dtype": str(parameter.dtype),
        "shape": shape_to_json(parameter.shape),
        "role": parameter.role,
        "check": None if parameter.check is None else asdict(parameter.check),
    }


def parameter_from_json(data: Reader, dims: Dims = NO_DIMS) -> Parameter:
    """The parameter that `parameter_to_json` wrote. Raises: IRError."""
    return Parameter(
        data["name"].text(),
        data["dtype"].dtype(),
        shape_from_json(data["shape"], dims),
        data["role"].one_of(*_ROLES),
        data["check"].or_none(_index_check),
    )


def _index_check(data: Reader) -> IndexCheck:
    extent = data["extent"]
    size = extent.text() if isinstance(extent.value, str) else extent.integer()
    return IndexCheck(data["what"].text(), size)


def _entry_to_json(entry: Entry) -> Json:
    return {
        "symbol": entry.symbol,
        "parameters": [
            parameter_to_json(replace(p, shape=p.largest_shape)) for p in entry.parameters
        ],
        "workspace_bytes": entry.workspace_bytes,
        "thread_workspace_bytes": entry.thread_workspace_bytes,
    }


def _entry(data: Reader) -> Entry:
    return Entry(
        data["symbol"].text(SYMBOL),
        tuple(parameter_from_json(item) for item in data["parameters"].items()),
        data["workspace_bytes"].integer(),
        data["thread_workspace_bytes"].integer(),
    )


def target_from_json(data: Reader) -> Target:
    """A target from its fields (Target.to_json). Raises: IRError.

    Of a GPU, older files have the fields of a CPU, which say nothing, and no rates.
    """
    kind = kind_from_json(data["kind"])
    isa = data["isa"].one_of(*machines_of(kind))
    known = FEATURES.get(isa, ())
    features = tuple(item.one_of(*known) for item in data["features"].items())
    threads = data["threads"].integer()
    if names_gpu(kind, isa):
        given = {name: data.optional(name) for name in _RATES}
        rates = {name: item.number() for name, item in given.items() if item is not None}
        return GpuTarget(kind, isa, threads=threads, features=features, **rates)
    numbers = {name: data[name].integer() for name in _WHOLE}
    rate = data.optional("bf16_per_cycle")  # which older files lack
    return CpuTarget(
        kind,
        isa,
        threads=threads,
        features=features,
        bf16_per_cycle=0.0 if rate is None else rate.number(),
        clock_ghz=data["clock_ghz"].number(),
        dram_gb_per_s=data["dram_gb_per_s"].number(),
        **numbers,
    )


def kind_from_json(data: Reader) -> str:
    """A kind of target, of which there is a back end here. Raises: IRError."""
    kind = data.text(_LONGEST_KIND)
    return kind if is_kind(kind) else data.one_of(*BUILT_IN)


def _kernel_report(data: Reader) -> KernelReport:
    ran, state = (data.optional(name) for name in ("check_ran", "state"))  # older files have none
    return KernelReport(
        name=data["name"].text(),
        symbol=data["symbol"].text(SYMBOL),
        labels=tuple(item.line() for item in data["labels"].items()),
        rule=data["rule"].text(),
        origin=data["origin"].text(),
        proof=data["proof"].line(),
        proof_seconds=data["proof_seconds"].number(),
        check=data["check"].line(),
        check_seconds=data["check_seconds"].number(),
        error=data["error"].or_none(Reader.number),
        check_ran="" if ran is None else ran.text(1 << 16),
        state="" if state is None else state.text(),
    )


def _check(artifact: ProgramArtifact) -> None:
    """Refuse steps that name what does not exist: no pointer is computed from such a number."""
    if len(artifact.texts) != len(artifact.kernels):
        raise wrong(f"{len(artifact.kernels)} kernels have {len(artifact.texts)} sources")
    symbols = {kernel.symbol: len(kernel.parameters) for kernel in artifact.kernels}
    check_steps(artifact, artifact.arena_bytes)
    for step in (*actions(artifact.body), *artifact.prepare):
        if isinstance(step, Launch) and symbols.get(step.function) != len(step.arguments):
            raise wrong(f"a launch of '{step.function}' does not fit the kernels")
    if any((check.word.dtype, check.word.shape) != (UINT64, ()) for check in artifact.checks):
        raise wrong("a check is no single uint64")
    for launch in artifact.prepare:
        if any(item.space != "constant" for item in launch.arguments):
            raise wrong("'prepare' touches more than constants")
    launches = len(artifact.launches)
    if artifact.scratch and len(artifact.scratch) != launches:
        raise wrong(f"{launches} launches have scratch memory in {len(artifact.scratch)} places")
    check_memory(artifact)


def check_steps(program: EmittedProgram, arena_bytes: int) -> None:
    """Refuse slices that do not exist. arena_bytes: of all that slices of the arena lie in.

    Raises: IRError.
    """
    tensors = {
        "input": program.inputs,
        "constant": program.constants,
        "output": program.outputs,
    }
    for step in (*program.body, *program.prepare):
        for item in slices_of(step):
            known = tensors.get(item.space, ())
            in_arena = item.space == "arena" and item.position + item.reach <= arena_bytes
            if not in_arena and item.position >= len(known):
                raise wrong(f"{item} does not exist")
            if item.moves and known and item.reach != known[item.position].bytes:
                raise wrong(f"{item} is no row of '{known[item.position].name}'")


def wrong(problem: str) -> IRError:
    """What is said of JSON that writing cannot have made."""
    return IRError(f"program: {problem}.", code="artifact-json")
