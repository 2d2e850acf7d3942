from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright.runtime.cuda.toolchain import inspection
from tilewright.runtime.cuda.toolchain.compile import Cubin, compile_cuda
from tilewright.runtime.cuda.toolchain.inspection import (
    Resources,
    ToolFailed,
    ToolNotFound,
    disassembly,
    instruction_mix,
    resources,
)
from tilewright.runtime.cuda.toolchain.toolkit import find_tool
from tilewright.tir.errors import TargetError

PLAIN = """
extern "C" __global__ void plain(float *x)
{
    x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void turned(float *x)
{
    __shared__ float tile[256];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void wide(float4 *x, const float4 *y)
{
    x[threadIdx.x] = y[threadIdx.x];
}
"""
INDEXED = """
extern "C" __global__ void indexed(float *x, int n)
{
    float keep[64];
    for (int i = 0; i < 64; ++i)
        keep[i] = x[i * 7];
    for (int i = 0; i < 64; ++i)
        keep[(i * n) & 63] += keep[i];
    x[n] = keep[n & 63];
}
"""
CROWDED = """
extern "C" __global__ void crowded(float *c)
{
    float v[64];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        v[i] = c[i * 32];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i)
        c[i] = v[63 - i];
}
"""
PRODUCT = """
extern "C" __global__ void product(float *d, const unsigned *a, const unsigned *b)
{
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    for (int i = 0; i < 4; ++i)
        d[4 * threadIdx.x + i] = sum[i];
}
"""
needs_cuobjdump = pytest.mark.skipif(
    find_tool("cuobjdump") is None, reason="cuobjdump is not installed: nvidia-cuda-cuobjdump"
)
needs_nvdisasm = pytest.mark.skipif(
    find_tool("nvdisasm") is None, reason="nvdisasm is not installed: nvidia-cuda-nvdisasm"
)
EMPTY = Cubin("scale", "sm_80", b"", None, "NVRTC 13.5", 0.0)


@needs_cuobjdump
@pytest.mark.usefixtures("nvrtc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_each_kernel_says_what_it_takes(arch: str) -> None:
    found = resources(compile_cuda(PLAIN, arch))
    assert set(found) == {"plain", "turned", "wide"}
    assert found["turned"].shared_bytes == 1024
    assert found["plain"].shared_bytes == 0
    for one in found.values():
        assert 0 < one.registers <= 32
        assert one.stack_bytes == one.local_bytes == 0


@needs_cuobjdump
@pytest.mark.usefixtures("nvrtc")
def test_an_array_indexed_at_run_time_lies_in_local_memory() -> None:
    found = resources(compile_cuda(INDEXED, "sm_90a"))["indexed"]
    assert found == Resources(found.registers, 0, 256, 0)


@needs_cuobjdump
@pytest.mark.usefixtures("nvrtc")
def test_too_few_registers_make_a_kernel_spill() -> None:
    free = resources(compile_cuda(CROWDED, "sm_80"))["crowded"]
    tight = resources(compile_cuda(CROWDED, "sm_80", flags=("--maxrregcount=32",)))["crowded"]
    assert free.registers > 64
    assert free.stack_bytes == 0
    assert tight.registers <= 32
    assert tight.stack_bytes > 0


@needs_nvdisasm
@pytest.mark.usefixtures("nvrtc")
def test_the_mix_counts_instructions_by_name() -> None:
    mixes = instruction_mix(compile_cuda(PLAIN, "sm_90a"))
    assert set(mixes) == {"plain", "turned", "wide"}
    assert mixes["turned"].count("BAR") == mixes["turned"].count("BAR.SYNC") == 1
    assert mixes["turned"].count("STS", "LDS") == 2
    assert mixes["wide"].count("LDG.E.128") == mixes["wide"].count("STG.E.128") == 1
    assert mixes["plain"].count("LDG") == 0
    assert mixes["plain"].count("ST") == 0
    assert mixes["plain"].count("STG") == 1
    assert mixes["plain"].total >= 4
    assert "NOP" not in mixes["plain"].counts


@needs_nvdisasm
@pytest.mark.usefixtures("nvrtc")
def test_a_matrix_instruction_is_one() -> None:
    cubin = compile_cuda(PRODUCT, "sm_80")
    mix = instruction_mix(cubin)["product"]
    assert mix.count("HMMA.16816.F32") == mix.count("HMMA") == 1
    assert "HMMA.16816.F32" in disassembly(cubin)


def test_text_for_the_driver_is_not_inspected() -> None:
    with pytest.raises(TargetError) as caught:
        resources(replace(EMPTY, arch="compute_90"))
    assert str(caught.value) == (
        "TargetError: inspect: 'scale' is PTX for compute_90; only machine code can be inspected. "
        "[inspect-ptx]\n"
        "  Hint: compile it for sm_90."
    )


def test_without_the_tool_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "find_tool", lambda name: None)
    with pytest.raises(ToolNotFound) as caught:
        instruction_mix(EMPTY)
    assert str(caught.value) == (
        "ToolNotFound: inspect: NVIDIA's nvdisasm is not here; looked for the nvidia-cuda-nvdisasm "
        "wheel, $CUDA_HOME, $CUDA_PATH and on the PATH. [inspect-tool-missing]\n"
        "  Hint: anywhere: python -m pip install 'tilewright[cuda]'"
    )
    assert isinstance(caught.value, OSError)


@needs_cuobjdump
def test_what_is_no_cubin_is_refused() -> None:
    with pytest.raises(ToolFailed) as caught:
        resources(replace(EMPTY, image=b"not a cubin"))
    assert str(caught.value) == (
        f"ToolFailed: inspect: {find_tool('cuobjdump')} refused the cubin of 'scale': cuobjdump "
        "fatal   : Invalid fatbin header in 'it'. [inspect-tool-failed]"
    )
