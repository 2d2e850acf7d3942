"""The subjects of operators' benchmark: each is a model that systems read, and what is said of them
is said of one.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.operators import Row, check_drawn, chosen
from benchmarks.subjects.operators import FAMILIES
from benchmarks.subjects.operators.remarks import LEFT_OUT, WHY
from benchmarks.subjects.operators.subject import Subject
from tilewright.cli.compare.comparison import OURS
from tilewright.cli.compare.peers import PeerSession
from tilewright.graph.importers.onnx.importer import import_onnx

SUBJECTS = [subject for family in FAMILIES.values() for subject in family]


def test_names_are_told_apart() -> None:
    assert [name for name, count in Counter(s.name for s in SUBJECTS).items() if count > 1] == []
    assert [s.name for _, s in chosen(["TopK 5 of 1x"], list(FAMILIES))] == [
        "TopK 5 of 1x1000",
        "TopK 5 of 1x8400",
    ]


def test_what_is_said_is_said_of_a_subject() -> None:
    for table in (WHY, *LEFT_OUT.values()):
        for begin in table:
            assert any(subject.name.startswith(begin) for subject in SUBJECTS), begin


@pytest.mark.sampled(9)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name.replace(" ", "_"))
def test_a_subject_is_a_model_of_its_inputs(subject: Subject) -> None:
    model, inputs = subject.model()
    graph = import_onnx(model)
    assert set(graph.outputs) == set(subject.outputs)
    assert {name: tuple(graph.types[name].shape) for name in graph.inputs} == {
        name: array.shape for name, array in inputs.items()
    }


def test_a_row_says_why_where_it_is_slower_than_the_better_peer() -> None:
    name = next(iter(WHY))
    slow = Row("family", name, 1, {OURS: 10.0, "onnxruntime": 7.9, "openvino": 20.0})
    assert slow.ahead == pytest.approx(0.79)
    assert slow.why == WHY[name]
    fast = Row("family", name, 1, {OURS: 10.0, "onnxruntime": 8.1})
    assert (fast.why, Row("family", name, 1, {OURS: 10.0}).ahead) == ("", None)


def test_drawn_numbers_have_the_same_mean_and_deviation() -> None:
    def drawn(shift: float) -> PeerSession:
        y = np.random.default_rng(0).standard_normal(1000).astype(np.float32) + np.float32(shift)
        return PeerSession(lambda: None, lambda: {"y": y})

    check_drawn({OURS: drawn(0.0), "peer": drawn(0.01)})
    with pytest.raises(ArithmeticError, match="peer has means and deviations"):
        check_drawn({OURS: drawn(0.0), "peer": drawn(0.2)})
