"""graph/verification/bodies.py: bodies of branches and loops, one node smaller."""

from __future__ import annotations

import onnx

from tilewright.graph.verification.bodies import body_nodes, with_identities, without_unread
from tilewright.graph.verification.reduce_model import reduce_model

MODEL = """<ir_version: 9, opset_import: ["" : 17]>
    branches (float[4] x, bool flag) => (float[4] y) {
        y = If (flag) <
            then_branch = one () => (float[4] a) {
                b = Tanh (x) c = Erf (b) d = Neg (c) a = Abs (c)
            },
            else_branch = two () => (float[4] e) { e = Identity (x) }
        >
    }
"""


def test_a_node_of_a_body_hands_on_what_it_reads() -> None:
    model = onnx.parser.parse_model(MODEL)
    names = [node.op_type for node in body_nodes(model)]
    place = names.index("Abs")
    (made,) = with_identities(model, place)
    changed = body_nodes(made)[place]
    assert (changed.op_type, list(changed.input), list(changed.output)) == (
        "Identity",
        ["c"],
        ["a"],
    )
    onnx.checker.check_model(made)
    assert not list(with_identities(model, names.index("Identity")))
    assert not list(with_identities(model, names.index("Neg")))  # nobody reads it


def test_a_node_that_nobody_reads_goes() -> None:
    model = onnx.parser.parse_model(MODEL)
    (made,) = without_unread(model)
    assert "Neg" not in [node.op_type for node in body_nodes(made)]
    assert not list(without_unread(made))


def test_bodies_are_reduced() -> None:
    found = reduce_model(onnx.parser.parse_model(MODEL), command="! grep -q Erf {model}")
    left = sorted(node.op_type for node in body_nodes(found.proto))
    assert left == ["Erf", "Identity", "Identity", "Identity"]
