"""What an emulation saw: findings, each of which is a fault, and statistics of accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

Index = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Party:
    """A thread that has a part in a finding, and what it did.

    action: "reads", "writes", "adds atomically", "runs", "waits at a barrier", "waits for lanes" or
    "left". line: of the source; None where it stands nowhere.
    """

    block: Index
    thread: Index
    action: str
    line: int | None
    text: str = ""

    def __str__(self) -> str:
        place = "" if self.line is None else f", line {self.line}: {self.text}"
        return f"thread {self.thread} of block {self.block} {self.action}{place}"


@dataclass(frozen=True, slots=True)
class EmulatorFinding:
    """One fault of a kernel, as often as it was seen.

    kind: "race", "out-of-bounds", "unwritten", "barrier", "warp", "early", "misaligned",
    "read-only", "refused" or "crash". buffer, element: where in memory. parties: one or two
    threads. times: seen for other elements or threads at the same lines. note: what else is known.
    """

    kind: str
    kernel: str
    parties: tuple[Party, ...]
    buffer: str | None = None
    element: int | None = None
    times: int = 1
    note: str = ""

    def __str__(self) -> str:
        place = "" if self.buffer is None else f" at {self.buffer}[{self.element}]"
        more = "" if self.times == 1 else f", {self.times} times"
        note = f": {self.note}" if self.note else ""
        head = f"{self.kind} in '{self.kernel}'{place}{more}{note}"
        return "\n".join((head, *(f"  {party}" for party in self.parties)))


@dataclass(frozen=True, slots=True)
class AccessSite:
    """What the warps asked for at one place of a source, in all.

    space: "shared" or "global". action: as of a Party. bytes: of one thread's access. requests: of
    whole warps. parts: what they took: passes over the banks of shared memory, or sectors of 32
    bytes of global memory. least: what as many bytes could have taken. worst: parts of the worst
    request, of the worst half or quarter of a warp where one goes by these.
    """

    kernel: str
    line: int | None
    text: str
    buffer: str
    space: str
    action: str
    bytes: int
    requests: int
    parts: int
    least: int
    worst: int

    @property
    def bank_conflict_degree(self) -> int:
        """How many passes the worst request needs where one would do; 1: there is no conflict."""
        return self.worst if self.space == "shared" else 1

    @property
    def efficiency(self) -> float:
        """The least beside what was taken: 1 is best."""
        return self.least / self.parts if self.parts else 1.0

    def __str__(self) -> str:
        unit = "passes" if self.space == "shared" else "sectors"
        return (
            f"line {self.line}: {self.action} {self.buffer}, {self.bytes} bytes a thread: "
            f"{self.requests} requests, {self.parts} {unit} where {self.least} would do, "
            f"{self.worst} for the worst: {self.text}"
        )


@dataclass(frozen=True, slots=True)
class BarrierReport:
    """A barrier of a block. passed: by how many blocks, how often each. needed: how often two
    threads' accesses, one just before it and one just after it, would conflict without it; 0: on
    these arrays nothing needs it.
    """

    kernel: str
    line: int | None
    text: str
    passed: int
    needed: int

    def __str__(self) -> str:
        return f"line {self.line}: passed {self.passed} times, needed {self.needed}: {self.text}"


@dataclass(frozen=True, slots=True)
class EmulationReport:
    """What was seen: it is true where nothing is wrong. sites, barriers: in checked mode, what each
    place of the source asked of memory, and which barriers something needed.
    """

    findings: tuple[EmulatorFinding, ...]
    sites: tuple[AccessSite, ...] = ()
    barriers: tuple[BarrierReport, ...] = ()

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "nothing is wrong"

    @property
    def table(self) -> str:
        """The sites and barriers, a line each."""
        return "\n".join(map(str, (*self.sites, *self.barriers)))

    @staticmethod
    def of_launches(reports: Sequence[EmulationReport]) -> EmulationReport:
        """What was seen in all; what stands on one line and does the same to one buffer is one."""
        sites: dict[tuple[object, ...], AccessSite] = {}
        barriers: dict[tuple[object, ...], BarrierReport] = {}
        for report in reports:
            for site in report.sites:
                key = (site.kernel, site.line, site.buffer, site.action, site.bytes)
                sites[key] = _both_sites(sites[key], site) if key in sites else site
            for barrier in report.barriers:
                place = (barrier.kernel, barrier.line)
                known = barriers.get(place, replace(barrier, passed=0, needed=0))
                barriers[place] = replace(
                    barrier,
                    passed=known.passed + barrier.passed,
                    needed=known.needed + barrier.needed,
                )
        return EmulationReport(
            tuple(finding for report in reports for finding in report.findings),
            tuple(sorted(sites.values(), key=_place)),
            tuple(sorted(barriers.values(), key=_place)),
        )


def _both_sites(one: AccessSite, other: AccessSite) -> AccessSite:
    return replace(
        one,
        requests=one.requests + other.requests,
        parts=one.parts + other.parts,
        least=one.least + other.least,
        worst=max(one.worst, other.worst),
    )


def _place(seen: AccessSite | BarrierReport) -> tuple[str, int]:
    return seen.kernel, seen.line or 0
