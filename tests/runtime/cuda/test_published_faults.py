"""Faults of published kernels, told in public threads and rewritten here in our dialect: checked
mode finds each, and finds nothing where the kernel is mended.
"""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.codegen.cuda.artifact import KernelLaunch
from tilewright.codegen.cuda.device_functions import cuda_definitions
from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.emulator.report import EmulationReport
from tilewright.runtime.cuda.toolchain.compile import compile_cuda
from tilewright.runtime.cuda.toolchain.nvrtc import Nvrtc

from ...launches import flat

pytestmark = pytest.mark.needs_cxx


def check(
    source: str, launch: KernelLaunch, arrays: dict[str, np.ndarray | int]
) -> EmulationReport:
    return emulate(source, [launch], arrays, checked=True)


def kinds(report: EmulationReport) -> set[str]:
    return {finding.kind for finding in report.findings}


SOFTMAX = """\
extern "C" __global__ void __launch_bounds__(128) softmax(
    const float* __restrict__ x, float* __restrict__ y)
{{
    __shared__ float buf[4];
    const int tx = (int)threadIdx.x, warp = tx / 32;
    const float v = x[blockIdx.x * 128 + tx];
    float most = v;
    for (int i = 16; i > 0; i /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, i));
    if (tx % 32 == 0) buf[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(buf[0], buf[1]), fmaxf(buf[2], buf[3]));
    {mended}
    const float e = v - most;
    float sum = e;
    for (int i = 16; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, i);
    if (tx % 32 == 0) buf[warp] = sum;
    __syncthreads();
    y[blockIdx.x * 128 + tx] = e / (buf[0] + buf[1] + buf[2] + buf[3]);
}}
"""


def test_a_buffer_of_two_reductions_is_written_again_while_it_is_read() -> None:
    """https://github.com/ggml-org/llama.cpp/pull/5853: soft_max's sums overwrite its maxima."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(-50, 50, (2, 128)).astype(np.float32), np.zeros((2, 128), np.float32)
    launch = flat("softmax", 2, 128, ("x", "y"))
    report = check(SOFTMAX.format(mended=""), launch, {"x": x, "y": y})
    assert kinds(report) == {"race"}
    lines = {tuple(party.line for party in finding.parties) for finding in report.findings}
    assert lines == {(11, 16), (16, 11)}
    assert check(SOFTMAX.format(mended="__syncthreads();"), launch, {"x": x, "y": y})
    shifted = x - x.max(1, keepdims=True)
    np.testing.assert_allclose(y, shifted / shifted.sum(1, keepdims=True), rtol=1e-6)


PIPELINE = """\
extern "C" __global__ void __launch_bounds__(64) rows(
    const float* __restrict__ x, float* __restrict__ y)
{{
    __shared__ __align__(16) float tile[3][256];
    const int tx = (int)threadIdx.x;
    float sum = 0.0f;
    for (int stage = 0; stage < 2; ++stage) {{
        tw_cp_async_16(&tile[stage][tx * 4], &x[stage * 256 + tx * 4]);
        tw_cp_async_commit();
    }}
    tw_cp_async_wait<1>();
    __syncthreads();
    for (int i = 0; i < 8; ++i) {{
        if (i < 6) tw_cp_async_16(&tile[(i + 2) % 3][tx * 4], &x[(i + 2) * 256 + tx * 4]);
        {before}
        sum += tile[i % 3][255 - tx];
        tw_cp_async_wait<1>();
        {after}
        __syncthreads();
    }}
    y[tx] = sum;
}}
"""


def test_a_group_that_is_committed_after_the_wait_is_not_waited_for() -> None:
    """https://github.com/csarofeen/pytorch/pull/2457: the generated loop waits, then commits."""
    x, y = np.arange(8 * 256, dtype=np.float32).reshape(8, 256), np.zeros(64, np.float32)
    launch, commit = flat("rows", 1, 64, ("x", "y")), "tw_cp_async_commit();"
    report = check(PIPELINE.format(before="", after=commit), launch, {"x": x, "y": y})
    assert "early" in kinds(report)
    early = next(finding for finding in report.findings if finding.kind == "early")
    assert [party.line for party in early.parties] == [8, 16]
    assert (early.buffer, early.parties[1].action) == ("tile", "reads")
    assert check(PIPELINE.format(before=commit, after=""), launch, {"x": x, "y": y})
    np.testing.assert_array_equal(y, x[:, ::-1][:, :64].sum(0))


