"""Whether candidates for a target can be measured on this machine."""

from __future__ import annotations

from ...runtime.machine.host import why_not_run
from ...tir.errors import TargetError
from ...tir.target import Target
from ..log.gpu_here import check_gpu


def check_here(target: Target) -> None:
    """Refuse a target whose code this machine cannot run.

    Raises: TargetError; NoDevice, NvrtcNotFound, ToolNotFound for a GPU.
    """
    if target.gpu is not None:
        check_gpu(target)
        return
    why = why_not_run(target)
    if why is not None:
        raise TargetError(
            f"tune: the target is '{target}', {why}; expected one whose candidates run here.",
            code="tune-isa",
            hints=(
                "target 'c' is this machine; executor= measures on another one.",
                "tw.build and tw.compile take such a target, and what was tuned for it elsewhere.",
            ),
        )
