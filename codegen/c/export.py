"""A model as C for other projects: one source with kernels, entry and thread pool, a header, a
makefile. Its weights lie in a file of their own, each constant at a multiple of 64 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...tir.program.program import ReadSize, Slice
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
    OUTSIDE,
    SIZES,
    SOURCE,
)
from .frame import TEAM, prelude
from .program_source import static_definitions
from .workspace import ALIGNMENT

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


def weight_offsets(artifact: ProgramArtifact) -> tuple[tuple[int, ...], int]:
    """Where each constant that a run reads stands in the file of weights, and the file's bytes."""
    offsets: list[int] = []
    size = 0
    for position in artifact.read:
        offsets.append(size)
        size += -(-artifact.constants[position].bytes // ALIGNMENT) * ALIGNMENT
    return tuple(offsets), size


def export_texts(
    artifact: ProgramArtifact, pool: str, flags: Sequence[str], sums: tuple[int, int]
) -> Export:
    """The texts of an exported model.

    pool: the C text of the thread pool. flags: of the compiler, those of the instruction set among
    them. sums: of the 64-bit words of the weights: the sum, and the sum of the running sums.
    """
    name, title = mangle(artifact.name), f"{comment(artifact.name)} for {artifact.target}"
    (offsets, weights), names = weight_offsets(artifact), _argument_names(artifact)
    first = len(artifact.inputs) + len(artifact.outputs)
    rest, told = names[len(artifact.inputs) : first], names[first : first + len(artifact.dims)]
    sizes = dict(zip(artifact.dims, told, strict=True))
    found = dict(zip(artifact.sizes_read, names[first + len(told) :], strict=True))
    parameters = ", ".join(_parameters(artifact, name, names))
    arguments = [f"(void *){n}" for n in names[: len(artifact.inputs)]]
    arguments += [f"weights + {offset}" for offset in offsets]
    arguments += [*rest, *(f"(void *)(intptr_t){n}" for n in sizes.values()), "scratch"]
    definitions = static_definitions(artifact)
    target = artifact.target
    known = _MACROS.get(target.isa, {})
    macros = [known[name] for name in ("", *target.features) if name in known]
    isa = " ".join(flag for flag in flags if flag.startswith("-m"))
    source = SOURCE.format(
        title=title,
        file=FILE,
        name=name,
        pool=_POOL_NAMES.sub(f"{name}_pool_", pool),
        prelude=prelude(artifact.target, definitions).replace(TEAM, ""),
        guard="".join(GUARD.format(macro=macro, flags=isa) for macro in macros),
        definitions=definitions,
        scratch=artifact.scratch_bytes(0),
        thread_scratch=artifact.thread_workspace_bytes,
        weights=weights,
        sum=sums[0],
        sums=sums[1],
        parameters=parameters,
        arguments=", ".join(arguments),
        symbol=artifact.symbol,
        failed=_failed(artifact),
        found=_found(artifact, found, names),
        outside="".join(
            OUTSIDE.format(name=name, low=dim.low, high=dim.high) for dim, name in sizes.items()
        ),
    )
    header = HEADER.format(
        title=title,
        file=FILE,
        name=name,
        guard=name.upper(),
        tensors="\n".join(_described(artifact, names)),
        weights=weights,
        parameters=parameters,
        checked=CHECKED if artifact.checks else "",
        sizes=SIZES if artifact.dims else "",
        found=FOUND_SIZES if found else "",
    )
    makefile = MAKEFILE.format(title=title, file=FILE, flags=" ".join(flags))
    return Export(source, header, makefile)


def _found(artifact: ProgramArtifact, sizes: Mapping[ReadSize, str], names: Sequence[str]) -> str:
    """The lines that say the sizes that a run has computed."""
    return "".join(
        FOUND.format(name=name, place=_place(step.source, names, artifact))
        for step, name in sizes.items()
    )


def _place(item: Slice, names: Sequence[str], artifact: ProgramArtifact) -> str:
    """Where a number lies when a run is over, in the function that runs a model."""
    match item.space:
        case "arena":
            return f"(const char *)scratch + {item.position}"
        case "input":
            return names[item.position]
        case "constant":
            offsets, _ = weight_offsets(artifact)
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
    dims = (*artifact.dims, *(step.dim for step in artifact.sizes_read))
    return [names.fresh(name) for name in (*wanted, *(dim.name for dim in dims))]


def _described(artifact: ProgramArtifact, names: Sequence[str]) -> list[str]:
    """A line for each input, output and size."""
    parameters: Sequence[Parameter] = (*artifact.inputs, *artifact.outputs)
    lines = [
        f" *   {p.role} {name}: {p.dtype}[{', '.join(map(str, p.shape))}] ({comment(p.name)[:60]})"
        for p, name in zip(parameters, names, strict=False)
    ]
    told, found = artifact.dims, [step.dim for step in artifact.sizes_read]
    kinds = [*("size" for _ in told), *("computed size" for _ in found)]
    sizes = zip(kinds, (*told, *found), names[len(parameters) :], strict=True)
    return [*lines, *(f" *   {kind} {n}: {dim.low} to {dim.high}" for kind, dim, n in sizes)]
