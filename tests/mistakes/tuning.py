"""Mistakes with a search and its log, as they are refused."""

from __future__ import annotations

from pathlib import Path

import tilewright as tw
from tilewright import te

A = te.placeholder((4, 8), "float32", name="A")
R = te.compute((4, 8), lambda i, j: te.maximum(A[i, j], 0.0), name="R")
relu = te.func(A, R, name="relu")
T = te.compute((8,), lambda i: A[0, i], name="T")
row = te.func(A, T, name="row")


def has_negative_trials() -> object:
    """A search has less than no trial"""
    return tw.tune(relu, "c:scalar", trials=-1)


def has_a_negative_time() -> object:
    """A search has a negative time"""
    return tw.tune(relu, "c:scalar", seconds=-1)


def tunes_for_the_interpreter() -> object:
    """A search measures the interpreter"""
    return tw.tune(relu, "python", trials=1)


def names_an_unknown_strategy() -> object:
    """A strategy does not exist"""
    return tw.tune(relu, "c:scalar", trials=1, strategy="genetic")


def misspells_an_option() -> object:
    """An option of a search is misspelt"""
    return tw.tune(relu, "c:scalar", n_trials=1)


def reads_a_log_that_is_not_there() -> object:
    """A log does not exist"""
    return tw.TuningLog("missing.jsonl")


def reads_a_log_that_is_none() -> object:
    """A file of another kind is read as a log"""
    Path("notes.txt").write_text("tuned on Monday\n")
    return tw.TuningLog("notes.txt")


def gives_a_path_for_a_log() -> object:
    """A path stands for a log"""
    return tw.build(relu, "c:scalar", schedules="relu.jsonl")


def builds_with_another_functions_log() -> object:
    """A log holds nothing of the function"""
    Path("empty.jsonl").touch()
    log = tw.TuningLog("empty.jsonl")
    return tw.build(relu, "c:scalar", schedules=log, require_tuned=True)


def replays_a_trace_of_another_function() -> object:
    """A trace of another function is replayed"""
    sch = tw.Schedule(relu)
    sch.vectorize(sch.loops("R")[1])
    return tw.Schedule.replay(row, sch.trace)
