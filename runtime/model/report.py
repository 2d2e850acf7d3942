"""What is known of an engine, as plain values that are kept in its file: what each kernel is, where
its schedule came from, what proof and check found, how much memory a run takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from ...tir.sizes import AnySize, Size, size_in
from ...tir.text.display import printable
from ...tir.text.html import details, html_table
from ...tir.text.size import bytes_text
from .coverage import Coverage, Covered
from .precision_report import PrecisionReport

if TYPE_CHECKING:  # a run draws nothing
    from ...tir.svg.picture import Picture
    from .arena import ArenaTensor


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One distinct kernel of an engine.

    name: of its function; symbol: of its code. labels: the nodes that each of its launches
    computes. rule: what made its schedule; origin: "tuned", "similar", "rule" or "hand"; state: of
    what was tuned, as a log has it; empty in older engines.
    proof: the verdict's first line, and what a proof lacks; proof_seconds: what proving took.
    check: "ok", "off", or what is wrong; error: the largest error over the bound, None where it was
    not checked; check_ran: on what it ran.
    """

    name: str
    symbol: str
    labels: tuple[str, ...]
    rule: str
    origin: str
    proof: str
    proof_seconds: float = 0.0
    check: str = "off"
    check_seconds: float = 0.0
    error: float | None = None
    check_ran: str = ""
    state: str = ""

    @property
    def made(self) -> str:
        """Where its schedule came from, and in which state its log has it."""
        return ", ".join(filter(None, (self.origin, self.state)))

    def __str__(self) -> str:
        error = "" if self.error is None else f" ({self.error:.2g} of the bound"
        error += (f"; {self.check_ran})" if self.check_ran else ")") if error else ""
        return printable(
            f"{self.name} x {len(self.labels)}: {self.rule} ({self.made}); {self.proof}; "
            f"check {self.check}{error}"
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class EngineReport:
    """How an engine was built.

    notes: lines of those who made the program, such as each fusion that was missed, and why.
    seconds: what each part of the build took, by name; all but those "beside the others" add up.
    tolerance: the error of an output, as a share of its largest magnitude, that was accepted when
    it was built; None: the usual one. whole: what the run of the whole engine beside the model's
    reference found, "off" where it was not made.
    order: the symbol or the name of the kernel of each launch of a run, in order; () where no run
    is known. variants: how each variant was built, by the sizes for which it is. precision: what
    each product computes with, where a precision was asked for; allow: the instructions with a
    liberty that they may use.
    """

    kernels: tuple[KernelReport, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    tolerance: float | None = None
    whole: str = "off"
    order: tuple[str, ...] = ()
    variants: tuple[tuple[str, EngineReport], ...] = ()
    precision: PrecisionReport = field(default_factory=PrecisionReport)
    allow: tuple[str, ...] = ()

    @property
    def proofs(self) -> dict[str, int]:
        """How many kernels have each verdict."""
        return dict(Counter(_verdict(kernel.proof) for kernel in self.kernels))

    @property
    def coverage(self) -> Coverage:
        """How much of the engine was tuned."""
        return Coverage(
            tuple(Covered(k.name, len(k.labels), k.origin, state=k.state) for k in self.kernels)
        )

    def __str__(self) -> str:
        lines = [str(self.coverage)]
        lines.append(f"proofs: {_counts(self.proofs.items())}")
        lines.append(f"whole engine: check {self.whole}")
        lines += [f"  {kernel}" for kernel in self.kernels]
        for sizes, one in self.variants:
            proofs = _counts(one.proofs.items())
            lines.append(
                f"variant at {sizes}: {one.coverage}; proofs: {proofs}; whole: check {one.whole}"
            )
        if self.precision:
            lines.append(str(self.precision))
        lines += [f"note: {note}" for note in self.notes]
        if self.seconds:
            lines.append("built in " + ", ".join(f"{n} {s:.2f} s" for n, s in self.seconds))
        return printable("\n".join(lines))

    def picture(self) -> Picture:
        """The launches of a run in order, each with the nodes that it computes; layers that repeat
        are drawn once.
        """
        from .launch_order import LaunchedGroup, draw_launches  # a run draws nothing

        kernels = {kernel.name: kernel for kernel in self.kernels}
        kernels |= {kernel.symbol: kernel for kernel in self.kernels}
        labels = {kernel.name: iter(kernel.labels) for kernel in self.kernels}
        groups = [
            LaunchedGroup(next(labels[k.name], ""), k.name, k.origin, str(k))
            for k in (kernels[launched] for launched in self.order)
        ]
        return draw_launches(groups, f"{len(groups)} launches in order")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads = ("kernel", "launches", "schedule", "proof", "check", "error / bound")
        rows = [
            (
                kernel.name,
                str(len(kernel.labels)),
                f"{kernel.rule} ({kernel.made})",
                kernel.proof,
                kernel.check,
                "" if kernel.error is None else f"{kernel.error:.2g}",
            )
            for kernel in self.kernels
        ]
        table = html_table(heads, rows) + f"<p>whole engine: check {escape(self.whole)}</p>"
        for sizes, one in self.variants:
            table += f"<p>variant at {escape(sizes)}: check {escape(one.whole)}</p>"
        if self.order:
            table += details(f"{len(self.order)} launches in order", self.picture().svg)
        if self.precision:
            table += self.precision._repr_html_()
        if not self.notes:
            return table
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        title = f"{len(self.notes)} note{'' if len(self.notes) == 1 else 's'}"
        return table + details(title, f"<ul>{notes}</ul>")


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """How much memory an engine takes, known before it runs. Bytes.

    weights_bytes: constants, shared by all contexts. arena_bytes: tensors between kernels;
    lower_bound_bytes: of what is alive at once, the most, below which no arena can be; None: not
    known. workspace_bytes, thread_workspace_bytes: what kernels need for themselves. kept_bytes:
    original weights and the imported model's, kept for `save` and `verify` alone. Arrays of inputs
    and outputs are the caller's. padding_bytes: inputs and outputs of the largest variant that
    serves runs of fewer rows, which have their place beside the arena. tensors: the map of the
    arena; () where it is not known.

    Where runs decide sizes, all of this is for the largest; `live_bytes` says what a run needs.
    """

    weights_bytes: int
    arena_bytes: int
    workspace_bytes: int
    thread_workspace_bytes: int
    lower_bound_bytes: int | None = None
    kept_bytes: int = 0
    padding_bytes: int = 0
    tensors: tuple[ArenaTensor, ...] = field(default=(), compare=False)

    def context_bytes(self, threads: int) -> int:
        """What one context takes that runs on `threads` threads."""
        own = self.arena_bytes + self.workspace_bytes + self.padding_bytes
        return own + threads * self.thread_workspace_bytes

    def peak_bytes(self, threads: int, contexts: int = 1) -> int:
        """What `contexts` contexts take at most, with the weights, without what is kept."""
        return self.weights_bytes + contexts * self.context_bytes(threads)

    @property
    def live_bytes(self) -> AnySize | None:
        """What the tensors take that some launch needs at once, where they are most: of the sizes
        that a run decides; None where no map is known.
        """
        from .arena import live_bytes  # a run needs no map

        return live_bytes(self.tensors) if self.tensors else None

    def live_bytes_at(self, sizes: Mapping[str, int]) -> int | None:
        """`live_bytes` in numbers, at these sizes by name; what is left out is as it usually is."""
        found = self.live_bytes
        if not isinstance(found, Size):
            return found
        return size_in(found, {dim: sizes.get(dim.name, dim.usual) for dim in found.dims})

    def __str__(self) -> str:
        parts = [f"arena {bytes_text(self.arena_bytes)}"]
        if self.lower_bound_bytes is not None:
            parts[0] += f" (lower bound {bytes_text(self.lower_bound_bytes)})"
        if self.workspace_bytes:
            parts.append(f"workspace {bytes_text(self.workspace_bytes)}")
        if self.thread_workspace_bytes:
            parts.append(f"{bytes_text(self.thread_workspace_bytes)} per thread")
        if self.padding_bytes:
            parts.append(f"padded arrays {bytes_text(self.padding_bytes)}")
        weights = bytes_text(self.weights_bytes)
        needed = self.live_bytes
        live = f"; {open_bytes_text(needed)}" if isinstance(needed, Size) else ""
        kept = f"; kept to save: {bytes_text(self.kept_bytes)}" if self.kept_bytes else ""
        return f"weights {weights} (shared) + {' + '.join(parts)} per context{kept}{live}"

    def picture(self) -> Picture:
        """The map of the arena: the bytes of each tensor, from the launch that writes it to the
        last one that reads it, beside the lower bound.
        """
        from .arena import draw_arena  # a run draws nothing

        return draw_arena(self.tensors, self.arena_bytes, self.lower_bound_bytes, str(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        drawn = self.picture().svg if self.tensors else ""
        return f"<p>{escape(str(self))}</p>{drawn}"


def open_bytes_text(live: Size) -> str:
    """What a run needs of the arena: of the sizes that it decides, and in numbers."""
    places = [
        f"{bytes_text(size_in(live, at))} at "
        + ", ".join(f"{dim.name} {size}" for dim, size in at.items())
        for at in ({dim: dim.usual for dim in live.dims}, {dim: dim.high for dim in live.dims})
    ]
    return f"of the arena a run needs {live} bytes: {', '.join(places)}"


def _verdict(proof: str) -> str:
    """The status that a verdict's first line begins with."""
    return proof.partition(" (")[0]


def _counts(pairs: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{name} {count}" for name, count in pairs) or "none"
