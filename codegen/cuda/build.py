"""A lowered function becomes a CudaArtifact: each statement at its root a kernel, in one source."""

from __future__ import annotations

from collections.abc import Sequence

from ...tir.buffer import Buffer
from ...tir.dim import Dim
from ...tir.errors import TargetError
from ...tir.func import PrimFunc, split_allocations
from ...tir.stmt import Barrier
from ...tir.target.target import Target
from ..artifact import parameters_of, sizes_of
from ..lower.split_prepare import Prepared
from ..text.comments import header
from ..text.marked import MarkedText, joined
from .artifact import CudaArtifact, Part, Temporary
from .device_functions import cuda_definitions
from .dialect import CUDA
from .emit import emit_kernel, kernel_symbol
from .vector_types import vector_definitions


def write_cuda(parts: Prepared, target: Target, *, notes: str = "") -> CudaArtifact:
    """The artifact of a function in stage LOWERED. notes: text for the comment at the top.

    Raises: TargetError for what a grid cannot run, and beyond the limits of the architecture.
    """
    prepare = None
    texts: list[MarkedText] = []
    if parts.prepare is not None:
        made, prepare = _part(parts.prepare, target)
        texts += made
    made, run = _part(parts.run, target)
    texts += made
    body = joined(texts)
    helpers = "\n".join(f"{text}\n" for text in CUDA.definitions(body))
    definitions = cuda_definitions(body) + vector_definitions(body)
    source = f"{header(parts.run.name, target, notes)}\n{definitions}{helpers}{body}"
    marked, name = body.within(source), parts.run.name
    return CudaArtifact(name, marked, target, run, prepare, sizes_of(parts.run))


def _part(func: PrimFunc, target: Target) -> tuple[list[MarkedText], Part]:
    allocated, listed = split_allocations(func.body)
    for buffer in allocated:
        if buffer.scope != "global":
            raise TargetError(
                f"cuda: '{buffer.name}' of '{func.name}', in scope '{buffer.scope}', is shared by "
                "several kernels; expected 'global' outside of loops of blocks.",
                code="cuda-root-scope",
                hints=("bind the loop around all that touches it to blocks.",),
            )
    roots = [statement for statement in listed if not isinstance(statement, Barrier)]
    sizes = _size_names(func, allocated)
    kernels = [
        emit_kernel(func, root, target, kernel_symbol(func.name, number, len(roots)), sizes)
        for number, root in enumerate(roots)
    ]
    temporaries = tuple(Temporary(b.name, b.type, b.shape) for b in allocated)
    launches = tuple(kernel.launch for kernel in kernels)
    part = Part(parameters_of(func), launches, temporaries, tuple(sizes.values()))
    return [kernel.text for kernel in kernels], part


def _size_names(func: PrimFunc, allocated: Sequence[Buffer]) -> dict[Dim, str]:
    """What launches call the sizes of a call: by their own names where no array has them."""
    taken = {p.name for p in func.parameters} | {buffer.name for buffer in allocated}
    names: dict[Dim, str] = {}
    for dim in func.dims:
        name = dim.name
        while name in taken:
            name += "_"
        names[dim] = name
        taken.add(name)
    return names
