"""What an emulation saw: findings, each of which is a fault, and statistics of accesses."""

from __future__ import annotations

from dataclasses import dataclass

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
class Finding:
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
class EmulationReport:
    """What was seen. It is true where nothing is wrong."""

    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings)) or "nothing is wrong"
