"""A kernel's time beside what the machine could do at best with the same work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from ...tir.svg.picture import Picture
from ..machine.timing import Timing, seconds_text
from .roof import RoofPoint, draw_roof


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel must do at least: operations, and bytes that it reads and writes.

    integers: how many of the operations are on integers; the others are on floats.
    """

    operations: int
    bytes: int
    integers: int = 0

    @property
    def floats(self) -> int:
        """Floating-point operations."""
        return self.operations - self.integers

    def __str__(self) -> str:
        return f"{self.operations:,} operations, {self.bytes:,} bytes"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Roofline:
    """A measured time against the two limits of the machine, at the same number of threads. What
    limits operations on integers is not known: it depends on their types and instructions.

    peak_gflops: multiply-adds, measured in the same rounds as the kernel. peak_gb_per_s: reading
    as many bytes as the kernel touches, from the cache or memory that holds them.
    """

    timing: Timing
    threads: int
    work: Work
    peak_gflops: float
    peak_gb_per_s: float

    @property
    def gflops(self) -> float:
        """What the kernel reaches on floats."""
        return self.work.floats / self.timing.median / 1e9

    @property
    def integer_gops(self) -> float:
        """What the kernel reaches on integers, in G operations per second."""
        return self.work.integers / self.timing.median / 1e9

    @property
    def gb_per_s(self) -> float:
        """What the kernel reaches."""
        return self.work.bytes / self.timing.median / 1e9

    @property
    def bound(self) -> str:
        """The limit that is the nearer one: "compute" or "memory"."""
        return "compute" if self._compute_seconds >= self._memory_seconds else "memory"

    @property
    def limit_seconds(self) -> float:
        """The time that the nearer limit allows at best."""
        return max(self._compute_seconds, self._memory_seconds)

    @property
    def share(self) -> float:
        """The limit's time over the kernel's: 1 is the best that the machine can do."""
        return self.limit_seconds / self.timing.median

    @property
    def _compute_seconds(self) -> float:
        return self.work.floats / (self.peak_gflops * 1e9)

    @property
    def _memory_seconds(self) -> float:
        return self.work.bytes / (self.peak_gb_per_s * 1e9)

    def __str__(self) -> str:
        rates = []
        if self.work.floats or not self.work.integers:
            rates.append(f"{self.gflops:.1f} of {self.peak_gflops:.1f} GFLOP/s")
        if self.work.integers:
            rates.append(f"{self.integer_gops:.1f} G integer operations/s (limit not known)")
        return (
            f"{seconds_text(self.timing.median)} on {self.threads} thread(s): "
            f"{', '.join(rates)}, "
            f"{self.gb_per_s:.1f} of {self.peak_gb_per_s:.1f} GB/s; "
            f"{self.share:.0%} of the {self.bound} limit, {seconds_text(self.limit_seconds)}"
        )

    @property
    def intensity(self) -> float:
        """Floating-point operations for each byte; 0 where none are counted."""
        return self.work.floats / self.work.bytes if self.work.bytes else 0.0

    def picture(
        self, name: str = "kernel", beside: Mapping[str, Roofline] | None = None
    ) -> Picture:
        """The roof of the machine in this measurement, with the kernel as a full point, and hollow
        ones for those of `beside`, by name.
        """
        others = {} if beside is None else beside
        points = [roofline._point(other) for other, roofline in others.items() if other != name]
        points.append(self._point(name))
        return draw_roof(points, self.peak_gflops, self.peak_gb_per_s, f"{name}: {self}")

    def _point(self, name: str) -> RoofPoint:
        return RoofPoint(name, self.intensity, self.gflops, self.share)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        drawn = self.picture().svg if self.intensity else ""
        return f"<p>{escape(str(self))}</p>{drawn}"