COMBINE = """\
extern "C" __global__ void __launch_bounds__(64) combine(
    const float* __restrict__ x, float* __restrict__ y)
{{
    __shared__ float meta[64];
    const int tx = (int)threadIdx.x;
    meta[tx] = x[tx];
    __syncthreads();
    float scale = 0.0f;
    if (tx / 32 % 2 == 0) {{
        scale = meta[tx] + meta[tx + 32];
        {one}
    }} else {{
        {other}
    }}
    {both}
    if (tx < 32) meta[tx] = scale;
    __syncthreads();
    y[tx] = meta[tx % 32];
}}
"""


def test_warps_of_one_block_wait_at_two_barriers() -> None:
    """https://github.com/ggml-org/llama.cpp/issues/27678: attention's warps that combine results
    wait at one barrier, and the others at another.
    """
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launch, barrier = flat("combine", 1, 64, ("x", "y")), "__syncthreads();"
    source = COMBINE.format(one=barrier, other=barrier, both="")
    report = check(source, launch, {"x": x, "y": y})
    assert kinds(report) == {"barrier"}
    assert [party.line for party in report.findings[0].parties] == [11, 13]
    assert [party.thread for party in report.findings[0].parties] == [(0, 0, 0), (32, 0, 0)]
    assert not emulate(source, [launch], {"x": x, "y": y})  # without the checks too
    assert check(COMBINE.format(one="", other="", both=barrier), launch, {"x": x, "y": y})
    np.testing.assert_array_equal(y, np.tile(x[:32] + x[32:], 2))


RELU = """\
extern "C" __global__ void __launch_bounds__(64) relu(
    const float* __restrict__ x, float* __restrict__ y, int n)
{{
    const int i = 4 * (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if ({whole}) {{
        float4 v = *(const float4*)&x[i];
        v.x = fmaxf(v.x, 0.0f); v.y = fmaxf(v.y, 0.0f);
        v.z = fmaxf(v.z, 0.0f); v.w = fmaxf(v.w, 0.0f);
        *(float4*)&y[i] = v;
    }} {tail}
}}
"""


def test_a_vector_is_read_past_the_last_element() -> None:
    """https://github.com/xlite-dev/LeetCUDA/pull/421: the bound is that of a vector's first
    element.
    """
    x, y = np.arange(-500, 501, dtype=np.float32), np.zeros(1001, np.float32)
    launch = flat("relu", 4, 64, ("x", "y", "n"))
    report = check(RELU.format(whole="i < n", tail=""), launch, {"x": x, "y": y, "n": 1001})
    assert str(report) == (
        "out-of-bounds in 'relu' at x[1001]\n"
        "  thread (58, 0, 0) of block (3, 0, 0) reads, line 6: "
        "float4 v = *(const float4*)&x[i];"
    )
    tail = "else for (int j = i; j < n; ++j) y[j] = fmaxf(x[j], 0.0f);"
    assert check(RELU.format(whole="i + 3 < n", tail=tail), launch, {"x": x, "y": y, "n": 1001})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


SUM = """\
extern "C" __global__ void __launch_bounds__(128) sum(
    const float* __restrict__ x, float* __restrict__ y)
{{
    __shared__ volatile float tile[128];
    const int tx = (int)threadIdx.x;
    tile[tx] = x[tx];
    __syncthreads();
    if (tx < 64) tile[tx] = tile[tx] + tile[tx + 64];
    __syncthreads();
    if (tx < 32) {{
        float mine = tile[tx] + tile[tx + 32];
        for (int i = 16; i > 0; i /= 2) {{
            {meet}
            tile[tx] = mine;
            {meet}
            if (tx < i) mine = mine + tile[tx + i];
        }}
        if (tx == 0) y[0] = mine;
    }}
}}
"""


@pytest.mark.parametrize("meet", ["", "__syncwarp();"])
def test_the_lanes_of_a_warp_are_not_in_step(meet: str) -> None:
    """https://github.com/CanReader/FastNN/issues/8: a sum over volatile shared memory whose last
    warp meets nowhere.
    """
    x, y = np.arange(128, dtype=np.float32), np.zeros(1, np.float32)
    report = check(SUM.format(meet=meet), flat("sum", 1, 128, ("x", "y")), {"x": x, "y": y})
    if meet:
        assert report, str(report)
        assert y[0] == x.sum()
    else:
        assert kinds(report) == {"race"}
        assert {party.line for finding in report.findings for party in finding.parties} <= {14, 16}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_the_kernels_are_cuda_c(nvrtc: Nvrtc, arch: str) -> None:
    barrier = "__syncthreads();"
    sources = (
        SOFTMAX.format(mended=barrier),
        PIPELINE.format(before="tw_cp_async_commit();", after=""),
        COMBINE.format(one="", other="", both=barrier),
        RELU.format(whole="i + 3 < n", tail=""),
        SUM.format(meet="__syncwarp();"),
    )
    for source in sources:
        assert compile_cuda(cuda_definitions(source) + source, arch).image
