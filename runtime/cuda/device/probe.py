"""Whether a GPU is as fast as it was: multiply-adds in registers, nothing else."""

from __future__ import annotations

import numpy as np

from ..toolchain.compile import compile_cuda
from .array import DeviceArray
from .context import DeviceContext, Stream
from .launch import pack
from .timing import sampler_on

_THREADS = 256
_BLOCKS = 8  # of each multiprocessor: as many threads as it holds
_CHAINS = 8  # of a thread, none of which waits for another
_ROUNDS = 4096
_MOST = 100  # samples until its clock has come up
_STEADY = 0.01  # the difference of two samples of a device whose clock has come up
_SOURCE = f"""\
extern "C" __global__ void __launch_bounds__({_THREADS})
tw_probe(float *sums, float x, int rounds)
{{
    float chain[{_CHAINS}];
    #pragma unroll
    for (int n = 0; n < {_CHAINS}; ++n)
        chain[n] = (float)(threadIdx.x + n);
    for (int round = 0; round < rounds; ++round) {{
        #pragma unroll
        for (int n = 0; n < {_CHAINS}; ++n)
            chain[n] = fmaf(chain[n], x, 1.0f);
    }}
    float sum = 0.0f;
    #pragma unroll
    for (int n = 0; n < {_CHAINS}; ++n)
        sum += chain[n];
    sums[blockIdx.x * {_THREADS} + threadIdx.x] = sum;
}}
"""


class DeviceProbe:
    """A probe of a GPU's float32 multiply-adds, about a millisecond of them.

    Raises: NvrtcNotFound, CompileFailed, DeviceError.
    """

    def __init__(self, context: DeviceContext) -> None:
        cubin = compile_cuda(_SOURCE, context.device.arch, name="tw_probe")
        kernel = context.load(cubin).kernel("tw_probe")
        blocks = _BLOCKS * context.device.multiprocessors
        sums = DeviceArray.empty(context, (blocks * _THREADS,), np.float32)
        arguments = pack(sums, np.float32(0.5), np.int32(_ROUNDS))
        self._kept = sums
        self._operations = 2.0 * blocks * _THREADS * _CHAINS * _ROUNDS

        def work(stream: Stream) -> None:
            kernel.launch((blocks, 1, 1), (_THREADS, 1, 1), arguments, stream=stream)

        self._sampler = sampler_on(context, work, "warm")

    def gflops(self) -> float:
        """What it does now, once its clock, which rests when there is nothing to do, is up: where a
        sample is as fast as the one before. A multiply-add counts as two.
        """
        before, now = 0.0, self._sampler.take()
        for _ in range(_MOST):
            if abs(now - before) <= _STEADY * now:
                break
            before, now = now, self._sampler.take()
        return self._operations / now / 1e9
