"""A CUDA artifact on a device: its kernels, the arrays that stay there, and launches on arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from ....codegen.cuda.artifact import KernelLaunch, Part
from .array import DeviceArray
from .context import DeviceContext, DeviceKernel, Stream
from .launch import Argument, check_aligned, pack

NO_SIZES: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Bound:
    """A part's launches with their arrays: put into a stream as often as one likes, one at a time.

    arrays: those that the launches read and write, kept here.
    """

    launches: tuple[tuple[DeviceKernel, KernelLaunch, bytes], ...]
    arrays: Mapping[str, DeviceArray]

    def put(self, stream: Stream | None = None) -> None:
        """Put the launches into a stream, in order."""
        for kernel, launch, arguments in self.launches:
            kernel.launch(
                launch.grid,
                launch.block,
                arguments,
                shared_bytes=launch.shared_bytes,
                stream=stream,
            )


@dataclass(frozen=True, slots=True)
class Loaded:
    """An artifact on a device: its kernels by name, and the arrays that stay there."""

    context: DeviceContext
    kernels: Mapping[str, DeviceKernel]
    fixed: Mapping[str, DeviceArray] = field(default_factory=dict)

    def bound(
        self, part: Part, arrays: Mapping[str, DeviceArray], sizes: Mapping[str, int] = NO_SIZES
    ) -> Bound:
        """The launches of a part on these arrays, which come before those that stay, and on
        temporaries of their own where these are not among them. sizes: those that the call decides,
        by the part's names. Raises: LaunchError.
        """
        made = {
            t.name: DeviceArray.empty(self.context, t.shape, t.dtype.numpy)
            for t in part.temporaries
            if t.name not in arrays
        }
        known = {**self.fixed, **arrays, **made}
        for name, array in known.items():
            check_aligned(name, array)
        values = {name: np.int32(size) for name, size in sizes.items()}
        given: Mapping[str, Argument] = {**known, **values}
        launches = [
            (self.kernels[launch.kernel], launch, pack(*(given[name] for name in launch.arguments)))
            for launch in part.launches_at(sizes)
        ]
        return Bound(tuple(launches), known)
