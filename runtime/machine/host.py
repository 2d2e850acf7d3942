"""This machine as the operating system describes it: instruction set, caches, allowed CPUs.

Read once, lazily, from /proc and /sys; what they do not tell stays at the defaults of `Target`.
Nothing is measured here (that is limits.py) and nothing is compiled. Where neither tells (macOS),
the instruction set is "scalar". TILEWRIGHT_CPU=avx2 hides what the machine has beyond it, from
everything: nothing above it is chosen, and nothing above it is loaded.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ...tir.errors import TilewrightError
from ...tir.target.names import FEATURES
from ...tir.target.target import ISAS, CpuTarget, Target, covers
from .cgroups import cgroup_folders, read_text

THREADS_VARIABLE = "TILEWRIGHT_NUM_THREADS"
CPU_VARIABLE = "TILEWRIGHT_CPU"  # an instruction set of this machine, with features or without

# best first; each with the flags of /proc/cpuinfo that it needs
_ISA_FLAGS = (
    ("avx512", frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"})),
    ("avx2", frozenset({"avx2", "fma", "f16c"})),
    ("neon", frozenset({"asimd"})),
    ("scalar", frozenset[str]()),
)
# the flag that each feature of a target is
_FEATURE_FLAGS = {
    "avx512": {"vnni": "avx512_vnni", "bf16": "avx512_bf16"},
    "avx2": {"vnni": "avx_vnni"},
    "neon": {"dotprod": "asimddp", "i8mm": "i8mm"},
}


class HostError(TilewrightError, ValueError):
    """A setting that describes this machine to tilewright cannot be used."""


_ARM = ("aarch64", "arm64")
_USUAL_L3 = 32 << 20
THREADS_ANYWHERE = 64  # that a run may ask for on any machine
_DIGITS = 40  # of a number that somebody typed, at most


@dataclass(frozen=True, slots=True)
class Host:
    """What the operating system says of this machine; 0 or an empty text where it says nothing.

    model: the processor's name, with its family and model number. instructions: the instruction
    sets that can run here, best first, with their features, as targets name them: "avx512+vnni",
    "avx2+vnni", "scalar". fma_per_cycle: vector multiply-adds of the best one that a core starts
    per cycle; bf16_per_cycle: vectors of products of bfloat16. clock_ghz: the nominal clock.
    l1_bytes, l2_bytes: data caches of one core; l3_bytes: shared. quota: CPUs' worth of time that
    the process's cgroup may use, None: no limit.
    """

    model: str
    instructions: tuple[str, ...]
    fma_per_cycle: int
    clock_ghz: float
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int
    quota: float | None
    bf16_per_cycle: float = 2.0

    @property
    def isa(self) -> str:
        """The best instruction set that runs here."""
        return self.isas[0]

    @property
    def isas(self) -> tuple[str, ...]:
        """The instruction sets that run here, best first, without their features."""
        return tuple(text.partition("+")[0] for text in self.instructions)

    @property
    def features(self) -> tuple[str, ...]:
        """What the best instruction set has beside it."""
        return tuple(self.instructions[0].split("+")[1:])


def read_host(root: Path = Path("/"), most: str = "") -> Host:
    """Read the host from the proc and sys file systems below `root`.

    most: the instruction set, with its features, above which nothing counts, such as "avx2"; empty:
    all that there is. Raises: HostError for one that the host lacks.
    """
    cpu = _cpuinfo(read_text(root / "proc/cpuinfo"))
    flags = frozenset(f"{cpu.get('flags', '')} {cpu.get('Features', '')}".split())
    l1, l2, l3 = _caches(root / "sys/devices/system/cpu/cpu0/cache")
    isas = [isa for isa, needed in _ISA_FLAGS if needed <= flags]
    instructions = tuple(
        "+".join((isa, *(f for f in FEATURES.get(isa, ()) if _FEATURE_FLAGS[isa][f] in flags)))
        for isa in isas
    )
    if most:
        instructions = _lowered(instructions, most)
        isas = isas[-len(instructions) :]
    zen4 = cpu.get("vendor_id") == "AuthenticAMD" and cpu.get("cpu family") == "25"
    fma = 1 if zen4 and isas[0] == "avx512" else 2  # Zen 4 halves its wide vectors
    return Host(
        model=_model(cpu),
        instructions=instructions,
        fma_per_cycle=fma,
        # measured on family 6, model 207, whose AMX units are meant for these
        bf16_per_cycle=0.5 if cpu.get("vendor_id") == "GenuineIntel" else float(fma),
        clock_ghz=_clock_ghz(root, cpu),
        l1_bytes=l1,
        l2_bytes=l2,
        l3_bytes=l3,
        quota=_quota(root),
    )


def _lowered(here: tuple[str, ...], most: str) -> tuple[str, ...]:
    """What is left of instruction sets and their features where nothing is above `most`: of each
    the features that it names.
    """
    isa, *others = most.split("+")
    if not covers(here, most):
        wrong = "which this machine lacks" if isa in ISAS else "which is no instruction set"
        raise HostError(
            f"cpu: {CPU_VARIABLE} is '{most}', {wrong}; expected one of {', '.join(here)}.",
            code="host-cpu",
            hints=(f"it hides what a machine has and adds nothing: {CPU_VARIABLE}={here[-1]}",),
        )
    known = [text.split("+") for text in here]
    first = next(n for n, (base, *_) in enumerate(known) if base == isa)
    return tuple("+".join((base, *(f for f in own if f in others))) for base, *own in known[first:])


def _model(cpu: Mapping[str, str]) -> str:
    """The processor's name, with the numbers of its generation: a virtual machine's may be no more
    than "AMD EPYC", and times of two generations must never pass for those of one.
    """
    told = [
        f"{key.removeprefix('cpu ')} {cpu[key]}" for key in ("cpu family", "model") if key in cpu
    ]
    name = cpu.get("model name", "")
    return f"{name} ({', '.join(told)})" if name and told else name


def host() -> Host:
    """This machine, read at the first call, as far as TILEWRIGHT_CPU lets it be seen.

    Raises: HostError where that names what the machine lacks.
    """
    return _host(os.environ.get(CPU_VARIABLE, ""))


@cache
def _host(most: str) -> Host:
    return read_host(most=most)


def last_level_bytes() -> int:
    """Bytes of the last-level cache; 32 MiB where the operating system does not say."""
    return host().l3_bytes or _USUAL_L3


def can_compile(target: Target) -> bool:
    """Whether compilers of this machine write code for a target: for its kind of processor."""
    return target.isa == "scalar" or (target.isa == "neon") == (platform.machine() in _ARM)


def why_not_run(target: Target) -> str | None:
    """Why this machine does not run C that is compiled for a target, in words that follow its name;
    None: it does.
    """
    if not can_compile(target):
        return "another kind of processor than this machine's"
    here = host().instructions
    if covers(here, target.instructions):
        return None
    return f"which this machine lacks; it has {', '.join(here)}"


def allowed_cpus() -> int:
    """How many CPUs this process may use now, by affinity and cgroup quota; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    quota = host().quota
    return count if quota is None else max(1, min(count, int(quota)))


