"""A search that is ended at any moment loses the trial that it was about to keep, and nothing else;
another one goes on from there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .interrupted import POINTS

SOME, MANY = 6, 20  # moments
# how a search may end that was killed, told to end, or has no room: by the signal, with 1 where it
# was interrupted, with 2 where the log cannot be written; with 0 where it was faster
CODES = {"kill": {-9, 0}, "term": {1, 0}, "full": {2, 0}}


@pytest.mark.sampled(4)
@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "moments", [SOME, pytest.param(MANY, marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize("how", CODES)
def test_a_search_that_is_ended_anywhere_goes_on(how: str, moments: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.autotune.interrupted", how, str(moments), tmp_path]
    run = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, check=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(lines) == moments
    for line in lines:
        assert line["code"] in CODES[how], line
        assert line["lost"] == 0, line  # what was told to the caller stands in the log
        assert line["more"] <= 1, line  # one may have been kept and not yet told
        assert line["damaged"] <= 1, line
        assert (line["again"], line["same"], line["all"]) == (0, True, POINTS), line
    assert {line["code"] for line in lines} != {0}
