"""What a failed call of CUDA's driver means for the one who made it."""

from __future__ import annotations

from ....tir.errors import TargetError, TilewrightError
from .driver import CallFailed
from .libcuda import libcuda

OUT_OF_MEMORY = 2
# after one of these the driver refuses everything until the process ends: memory fault (700, 716,
# 717), time (702), assertion (710), hardware (214, 220, 714), illegal code (715, 718), other (719)
STICKY = frozenset({214, 220, 700, 702, 710, 714, 715, 716, 717, 718, 719})


class DeviceError(TilewrightError, RuntimeError):
    """A call of the driver failed; status is CUDA's number, sticky: the context is lost."""

    def __init__(self, what: str, failed: CallFailed, notes: tuple[str, ...] = ()) -> None:
        status = failed.status
        sticky = status in STICKY
        lost = (
            "a kernel runs after its launch returned: an earlier one may be at fault.",
            "this process cannot use the device any more; another one can.",
        )
        super().__init__(
            f"cuda: {what} failed: {failed.text} ({libcuda().name(status)}, {status}).",
            code="cuda-call",
            notes=(*notes, *(lost if sticky else ())),
        )
        self.status = status
        self.sticky = sticky


class DeviceMemoryError(TilewrightError, MemoryError):
    """The device has not as much free memory as was asked for."""

    def __init__(self, what: str, free_bytes: int, total_bytes: int) -> None:
        super().__init__(
            f"cuda: {what} failed: the device has {free_bytes} bytes free of {total_bytes}.",
            code="cuda-memory",
            hints=("give memory back, also that of other processes: see nvidia-smi.",),
        )


class DeviceUseError(TilewrightError, ValueError):
    """Memory, a stream or a graph is used as it cannot be."""


class LaunchError(TargetError):
    """A kernel is launched with more than the device or the kernel allows."""