def most_threads() -> int:
    """The most threads that a run may ask for: four for each CPU of the machine, at least
    `THREADS_ANYWHERE`. Each stays alive, and more of them only wait for one another.
    """
    return max(THREADS_ANYWHERE, 4 * (os.cpu_count() or 1))


def default_threads() -> int:
    """Threads of a run that does not say: TILEWRIGHT_NUM_THREADS, else the CPUs allowed now.

    Raises: HostError when the variable is not a whole number from 1 to `most_threads()`.
    """
    text = os.environ.get(THREADS_VARIABLE)
    if not text:
        return allowed_cpus()
    most = most_threads()
    if not text.isdecimal() or len(text) > _DIGITS or not 1 <= int(text) <= most:
        raise HostError(
            f"threads: {THREADS_VARIABLE} is '{text[:_DIGITS]}'; expected a whole number from 1 to "
            f"{most}.",
            code="host-threads",
            hints=(f"export {THREADS_VARIABLE}={allowed_cpus()}",),
        )
    return int(text)


def host_target() -> CpuTarget:
    """The target of this machine's CPU: back end "c", its best instruction set, its caches and
    threads.
    """
    here = host()
    base = ISAS[here.isa]
    return replace(
        base,
        kind="c",
        fma_per_cycle=here.fma_per_cycle,
        bf16_per_cycle=here.bf16_per_cycle,
        clock_ghz=here.clock_ghz or base.clock_ghz,
        l1_bytes=here.l1_bytes or base.l1_bytes,
        l2_bytes=here.l2_bytes or base.l2_bytes,
        l3_bytes=here.l3_bytes or base.l3_bytes,
        threads=default_threads(),
        features=here.features,
    )


def _cpuinfo(text: str) -> dict[str, str]:
    """The entries of the first processor."""
    pairs = (line.partition(":") for line in text.split("\n\n", 1)[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _clock_ghz(root: Path, cpu: dict[str, str]) -> float:
    khz = read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    if khz.isdecimal():
        return round(int(khz) / 1e6, 3)
    mhz = cpu.get("cpu MHz", "")
    return round(float(mhz) / 1e3, 3) if re.fullmatch(r"\d+(\.\d+)?", mhz) else 0.0


def _caches(folder: Path) -> tuple[int, int, int]:
    """Bytes of the first core's data or unified caches of level 1, 2 and 3."""
    sizes = {1: 0, 2: 0, 3: 0}
    for entry in sorted(folder.glob("index*")):
        level, kind, size = (read_text(entry / name).strip() for name in ("level", "type", "size"))
        match = re.fullmatch(r"(\d+)([KM]?)", size)
        if match is None or kind == "Instruction" or level not in ("1", "2", "3"):
            continue
        sizes[int(level)] = int(match[1]) << {"": 0, "K": 10, "M": 20}[match[2]]
    return sizes[1], sizes[2], sizes[3]


def _quota(root: Path) -> float | None:
    """The smallest CPU quota of the process's cgroup and of those around it."""
    quotas = map(_group_quota, cgroup_folders(root, "cpu"))
    return min((quota for quota in quotas if quota is not None), default=None)


def _group_quota(group: Path) -> float | None:
    """CPUs' worth of time of one cgroup: cpu.max (version 2) or cfs_quota over cfs_period (version
    1).
    """
    fields = read_text(group / "cpu.max").split()
    if not fields:
        fields = [read_text(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    if len(fields) != 2 or not all(field.isdecimal() for field in fields):
        return None  # "max" and "-1" mean that there is no limit
    quota, period = (int(field) for field in fields)
    return quota / period if period else None
