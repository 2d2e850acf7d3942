"""The GPU of this machine as a device that measures candidates."""

from __future__ import annotations

from ...runtime.cuda.device.availability import Unavailable, availability
from ...runtime.cuda.driver.architecture import runs_on
from ...runtime.cuda.toolchain.compile import cuda_flags
from ...runtime.cuda.toolchain.inspection import inspector
from ...runtime.cuda.toolchain.nvrtc import NvrtcNotFound, find_nvrtc
from ...runtime.version import tool_version
from ...tir.errors import TargetError
from ...tir.target import Target
from .record import Conditions


def gpu_conditions(target: Target) -> Conditions:
    """The conditions of this machine's GPU; without one, device and driver are empty."""
    found, device, driver = availability(), "", ""
    if not isinstance(found, Unavailable):
        device = found.devices[0].name
        driver = "CUDA {}.{}".format(*found.driver.version())
    try:
        compiler = str(find_nvrtc())
    except NvrtcNotFound:
        compiler = ""
    flags = cuda_flags(target.isa)
    return Conditions(target.to_json(), device, compiler, flags, tool_version(), driver)


def check_gpu(target: Target) -> None:
    """Refuse to measure without a GPU that runs code for the target, or without its toolchain.

    Raises: NoDevice, TargetError, NvrtcNotFound, ToolNotFound.
    """
    if target.gpu is None:
        return
    found = availability()
    if isinstance(found, Unavailable):
        raise found.error()
    device = found.devices[0]
    if not runs_on(target.isa, device.capability):
        raise TargetError(
            f"tune: the GPU here, '{device.name}', is an {device.arch}; expected one that runs "
            f"code for '{target}'.",
            code="tune-arch",
            hints=("target 'cuda' is the GPU that is here.",),
        )
    find_nvrtc()
    inspector("cuobjdump")
