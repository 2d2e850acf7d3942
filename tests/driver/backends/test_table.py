"""driver/backends/table.py: each kind of target has its back end."""

from __future__ import annotations

import pytest

from tilewright.driver.backends.table import backend_named, backend_of, read_code, tuner_of
from tilewright.driver.tuning.errors import TuneError
from tilewright.runtime.engine.format import Malformed
from tilewright.runtime.machine.host import host_target
from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import Reader
from tilewright.tir.target.kinds import BUILT_IN
from tilewright.tir.target.target import Target


@pytest.mark.parametrize("kind", BUILT_IN)
def test_each_kind_that_is_built_in_has_one(kind: str) -> None:
    assert backend_of(Target(kind)) is backend_named(kind)


@pytest.mark.parametrize("kind", ["c", "cuda"])
def test_what_compiles_is_tuned(kind: str) -> None:
    assert tuner_of(Target(kind)).device == {"c": "CPU", "cuda": "GPU"}[kind]


@pytest.mark.parametrize("kind", ["python", "null"])
def test_what_cannot_be_timed_is_not_tuned(kind: str) -> None:
    with pytest.raises(TuneError, match=rf"'{kind}' runs nothing that can be timed"):
        tuner_of(Target(kind))


def test_this_machine_runs_its_own_code_and_none_of_what_runs_nothing() -> None:
    assert backend_named("c").why_not_run(host_target()) is None
    assert backend_named("python").why_not_run(Target("python")) is None
    assert backend_named("null").why_not_run(Target("null")) is not None


@pytest.mark.parametrize(("kind", "error"), [("null", Malformed), ("no-such", IRError)])
def test_a_file_of_what_runs_nothing_is_no_engine(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_code(Reader({"target": {"kind": kind}}, "program"), {}, "")
