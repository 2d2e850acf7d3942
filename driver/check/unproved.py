"""What is neither proved nor checked is refused: where a proof ends undecided, a run beside the
reference must follow.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...schedule.verdict import UNKNOWN, Verdict
from ...tir.errors import TilewrightError


class ProofError(TilewrightError, ValueError):
    """The proof of a kernel is undecided, and nothing else says that the kernel is right."""


def unproved(verdicts: Mapping[str, Verdict], *, runs_here: bool) -> ProofError | None:
    """What refuses kernels, by name, whose proof is undecided, where no check follows.

    runs_here: whether this machine could check them.
    """
    unknown = {name: verdict for name, verdict in verdicts.items() if verdict.status == UNKNOWN}
    if not unknown:
        return None
    names = ", ".join(f"'{name}'" for name in unknown)
    are = "is" if len(unknown) == 1 else "are"
    check = (
        "verify='kernels' runs each kernel beside its reference."
        if runs_here
        else "build where the target is, with verify='kernels', which runs each kernel beside its "
        "reference."
    )
    return ProofError(
        f"build: {names} {are} neither proved nor checked; expected a proof, or a run beside the "
        "reference.",
        code="proof-unknown",
        where="\n".join(f"{name}: {why}" for name, v in unknown.items() for why in v.reasons),
        hints=(check, "or leave out the steps that the proof does not decide."),
    )
