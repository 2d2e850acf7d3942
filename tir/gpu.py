"""What the architectures of NVIDIA's GPUs allow a block, and how fast they are, as pure values.

The limits are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
Programming Guide.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpuLimits:
    """Limits of one architecture, and nominal rates of its largest board.

    gflops: of float32 without tensor cores; gb_per_s: of the board's memory.
    threads_per_block, and threads and blocks along each axis (x, y, z). shared_bytes: of a block,
    with the opt-in that a kernel beyond `static_shared_bytes` needs. registers_per_thread,
    registers_per_block: of 32 bits.
    """

    gflops: float
    gb_per_s: float
    threads_per_block: int = 1024
    threads: tuple[int, int, int] = (1024, 1024, 64)
    blocks: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_shared_bytes: int = 48 << 10
    shared_bytes: int = 99 << 10
    registers_per_thread: int = 255
    registers_per_block: int = 64 << 10


GPUS = {
    "sm_80": GpuLimits(19.5e3, 2039, shared_bytes=163 << 10),
    "sm_86": GpuLimits(40.0e3, 1008),
    "sm_89": GpuLimits(91.6e3, 1008),
    "sm_90": GpuLimits(67e3, 4800, shared_bytes=227 << 10),
    "sm_90a": GpuLimits(67e3, 4800, shared_bytes=227 << 10),
    "sm_100": GpuLimits(80e3, 8000, shared_bytes=227 << 10),
    "sm_120": GpuLimits(125e3, 1792),
}
