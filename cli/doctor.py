"""`tilewright doctor`: report what was found on this machine, every setting, how to fix gaps."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from .arguments import add_json, add_verb, described_by
from .errors import ENVIRONMENT, OK
from .text import bad, paragraph, table

if TYPE_CHECKING:
    from ..runtime.machine.host import Host
    from ..runtime.measure.limits import Limits
    from ..runtime.toolchain.cache import CacheInfo
    from .arguments import Verbs
    from .examination import (
        CompilerFound,
        Examination,
        ExtensionFound,
        GpuFound,
        TargetFound,
        Threads,
    )

_EXAMPLES = """\
  tilewright doctor
  tilewright doctor --measure     also the limits of the machine; takes some seconds
  tilewright doctor --json        for programs, and for reports of defects
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "doctor",
        "what was found on this machine",
        f"{described_by(__doc__)} Exit code 4 where no C compiler works.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure multiply-adds and bandwidths"
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Examine the machine and print the result."""
    from .examination import examine  # start-up

    found = examine(measure=arguments.measure)
    print(json.dumps(found.to_json(), indent=1) if arguments.json else _text(found))
    return OK if found.compiler.problem is None else ENVIRONMENT


def _text(found: Examination) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in found.packages.items())
    parts = [
        paragraph("tilewright", f"{found.version} in {found.folder}"),
        paragraph("python", f"{found.python} in {found.executable}", found.platform),
        paragraph("packages", packages),
        paragraph("compiler", *_compiler(found.compiler)),
        paragraph("cpu", *_cpu(found.host)),
        paragraph("threads", *_threads(found.threads, found.host)),
        paragraph("gpu", *_gpu(found.gpu)),
        paragraph("targets", *_targets(found.targets)),
        paragraph("extensions", *_extensions(found.extensions)),
        paragraph("cache", *_cache(found.cache)),
    ]
    if found.limits is not None:
        parts.append(paragraph("limits", *_limits(found.limits)))
    rows = [(s.name, "not set" if s.value is None else s.value, s.meaning) for s in found.settings]
    settings = table(("variable", "value", "meaning (when not set)"), rows)
    parts.append(paragraph("settings", *settings.splitlines()))
    return "\n".join(parts)


def _compiler(found: CompilerFound) -> tuple[str, ...]:
    if found.problem is None:
        return (f"{found.version}, {found.command}",)
    first, *rest = found.problem.splitlines()
    return bad("none works, so models run in the interpreter, slowly"), first, *rest


def _cpu(host: Host) -> tuple[str, ...]:
    from ..tir.text.size import bytes_text  # start-up

    levels = (("L1", host.l1_bytes), ("L2", host.l2_bytes), ("L3", host.l3_bytes))
    sizes = ", ".join(f"{name} {bytes_text(size)}" for name, size in levels if size)
    clock = f"{host.clock_ghz:g} GHz" if host.clock_ghz else "unknown"
    return (
        host.model or "unknown model",
        f"instruction sets: {', '.join(host.instructions)}; kernels use {host.isa}",
        f"caches: {sizes or 'unknown'}; clock: {clock}",
    )


def _threads(found: Threads, host: Host) -> tuple[str, ...]:
    first = f"{found.default} by default" if found.problem is None else bad(found.problem)
    quota = "no limit on CPU time" if host.quota is None else f"CPU time of {host.quota:g} CPUs"
    return first, f"{found.allowed} of {found.cpus} CPUs allowed, {quota}"


def _gpu(found: GpuFound) -> tuple[str, ...]:
    from ..tir.text.size import bytes_text  # start-up

    devices = [
        f"{one.name}, {one.arch}, {one.multiprocessors} multiprocessors, "
        f"{bytes_text(one.memory_bytes)}, through {found.driver}"
        for one in found.devices
    ]
    missing = [name for name, path in found.tools.items() if path is None]
    have = [path for path in found.tools.values() if path is not None]
    return (
        *(devices if found.problem is None else (f"none: {found.problem}",)),
        f"CUDA C: {found.nvrtc or 'no NVRTC, which comes with the extra cuda'}",
        f"reading cubins: {', '.join(have + [f'no {name}' for name in missing])}",
    )


def _targets(found: tuple[TargetFound, ...]) -> tuple[str, ...]:
    built_in = ", ".join(one.kind for one in found if one.package is None)
    others = (f"{one.kind}, of {one.package}{_why_not(one)}" for one in found if one.package)
    return f"built in: {built_in}", *others


def _extensions(found: tuple[ExtensionFound, ...]) -> tuple[str, ...]:
    lines = (
        f"{one.kind}: {one.name}, of {one.package}{f': {bad(one.problem)}' if one.problem else ''}"
        for one in found
    )
    return tuple(lines) or ("none: no package brings operators, passes or importers",)


def _why_not(target: TargetFound) -> str:
    return "" if target.problem is None else f": {bad(f'does not load: {target.problem}')}"


def _cache(info: CacheInfo) -> tuple[str, ...]:
    from ..tir.text.size import bytes_text  # start-up

    if info.folder is None:
        return ("none: everything is compiled anew in each process",)
    size = f"{bytes_text(info.bytes)} of at most {bytes_text(info.max_bytes)}"
    return str(info.folder), f"{info.entries} entries, {size}"


def _limits(found: Limits) -> tuple[str, ...]:
    from ..runtime.machine.timing import seconds_text
    from ..tir.text.size import bytes_text  # start-up

    fma = [(f"{x.threads}", "fp32 multiply-adds", f"{x.gflops:.1f} GFLOP/s") for x in found.fma]
    reads = [
        (f"{x.threads}", f"reading {bytes_text(x.bytes)}", f"{x.gb_per_s:.1f} GB/s")
        for x in found.reads
    ]
    region, barrier = seconds_text(found.region_seconds), seconds_text(found.barrier_seconds)
    rows = sorted((*fma, *reads), key=lambda row: int(row[0]))
    return (
        *table(("threads", "limit", "measured"), rows).splitlines(),
        f"an empty region takes {region}, a barrier {barrier} ({found.fma[-1].threads} threads)",
    )
