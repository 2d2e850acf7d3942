"""An importer: files `*.chain` with a line for each operator, behind one for the input.

x 2 8
Mish 1.0
NearMean 3
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import tilewright as tw
from tilewright.graph.ir.build import GraphBuilder
from tilewright.graph.ir.ir import Graph

from .operators import Mish, NearMean


def import_chain(
    path: str | os.PathLike[str],
    *,
    shapes: Mapping[str, object] | None,
    constants: Mapping[str, object] | None,
) -> Graph:
    """The Graph of a file; its sizes are numbers, and all its inputs those of a call."""
    first, *lines = Path(path).read_text(encoding="utf-8").splitlines()
    name, *sizes = first.split()
    builder = GraphBuilder(Path(path).stem)
    value = builder.input(name, tw.TensorType("float32", tuple(map(int, sizes))))
    for line in lines:
        operator, number = line.split()
        op = Mish(float(number)) if operator == "Mish" else NearMean(int(number))
        value = builder.add(op, value)
    return builder.finish({"y": value})
