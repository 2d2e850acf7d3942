"""Settings: only times that were measured in the same setting may be compared.

A setting is the machine (a CPU, or a GPU with its driver), the target with its threads, the code
generator (tilewright, compiler and flags) and the state of the caches. Readers of a log group
trials by setting, and report how settings differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...tir.json_reader import Json
from ...tir.target.names import names_gpu
from ..sizes import SizeValues
from .record import Conditions, Trial

_INSTRUCTIONS = ("kind", "isa", "features")


@dataclass(frozen=True, slots=True)
class Setting:
    """What comparable times have in common.

    cpu: the model of the CPU or GPU; empty for a GPU that this machine lacks. instructions: those
    of the target, as text; threads: the number that it schedules for; machine: its other fields, as
    JSON; empty for a GPU, whose rates change prices and no time, and of which older records have
    the fields of a CPU. tool, compiler, flags: the code generator. cache: "cold" or "warm"; empty
    where nothing was timed. driver: of a GPU. sizes: at which a function was timed, where calls
    decide any.
    """

    cpu: str
    instructions: str
    threads: int
    machine: str
    tool: str
    compiler: str
    flags: tuple[str, ...]
    cache: str = ""
    driver: str = ""
    sizes: tuple[SizeValues, ...] = ()

    @staticmethod
    def of(conditions: Conditions, cache: str = "", sizes: tuple[SizeValues, ...] = ()) -> Setting:
        """The setting of a measurement."""
        fields = {name: conditions.target[name] for name in sorted(conditions.target)}
        threads = fields.pop("threads", 0)
        others = {name: fields[name] for name in fields if name not in _INSTRUCTIONS}
        of_gpu = names_gpu(str(fields.get("kind")), str(fields.get("isa")))
        return Setting(
            conditions.cpu,
            _instructions(fields),
            threads if isinstance(threads, int) else 0,
            "" if of_gpu else json.dumps(others),
            conditions.tool,
            conditions.compiler,
            conditions.flags,
            cache,
            conditions.driver,
            sizes,
        )

    @property
    def of_all(self) -> Setting:
        """What it shares with the functions of other sizes."""
        return replace(self, sizes=())

    @property
    def is_of_gpu(self) -> bool:
        """Whether a GPU ran it."""
        return self.instructions.startswith("cuda:")

    @property
    def place(self) -> tuple[object, ...]:
        """The machine and the target, without the code generator and the caches."""
        return (self.cpu, self.instructions, self.threads, self.machine)

    @property
    def generator(self) -> tuple[object, ...]:
        """The code generator: tilewright, compiler and flags."""
        return (self.tool, self.compiler, self.flags)

    def __str__(self) -> str:
        if self.is_of_gpu:
            cache = f", {self.cache} caches" if self.cache else ""
            driver = f", driver of {self.driver}" if self.driver else ""
            return f"{self.cpu or 'no GPU'}, {self.instructions}{driver}{cache}"
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        cache = f", {self.cache} constants" if self.cache else ""
        return f"{self.cpu or 'unknown CPU'}, {self.instructions}, {threads}{cache}"


def by_setting(trials: Iterable[Trial]) -> dict[Setting, list[Trial]]:
    """Group trials by setting, in their order.

    A failed trial is in every setting that differs from its own only in the caches.
    """
    alike: dict[Setting, list[Trial]] = {}
    for trial in trials:
        bare = Setting.of(trial.conditions, sizes=trial.timed_at)
        alike.setdefault(bare, []).append(trial)
    groups: dict[Setting, list[Trial]] = {}
    for bare, members in alike.items():
        states = dict.fromkeys(t.method.cache for t in members if t.seconds is not None)
        for cache in states or ("",):
            groups[replace(bare, cache=cache)] = [
                t for t in members if t.seconds is None or t.method.cache == cache
            ]
    return groups


def differences(one: Setting, other: Setting) -> tuple[str, ...]:
    """How two settings differ, in words; empty where their times may be compared."""
    pairs: Mapping[str, tuple[object, object]] = {
        "GPU" if one.is_of_gpu else "CPU": (one.cpu, other.cpu),
        "instructions": (one.instructions, other.instructions),
        "driver": (one.driver, other.driver if other.cpu else one.driver),
        "threads": (one.threads, other.threads),
        "machine": (one.machine, other.machine),
        "tilewright": (one.tool, other.tool),
        "compiler": (one.compiler, other.compiler),
        "flags": (" ".join(one.flags), " ".join(other.flags)),
        "caches": (one.cache, other.cache),
    }
    return tuple(
        "sizes or speeds of the machine"
        if name == "machine"
        else f"{name} {_quoted(mine)}, {f'not {_quoted(theirs)}' if theirs else 'and none is here'}"
        for name, (mine, theirs) in pairs.items()
        if mine != theirs
    )


def _quoted(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def _instructions(target: Mapping[str, Json]) -> str:
    features = target.get("features")
    named = map(str, features) if isinstance(features, list) else ()
    return "+".join((f"{target.get('kind')}:{target.get('isa')}", *named))
