"""Every function that a compile of a model would price, so that one tuning run can measure them
all.
"""

from __future__ import annotations

from ..driver.build import resolve_target
from ..tir.func import PrimFunc
from ..tir.target import Target
from .choose import choose
from .fusion import fuse
from .importers.onnx import Source, import_onnx
from .importers.symbols import Shapes
from .ir import Graph
from .options import check_tolerance
from .passes.pipeline import optimise
from .pricing import Kernel, Pricer


def tasks(
    model: Source | Graph,
    target: Target | str | None = None,
    *,
    shapes: Shapes | None = None,
    tolerance: float | None = None,
) -> list[tuple[PrimFunc, int]]:
    """The functions of all alternatives, each once, with the number of places in the model that it
    could serve.

    model: a path, bytes, a ModelProto or a Graph; shapes: sizes that it leaves open. target: this
    machine's CPU by default. tolerance: as `compile` has it.
    Raises: ModelError, TargetError.
    """
    check_tolerance(tolerance, strict=False)
    imported = model if isinstance(model, Graph) else import_onnx(model, shapes=shapes)
    graph, _ = optimise(imported, check=False)
    counts: dict[str, int] = {}
    kernels: dict[str, Kernel] = {}
    pricer = Pricer(resolve_target(target), tolerance=tolerance)
    for decision in choose(graph, fuse(graph).groups, pricer):
        used = {p.kernel.key: p.kernel for one in decision.alternatives for p in one.parts}
        for key, kernel in used.items():
            kernels[key] = kernel
            counts[key] = counts.get(key, 0) + 1
    return [(kernel.func, counts[key]) for key, kernel in kernels.items()]
