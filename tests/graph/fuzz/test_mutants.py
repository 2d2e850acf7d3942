"""A fixed number of mutants, and the failures of earlier runs: only errors that say what is wrong
with a model come out of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilewright.graph.samples.samples import tiny_model
from tilewright.tir.errors import InternalError

from . import examine as examining
from .examine import Overtime, examine
from .hostile import models
from .mutate import CHANGES, mutant
from .run import CORPUS, Tally, run


def test_only_errors_about_the_model_come_out_of_mutants() -> None:
    corpus, imports, compiles = run(400, 60)
    for tally in (corpus, imports, compiles):
        assert not tally.failures, str(tally)
    assert corpus.outcomes.total() == len(list(CORPUS.glob("*.onnx"))) + len(models())
    assert imports.outcomes.total() == 400
    assert imports.outcomes["accepted"] > 20
    assert len(imports.codes) > 20
    assert compiles.outcomes["accepted"] > 2


def test_a_number_stands_for_one_mutant() -> None:
    texts = [mutant(number).SerializeToString(deterministic=True) for number in range(40)]
    again = [mutant(number).SerializeToString(deterministic=True) for number in range(40)]
    assert texts == again
    assert len(set(texts)) == 40


@pytest.mark.parametrize("change", dict.fromkeys(CHANGES), ids=lambda change: change.__name__)
def test_every_change_changes_some_model(
    change: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(number: int) -> bytes:
        return mutant(number).SerializeToString(deterministic=True)

    monkeypatch.setattr("tests.graph.fuzz.mutate.CHANGES", (lambda model, draw: None,))
    before = [drawn(number) for number in range(30)]
    monkeypatch.setattr("tests.graph.fuzz.mutate.CHANGES", (change,))
    assert before != [drawn(number) for number in range(30)]


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [
        (ValueError("no"), "foreign"),
        (MemoryError("no"), "memory"),
        (Overtime("no"), "slow"),
        (InternalError("no", code="graph-verify"), "internal"),
    ],
)
def test_what_must_not_come_out_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException, outcome: str
) -> None:
    def fail(model: object) -> None:
        raise raised

    monkeypatch.setattr(examining, "import_onnx", fail)
    answer = examine(tiny_model().model, build=False)
    assert answer["outcome"] == outcome
    tally = Tally("one")
    assert tally.add("7", {**answer, "seconds": 0.0})
    assert f"7: {outcome}: " in str(tally)
