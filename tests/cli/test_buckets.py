"""cli/buckets.py: what --buckets says, and engines that `tilewright compile` makes by it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tilewright.cli.buckets import buckets_of
from tilewright.cli.errors import UsageError
from tilewright.driver.load import load

from .conftest import Command

pytestmark = pytest.mark.needs_cc


def given(buckets: str | None, log: str | None = None) -> object:
    return buckets_of(argparse.Namespace(buckets=buckets, shape_log=log))


def test_sizes_and_counts_are_read() -> None:
    assert given(None) == {}
    assert given(None, "s.jsonl") == {"shape_log": "s.jsonl"}
    assert given("4", "s.jsonl") == {"buckets": 4, "shape_log": "s.jsonl"}
    assert given("batch:4x16") == {"buckets": {"batch": (4, 16)}, "shape_log": None}
    assert given("batch:[16],seq:128") == {
        "buckets": {"batch": (16,), "seq": 128},
        "shape_log": None,
    }
    assert buckets_of(argparse.Namespace(shape_log="of-run.jsonl")) == {}


def test_ranges_are_refused() -> None:
    with pytest.raises(UsageError) as caught:
        given("batch:4x1-2-16")
    assert str(caught.value) == (
        "UsageError: --buckets: 'batch' has a range; expected numbers. [cli-buckets]\n"
        "  Hint: --buckets batch:4x16."
    )


def test_a_model_is_compiled_with_buckets_of_a_log(
    tilewright: Command, open_model: Path, tmp_path: Path
) -> None:
    log, file = tmp_path / "sizes.jsonl", tmp_path / "buckets.twe"
    counts = {2: 90, 3: 5, 7: 5}
    lines = [
        json.dumps({"model": "open", "sizes": {"batch": n}, "runs": often})
        for n, often in counts.items()
    ]
    log.write_text("".join(line + "\n" for line in lines))
    shared = ("compile", open_model, "--shapes", "batch:1-4-8", "-o", file)
    done = tilewright(*shared, "--buckets", "2", "--shape-log", log)
    assert (done.code, done.err) == (0, "")
    assert "chosen of 3 sizes in 100 runs of the log" in " ".join(done.out.split())
    assert [dict(one.sizes)["batch"] for one in load(file).parts.variants] == [2, 7]
    done = tilewright(*shared, "--buckets", "batch:[4]", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out)["variants"][0]["sizes"] == {"batch": 4}
    done = tilewright("compile", file, "--buckets", "4")
    assert done.code == 2
