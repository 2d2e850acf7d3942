"""The angle of a point, as nodes of core operators."""

from __future__ import annotations

import numpy as np

from tilewright.graph.importers.aten.importer import import_program
from tilewright.graph.importers.aten.program import (
    ExportedGraph,
    ExportedNode,
    ExportedProgram,
    Named,
    RecordedType,
)
from tilewright.graph.reference.reference import evaluate

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, 0.3, 1.5, -1.5, 3, -3], np.float32)


def test_the_angle_of_a_point_is_that_of_its_quadrant() -> None:
    """Each special value with each; zeros have signs."""
    y, x = (one.ravel() for one in np.meshgrid(SPECIAL, SPECIAL))
    type_ = RecordedType("float32", y.shape)
    operands = {"self": Named("y"), "other": Named("x")}
    node = ExportedNode("angle", "aten.atan2.default", operands, ("angle",))
    graph = ExportedGraph(("y", "x"), (Named("angle"),), (node,), {"y": type_, "x": type_})
    program = ExportedProgram("m", graph, {}, ("y", "x"), ("angle",), {}, {})
    found = evaluate(import_program(program), {"y": y, "x": x})["angle"]
    wanted = np.arctan2(y, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])
