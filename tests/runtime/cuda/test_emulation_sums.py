"""Passes and sectors of random requests, as checked mode sums them up and as defined."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.cuda.emulator.emulator import emulate
from tilewright.runtime.cuda.emulator.report import AccessSite

from ...launches import flat

pytestmark = pytest.mark.needs_cxx

ELEMENTS = 512

# lane by lane one element of each array; -1: none
SOURCE = """\
extern "C" __global__ void gather(
    const {kind}* __restrict__ x, const int* __restrict__ at, {kind}* out)
{{
    __shared__ {kind} tile[512];
    const int tx = (int)threadIdx.x;
    for (int i = tx; i < 512; i += (int)blockDim.x) tile[i] = x[i];
    __syncthreads();
    if (at[tx] >= 0) out[tx] = tile[at[tx]];
    if (at[tx] >= 0)
        out[64 + tx] = x[at[tx]];
}}
"""


def of_shared(elements: list[tuple[int, int]], size: int) -> tuple[int, int, int]:
    """Passes, the fewest, and the most of a part; elements: of a lane."""
    wide, passes = max(1, size // 4), []
    for part in range(wide):
        words = {
            (index * size + byte) // 4
            for lane, index in elements
            if lane * wide // 32 == part
            for byte in range(0, size, min(size, 4))
        }
        banks = np.bincount([word % 32 for word in words], minlength=32)
        passes.append(int(banks.max()))
    return sum(passes), sum(count > 0 for count in passes), max(passes)


def of_global(elements: list[tuple[int, int]], size: int) -> tuple[int, int, int]:
    """Sectors, the fewest that hold as many bytes, and the most of a request."""
    touched = {index * size + byte for _, index in elements for byte in range(size)}
    sectors = len({byte // 32 for byte in touched})
    return sectors, -(-len(touched) // 32), sectors


def seen(site: AccessSite) -> tuple[int, int, int]:
    return site.parts, site.least, site.worst


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *(("signed char", "i1"), ("unsigned short", "u2")),
        *(("float", "f4"), ("double", "f8"), ("float4", "4f4")),
    ],
)
def test_requests_cost_what_their_addresses_say(kind: str, dtype: str) -> None:
    rng = np.random.default_rng(7)
    size, source = np.dtype(dtype).itemsize, SOURCE.format(kind=kind)
    for _ in range(30):
        lanes = int(rng.choice([32, 32, 7, 20]))
        near, step = int(rng.choice([8, 40, ELEMENTS])), int(rng.choice([1, 2, 8]))
        at = rng.integers(0, near, lanes, dtype=np.int32) * step % ELEMENTS
        at[rng.random(lanes) < rng.choice([0, 0.3])] = -1
        if (at < 0).all():
            continue
        arrays = {"x": np.zeros(ELEMENTS, dtype), "at": at, "out": np.zeros(128, dtype)}
        report = emulate(source, [flat("gather", 1, lanes, tuple(arrays))], arrays, checked=True)
        assert report, str(report)
        elements = [(lane, int(index)) for lane, index in enumerate(at) if index >= 0]
        tile = next(s for s in report.sites if (s.buffer, s.action) == ("tile", "reads"))
        x = next(s for s in report.sites if (s.buffer, s.line) == ("x", 10))
        assert (tile.requests, x.requests) == (1, 1)
        assert seen(tile) == of_shared(elements, size)
        assert seen(x) == of_global(elements, size)
