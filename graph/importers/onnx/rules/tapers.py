"""Rules of the windows that frames of a signal are weighed by: sums of cosines, as constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .....tir import dtype as dtypes
from ....errors import ModelError
from ....types import frozen
from ...limits import checked_type
from ..node import NodeReader, NotSupported
from ..tensors import dtype_name
from .rule import ImportRule, Result


def _window(*shares: float) -> Callable[[NodeReader], Result]:
    """shares: of the cosines of no, one and two turns, with signs that alternate."""

    def build(node: NodeReader) -> Result:
        size, periodic = node.whole(0), node.integer("periodic", 1) != 0
        name = dtype_name(node.integer("output_datatype", 1))
        if name not in dtypes.NAMES:
            raise NotSupported(f"it gives {name}; known are {', '.join(dtypes.NAMES)}")
        if size < 0:
            raise ModelError(
                f"model: {node.title} has size {size}; expected 0 or more.", code="onnx-window-size"
            )
        what = f"the result of {node.title}"
        node.tensors.account.compute(what, checked_type(what, name, (size,), node.tensors.limits))
        turns = np.arange(size) * (2 * np.pi / max(1, size if periodic else size - 1))
        table = sum((-1) ** n * share * np.cos(n * turns) for n, share in enumerate(shares))
        return frozen(np.asarray(table).astype(name))

    return build


_ATTRIBUTES = ("output_datatype", "periodic")
_ALPHA = 25 / 46

RULES: dict[str, ImportRule] = {
    "BlackmanWindow": ImportRule((17,), _ATTRIBUTES, _window(0.42, 0.5, 0.08)),
    "HammingWindow": ImportRule((17,), _ATTRIBUTES, _window(_ALPHA, 1 - _ALPHA)),
    "HannWindow": ImportRule((17,), _ATTRIBUTES, _window(0.5, 0.5)),
}
