"""What the architectures of NVIDIA's GPUs allow a block, and how fast a board of each is, as pure
values.

The limits are those of the table "Technical Specifications per Compute Capability" in the CUDA C++
Programming Guide. The rates are NVIDIA's own: of the A100 (80 GB, SXM), H200 (SXM), B200 (HGX) and
L40S their data sheets, of the RTX 3090 the GA102 architecture whitepaper (v2), of the RTX 5090 the
RTX Blackwell GPU architecture whitepaper; without sparsity, which doubles what they print first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRates:
    """Nominal rates of one board, in 10^9 operations or bytes per second.

    gflops: of float32 without tensor cores; gb_per_s: of the board's memory. Of tensor cores:
    f16_gflops, of float16 and bfloat16 with sums in float32 (on RTX boards half of what they do
    with sums in float16); tf32_gflops; f8_gflops, of float8 with sums in float32, 0 where there is
    none; int8_gops.
    """

    gflops: float
    gb_per_s: float
    f16_gflops: float
    tf32_gflops: float
    int8_gops: float
    f8_gflops: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuLimits:
    """Limits of one architecture, and the nominal rates of a board of it.

    threads_per_block, and threads and blocks along each axis (x, y, z). shared_bytes: of a block,
    with the opt-in that a kernel beyond `static_shared_bytes` needs. registers_per_thread,
    registers_per_block: of 32 bits. cache_bytes: of a multiprocessor, shared memory included, and
    of the board.
    warp_share: of the rates of tensor cores what instructions of one warp (mma.sync) reach, the
    only ones that we generate; the rest needs those of four warps. It is 0.63 on Hopper (Luo et
    al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking,
    2024). On sm_100 we know of no published figure and take the rate of a multiprocessor of sm_80,
    a quarter.
    """

    board: str
    rates: GpuRates
    cache_bytes: tuple[int, int]
    warp_share: float = 1.0
    threads_per_block: int = 1024
    threads: tuple[int, int, int] = (1024, 1024, 64)
    blocks: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    static_shared_bytes: int = 48 << 10
    shared_bytes: int = 99 << 10
    registers_per_thread: int = 255
    registers_per_block: int = 64 << 10


_HOPPER = GpuLimits(
    board="H200",
    rates=GpuRates(
        gflops=67e3,
        gb_per_s=4800,
        f16_gflops=989e3,
        tf32_gflops=495e3,
        int8_gops=1979e3,
        f8_gflops=1979e3,
    ),
    cache_bytes=(256 << 10, 50 << 20),
    warp_share=0.63,
    shared_bytes=227 << 10,
)

GPUS = {
    "sm_80": GpuLimits(
        board="A100",
        rates=GpuRates(
            gflops=19.5e3, gb_per_s=2039, f16_gflops=312e3, tf32_gflops=156e3, int8_gops=624e3
        ),
        cache_bytes=(192 << 10, 40 << 20),
        shared_bytes=163 << 10,
    ),
    "sm_86": GpuLimits(
        board="RTX 3090",
        rates=GpuRates(
            gflops=35.6e3, gb_per_s=936, f16_gflops=71e3, tf32_gflops=35.6e3, int8_gops=284e3
        ),
        cache_bytes=(128 << 10, 6 << 20),
    ),
    "sm_89": GpuLimits(
        board="L40S",
        rates=GpuRates(
            gflops=91.6e3,
            gb_per_s=864,
            f16_gflops=362e3,
            tf32_gflops=183e3,
            int8_gops=733e3,
            f8_gflops=733e3,
        ),
        cache_bytes=(128 << 10, 96 << 20),
    ),
    "sm_90": _HOPPER,
    "sm_90a": _HOPPER,
    "sm_100": GpuLimits(
        board="B200",
        rates=GpuRates(
            gflops=80e3,
            gb_per_s=8000,
            f16_gflops=2250e3,
            tf32_gflops=1125e3,
            int8_gops=4500e3,
            f8_gflops=4500e3,
        ),
        cache_bytes=(256 << 10, 126 << 20),
        warp_share=0.25,
        shared_bytes=227 << 10,
    ),
    "sm_120": GpuLimits(
        board="RTX 5090",
        rates=GpuRates(
            gflops=104.8e3,
            gb_per_s=1792,
            f16_gflops=209.5e3,
            tf32_gflops=104.8e3,
            int8_gops=838e3,
            f8_gflops=419e3,
        ),
        cache_bytes=(128 << 10, 96 << 20),
    ),
}
