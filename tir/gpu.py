"""What the architectures of NVIDIA's GPUs allow a block, as pure values.

The numbers are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """Limits of one architecture.

    threads_per_block, and threads and blocks along each axis (x, y, z). shared_bytes: of a block,
    with the opt-in that a kernel beyond `static_shared_bytes` needs. registers_per_thread,
    registers_per_block: of 32 bits.
    """

    threads_per_block: int = 1024
    threads: tuple[int, int, int] = (1024, 1024, 64)
    blocks: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_shared_bytes: int = 48 << 10
    shared_bytes: int = 99 << 10
    registers_per_thread: int = 255
    registers_per_block: int = 64 << 10


GPUS = {
    "sm_80": GpuLimits(shared_bytes=163 << 10),
    "sm_86": GpuLimits(),
    "sm_89": GpuLimits(),
    "sm_90": GpuLimits(shared_bytes=227 << 10),
    "sm_90a": GpuLimits(shared_bytes=227 << 10),
    "sm_100": GpuLimits(shared_bytes=227 << 10),
    "sm_120": GpuLimits(),
}
