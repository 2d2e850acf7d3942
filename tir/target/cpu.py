"""What CPUs of the instruction sets have, as pure values: the nominal machines that plans are made
for where a target does not say more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuModel:
    """The nominal machine of one instruction set, with the fields of a CpuTarget that it stands
    for.
    """

    vector_bytes: int
    vector_registers: int
    fma_per_cycle: int = 2
    bf16_per_cycle: float = 2.0
    clock_ghz: float = 3.0
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 32 << 20
    dram_gb_per_s: float = 40.0


CPUS = {
    "scalar": CpuModel(vector_bytes=0, vector_registers=16),
    "avx2": CpuModel(vector_bytes=32, vector_registers=16),
    "avx512": CpuModel(vector_bytes=64, vector_registers=32),
    "neon": CpuModel(vector_bytes=16, vector_registers=32),
}
