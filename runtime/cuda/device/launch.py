"""What a launch must keep to, and its arguments as the driver wants them."""

from __future__ import annotations

from math import prod
from typing import Protocol, TypeAlias

import numpy as np

from ..driver.driver import DeviceProperties, KernelAttributes, Size
from ..driver.errors import LaunchError

ALIGNMENT = 16  # bytes: code generation takes it that arrays begin at multiples of as many
_POINTER_BYTES = 8


class HasPointer(Protocol):
    """Device memory that a kernel may be given."""

    @property
    def pointer(self) -> int:
        """Where it begins."""
        ...


Argument: TypeAlias = "HasPointer | np.generic"


def pack(*arguments: Argument) -> bytes:
    """A kernel's arguments as its parameters lie: each at a multiple of its own size.

    A NumPy scalar is passed by value, device memory by its address.
    """
    packed = bytearray()
    for argument in arguments:
        if isinstance(argument, np.generic):
            data = argument.tobytes()
        else:
            data = argument.pointer.to_bytes(_POINTER_BYTES, "little")
        packed += bytes(-len(packed) % len(data)) + data
    return bytes(packed)


def check_aligned(name: str, memory: HasPointer) -> None:
    """Refuse an array of which a kernel cannot load 16 bytes at once. Raises: LaunchError."""
    if memory.pointer % ALIGNMENT:
        raise LaunchError(
            f"launch: '{name}' begins at {memory.pointer:#x}; expected a multiple of {ALIGNMENT} "
            "bytes, since kernels load as many at once.",
            code="cuda-aligned",
            hints=("a copy of a slice begins at one.",),
        )


def check_launch(
    name: str,
    device: DeviceProperties,
    kernel: KernelAttributes,
    grid: Size,
    block: Size,
    shared_bytes: int,
) -> None:
    """Refuse what the driver would call an invalid value. Raises: LaunchError."""
    threads, shared = prod(block), kernel.shared_bytes + shared_bytes
    if any(n > most for n, most in zip(grid, device.max_grid, strict=True)):
        excess = f"grid is {grid}, at most {device.max_grid}"
    elif any(not 0 < n <= most for n, most in zip(block, device.max_block, strict=True)):
        excess = f"block is {block}, from (1, 1, 1) to {device.max_block}"
    elif threads > kernel.max_threads:
        registers = f"its {kernel.registers} registers a thread and __launch_bounds__ allow"
        excess = f"block {block} is {threads} threads, {registers} {kernel.max_threads}"
    elif shared > device.block_shared_bytes:
        parts = f"{kernel.shared_bytes} static and {shared_bytes} dynamic bytes of shared memory"
        excess = f"{parts} make {shared}, at most {device.block_shared_bytes}"
    else:
        return
    raise LaunchError(
        f"launch: '{name}' does not fit the {device.name}: {excess}.", code="cuda-launch"
    )
