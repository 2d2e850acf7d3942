"""Which times may be compared: those that were measured in one setting.

A setting is the machine (a CPU, or a GPU with its driver), the target with its threads, the code
generator (tilewright, compiler and flags) and the state of the caches. Times of two settings are
never compared in silence: what reads a log takes them apart here, and says in what they differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...tir.parsing.json_reader import Json
from .record import Conditions, Trial

_INSTRUCTIONS = ("kind", "isa", "features")


@dataclass(frozen=True, slots=True)
class Setting:
    """What two times share that may be compared.

    cpu: the model, or that of a GPU; empty where the GPU is not here. instructions: those of the
    target, as text; threads: how many it was scheduled for; machine: the target's other fields, as
    JSON. tool, compiler, flags: what made the code. cache: "cold" or "warm"; empty where nothing
    was timed. driver: of a GPU.
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

    @staticmethod
    def of(conditions: Conditions, cache: str = "") -> Setting:
        """The setting of a measurement."""
        fields = {name: conditions.target[name] for name in sorted(conditions.target)}
        threads = fields.pop("threads", 0)
        return Setting(
            conditions.cpu,
            _instructions(fields),
            threads if isinstance(threads, int) else 0,
            json.dumps({name: fields[name] for name in fields if name not in _INSTRUCTIONS}),
            conditions.tool,
            conditions.compiler,
            conditions.flags,
            cache,
            conditions.driver,
        )

    @property
    def is_of_gpu(self) -> bool:
        """Whether a GPU ran it."""
        return self.instructions.startswith("cuda:")

    @property
    def place(self) -> tuple[object, ...]:
        """Where it was measured: the machine and the target."""
        return (self.cpu, self.instructions, self.threads, self.machine)

    @property
    def generator(self) -> tuple[object, ...]:
        """What made the code."""
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
    """Trials that may be compared, together, in their order.

    One that failed stands in every setting that differs from its own by the caches alone.
    """
    alike: dict[Setting, list[Trial]] = {}
    for trial in trials:
        alike.setdefault(Setting.of(trial.conditions), []).append(trial)
    found: dict[Setting, list[Trial]] = {}
    for bare, members in alike.items():
        states = dict.fromkeys(t.method.cache for t in members if t.seconds is not None)
        for cache in states or ("",):
            found[replace(bare, cache=cache)] = [
                t for t in members if t.seconds is None or t.method.cache == cache
            ]
    return found


def differences(one: Setting, other: Setting) -> tuple[str, ...]:
    """In what two settings differ, in words; none where their times may be compared."""
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
        else f"{name} {_told(mine)}, {f'not {_told(theirs)}' if theirs else 'and none is here'}"
        for name, (mine, theirs) in pairs.items()
        if mine != theirs
    )


def _told(value: object) -> str:
    return str(value) if isinstance(value, int) else f"'{value}'"


def _instructions(target: Mapping[str, Json]) -> str:
    features = target.get("features")
    named = map(str, features) if isinstance(features, list) else ()
    return "+".join((f"{target.get('kind')}:{target.get('isa')}", *named))
