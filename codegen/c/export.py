"""A model as C for other projects: one source with kernels, entry and thread pool, a header, a
makefile. Its weights lie in a file of their own, each constant at a multiple of 64 bytes. A model
has one code, and may have others for sizes that come often, its variants.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import indent

from ...tir.program.program import ReadSize, Slice
from ...tir.sizes import dims_in
from ...tir.target.target import Target
from ..artifact import Parameter
from ..program_artifact import ProgramArtifact
from ..text.comments import comment
from ..text.names import CNames, mangle
from .dialect import C
from .export_frame import (
    CHECKED,
    FAILED,
    FOUND,
    FOUND_SIZES,
    GUARD,
    HEADER,
    MAKEFILE,
    OTHERS,
    OUTSIDE,
    RUN,
    SIZES,
    SOURCE,
    VARIANT,
    VARIANTS,
)
from .frame import TEAM, prelude
from .program_source import numbered, static_definitions

FILE = "model"  # the stem of the files' names

# of an instruction set, "", and of its features
_MACROS = {
    "avx2": {"": "__AVX2__", "vnni": "__AVXVNNI__"},
    "avx512": {"": "__AVX512F__", "vnni": "__AVX512VNNI__", "bf16": "__AVX512BF16__"},
    "neon": {"dotprod": "__ARM_FEATURE_DOTPROD", "i8mm": "__ARM_FEATURE_MATMUL_INT8"},
}
_POOL_NAMES = re.compile(r"\btw_pool_")


@dataclass(frozen=True, slots=True)
class Export:
    """The texts of an exported model."""

    source: str
    header: str
    makefile: str


@dataclass(frozen=True, slots=True)
class WeightsFile:
    """The file of weights.

    offsets: where the constants stand that runs read, for each code of the model, in the order of
    `read`. bytes: of the file. sums: of its 64-bit words: the sum, and the sum of the running sums.
    """

    offsets: tuple[tuple[int, ...], ...]
    bytes: int
    sums: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExportedVariant:
    """The code of a model for one choice of the sizes that calls decide, by name.

    label: the same as a text.
    """

    label: str
    sizes: tuple[tuple[str, int], ...]
    artifact: ProgramArtifact


def export_target(artifact: ProgramArtifact, variants: Sequence[ExportedVariant] = ()) -> Target:
    """What a model is compiled for with its variants: the features that any of them uses."""
    targets = [artifact.target, *(variant.artifact.target for variant in variants)]
    used = {feature for target in targets for feature in target.features}
    return replace(artifact.target, features=tuple(used))  # which puts them in order


def export_texts(
    artifact: ProgramArtifact,
    pool: str,
    flags: Sequence[str],
    weights: WeightsFile,
    variants: Sequence[ExportedVariant] = (),
) -> Export:
    """The texts of an exported model.

    pool: the C text of the thread pool. flags: of the compiler, those of the instruction set among
    them. variants: take the places of the model for their sizes.
    """
    name, target = mangle(artifact.name), export_target(artifact, variants)
    title, names = f"{comment(artifact.name)} for {target}", _argument_names(artifact)
    first = len(artifact.inputs) + len(artifact.outputs)
    told = dict(zip(artifact.dims, names[first : first + len(artifact.dims)], strict=True))
    codes = [artifact, *(variant.artifact for variant in variants)]
    runs = [
        _run(artifact, number, code, offsets, names)
        for number, (code, offsets) in enumerate(zip(codes, weights.offsets, strict=True))
    ]
    definitions = static_definitions(codes)
    known = _MACROS.get(target.isa, {})
    macros = [known[name] for name in ("", *target.features) if name in known]
    isa = " ".join(flag for flag in flags if flag.startswith("-m"))
    source = SOURCE.format(
        title=title,
        file=FILE,
        name=name,
        pool=_POOL_NAMES.sub(f"{name}_pool_", pool),
        prelude=prelude(target, definitions).replace(TEAM, ""),
        guard="".join(GUARD.format(macro=macro, flags=isa) for macro in macros),
        definitions=definitions,
        scratch=max(code.scratch_bytes(0) for code in codes),
        thread_scratch=max(code.thread_workspace_bytes for code in codes),
        weights=weights.bytes,
        sum=weights.sums[0],
        sums=weights.sums[1],
        parameters=", ".join(_parameters(artifact, name, names)),
        runs=_dispatch(variants, runs, {dim.name: name for dim, name in told.items()}),
        outside="".join(
            OUTSIDE.format(name=name, low=dim.low, high=dim.high) for dim, name in told.items()
        ),
    )
    header = _header(artifact, title, weights.bytes, names, variants)
    makefile = MAKEFILE.format(title=title, file=FILE, flags=" ".join(flags))
    return Export(source, header, makefile)


def _header(
    artifact: ProgramArtifact,
    title: str,
    weights: int,
    names: Sequence[str],
    variants: Sequence[ExportedVariant],
) -> str:
    """The header. weights: bytes of their file."""
    name = mangle(artifact.name)
    codes = [artifact, *(variant.artifact for variant in variants)]
    listed = "\n".join(f" *   {comment(variant.label)}" for variant in variants)
    return HEADER.format(
        title=title,
        file=FILE,
        name=name,
        guard=name.upper(),
        tensors="\n".join(_described(artifact, names)),
        variants=VARIANTS.format(listed=listed) if variants else "",
        weights=weights,
        parameters=", ".join(_parameters(artifact, name, names)),
        checked=CHECKED if any(code.checks for code in codes) else "",
        sizes=SIZES if artifact.dims else "",
        found=FOUND_SIZES if _sizes_found(artifact) else "",
    )


def _run(
    model: ProgramArtifact,
    number: int,
    artifact: ProgramArtifact,
    offsets: Sequence[int],
    names: Sequence[str],
) -> str:
    """The lines that run the model by one of its codes, and look at what the run has found.

    names: of the model's arguments. offsets: of the constants that the code reads.
    """
    count = len(artifact.inputs)
    first = count + len(artifact.outputs)
    arguments = [f"(void *){name}" for name in names[:count]]
    arguments += [f"weights + {offset}" for offset in offsets]
    arguments += names[count:first]
    told = names[first : first + len(artifact.dims)]  # none of a variant
    arguments += [*(f"(void *)(intptr_t){name}" for name in told), "scratch"]
    found = zip(_sizes_found(model), names[first + len(model.dims) :], strict=True)
    read = {step.dim.name: step.source for step in _sizes_found(artifact)}
    return RUN.format(
        name=mangle(artifact.name),
        symbol=numbered(artifact.symbol, number),
        arguments=", ".join(arguments),
        found="".join(
            FOUND.format(name=name, place=_place(read[step.dim.name], names, artifact, offsets))
            for step, name in found
        ),
        failed=_failed(artifact),
    )


def _dispatch(
    variants: Sequence[ExportedVariant], runs: Sequence[str], told: Mapping[str, str]
) -> str:
    """The lines that run the model: by the code for the sizes of the call. told: what the sizes are
    called in C.
    """
    others, *own = runs
    if not own:
        return others
    lines = [
        VARIANT.format(
            otherwise="    } else " if number else "    ",
            condition=" && ".join(f"{told[name]} == {size}" for name, size in variant.sizes),
            label=comment(variant.label),
            run=indent(run, "    "),
        )
        for number, (variant, run) in enumerate(zip(variants, own, strict=True))
    ]
    return "".join([*lines, OTHERS.format(run=indent(others, "    "))])


def _sizes_found(artifact: ProgramArtifact) -> tuple[ReadSize, ...]:
    """The sizes of outputs that a run computes."""
    made = dims_in(size for parameter in artifact.outputs for size in parameter.shape)
    return tuple(step for step in artifact.sizes_read if step.dim in made)


def _place(
    item: Slice, names: Sequence[str], artifact: ProgramArtifact, offsets: Sequence[int]
) -> str:
    """Where a number lies when a run is over, in the function that runs a model."""
    match item.space:
        case "arena":
            return f"(const char *)scratch + {item.position}"
        case "input":
            return names[item.position]
        case "constant":
            return f"weights + {offsets[artifact.read.index(item.position)]}"
        case _:
            return names[len(artifact.inputs) + item.position]


def _failed(artifact: ProgramArtifact) -> str:
    """The lines that look at the checks of indices after a run."""
    return "".join(
        FAILED.format(
            label=comment(f"{item.check.what} of {item.label}")[:70],
            position=item.word.position,
            least=item.check.fails_from,
        )
        for item in artifact.checks
    )


def _parameters(artifact: ProgramArtifact, name: str, names: Sequence[str]) -> Iterator[str]:
    """The parameters of the function that runs a model called `name`; names: those of
    `_argument_names`.
    """
    rest = iter(names)
    yield f"const {name}_model *model"
    yield from (f"const {C.type_of(p.dtype)} *{next(rest)}" for p in artifact.inputs)
    yield from (f"{C.type_of(p.dtype)} *{next(rest)}" for p in artifact.outputs)
    yield from (f"int64_t {next(rest)}" for _ in artifact.dims)
    yield from (f"int64_t *{one}" for one in rest)
    yield from ("void *scratch", "int threads")


def _argument_names(artifact: ProgramArtifact) -> list[str]:
    """A C name for each input, each output, each size that a call decides or a run computes."""
    names = CNames()
    for taken in ("model", "scratch", "threads", "weights", "args", "own"):
        names.fresh(taken)
    wanted = [parameter.name for parameter in (*artifact.inputs, *artifact.outputs)]
    dims = (*artifact.dims, *(step.dim for step in _sizes_found(artifact)))
    return [names.fresh(name) for name in (*wanted, *(dim.name for dim in dims))]


def _described(artifact: ProgramArtifact, names: Sequence[str]) -> list[str]:
    """A line for each input, output and size."""
    parameters: Sequence[Parameter] = (*artifact.inputs, *artifact.outputs)
    lines = [
        f" *   {p.role} {name}: {p.dtype}[{', '.join(map(str, p.shape))}] ({comment(p.name)[:60]})"
        for p, name in zip(parameters, names, strict=False)
    ]
    told, found = artifact.dims, [step.dim for step in _sizes_found(artifact)]
    kinds = [*("size" for _ in told), *("computed size" for _ in found)]
    sizes = zip(kinds, (*told, *found), names[len(parameters) :], strict=True)
    return [*lines, *(f" *   {kind} {n}: {dim.low} to {dim.high}" for kind, dim, n in sizes)]
