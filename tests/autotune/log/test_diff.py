"""autotune/log/diff.py: what two logs know of each function."""

from __future__ import annotations

from tilewright.autotune.log.diff import differences_of
from tilewright.autotune.log.file import Contents, contents

from ..samples import trial, workload


def log(**seconds: float) -> Contents:
    """The default of functions of sizes n64, n128, ..., which takes so many seconds."""
    sizes = {int(name[1:]): each for name, each in seconds.items()}
    trials = [trial(n=size, seconds=each) for size, each in sizes.items()]
    return contents([*map(workload, sizes), *trials])


def test_what_became_slower_stands_first() -> None:
    old, new = log(n64=2.0, n128=2.0, n256=2.0), log(n256=8.0, n64=1.0, n128=2.0)
    found = differences_of(old, new)
    assert [one.ratio for one in found] == [4.0, 1.0, 0.5]
    assert [one.is_same for one in found] == [False, True, False]
    assert [one.key for one in found] == [workload(size).key for size in (256, 128, 64)]


def test_a_function_of_one_log_alone_has_no_ratio() -> None:
    lost, made = differences_of(log(n64=1.0), log(n128=1.0))
    assert (lost.new, made.old, lost.ratio, made.ratio) == (None, None, None, None)
    assert not lost.is_same
    assert not made.is_same
    assert lost.to_json()["old_seconds"] == made.to_json()["new_seconds"]
    assert (lost.to_json()["new_state"], made.to_json()["old_state"]) == (None, None)
