"""What ONNX's standard has and tilewright does not is refused by what it is."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper

from tilewright.graph.errors import UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.importers.onnx.rules.out_of_scope import OUT_OF_SCOPE

TRAINING = "ai.onnx.preview.training"


def refused(name: str, kind: int) -> str:
    domain, _, operator = name.rpartition(".")
    node = helper.make_node(operator, ["x"], ["y"], "the_node", domain=domain)
    inputs = [helper.make_tensor_value_info("x", kind, [3])]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(TRAINING, 1)]
    with pytest.raises(UnsupportedOperator) as error:
        import_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=9))
    return str(error.value)


def test_each_is_refused_by_what_it_is(golden: Callable[[str, str], None]) -> None:
    """An operator on text reads text, which is refused as well."""
    texts = [
        refused(
            name, TensorProto.STRING if name.startswith(("Regex", "String")) else TensorProto.UINT8
        )
        for name in OUT_OF_SCOPE
    ]
    golden("errors/onnx_out_of_scope.txt", "\n\n".join(texts))


def test_each_is_an_operator_of_the_standard() -> None:
    for name in OUT_OF_SCOPE:
        domain, _, operator = name.rpartition(".")
        assert onnx.defs.has(operator, domain)
