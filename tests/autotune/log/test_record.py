from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tilewright.autotune.errors import RecordError
from tilewright.autotune.log.record import (
    OUTCOMES,
    Record,
    SizeTimes,
    Workload,
    identity,
    line_of,
    record_of,
)
from tilewright.schedule.schedule import Schedule
from tilewright.tir.parsing.parser import parse
from tilewright.tir.text.canonical import workload_key

from ..samples import scaled, trial, workload

SIZED = replace(trial(), sizes=(SizeTimes((1, 8), 20, (1e-6, 4e-6, 2e-6)), SizeTimes((4, 8))))
RECORDS = [
    workload(),
    *(trial(n, outcome=outcome) for n, outcome in enumerate(OUTCOMES)),
    SIZED,
    replace(trial(outcome="wrong"), sizes=(SizeTimes((1,)),)),
]
NAMES = ["workload", *OUTCOMES, "sizes", "sizes of one that failed"]


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_what_is_written_is_read(record: Record) -> None:
    line = line_of(record)
    assert line.splitlines(keepends=True) == [line]
    assert line.endswith(b"\n")
    assert record_of(line) == record
    assert json.loads(line)["sum"] == identity(record)


@pytest.mark.parametrize("record", RECORDS, ids=NAMES)
def test_lines_are_what_the_schema_says(record: Record, root: Path) -> None:
    schema = json.loads((root / "autotune" / "log" / "record.schema.json").read_text("utf-8"))
    checked = jsonschema.Draft202012Validator(schema)
    checked.validate(json.loads(line_of(record)))
    with pytest.raises(jsonschema.ValidationError):
        checked.validate({**json.loads(line_of(record)), "schema": 2})


def test_a_log_of_the_first_schema_is_read_for_ever() -> None:
    """The lines were written on 22 November 2026; their bytes and sums must go on to be read."""
    lines = (Path(__file__).parents[1] / "fixtures" / "schema1.jsonl").read_bytes().splitlines()
    first, *trials = map(record_of, lines)
    assert isinstance(first, Workload)
    assert workload_key(parse(first.text)) == first.key == workload().key
    assert [one.outcome for one in trials] == ["ok", "ok", "crashed"]
    assert [line_of(record_of(line)).rstrip() for line in lines] == lines
    for one in trials:
        assert Schedule.replay(scaled(), one.trace).trace == one.trace


def test_the_trace_of_a_record_replays_on_a_function_of_the_same_workload() -> None:
    read = record_of(line_of(trial(2)))
    assert read.decisions == (16,)
    assert len(Schedule.replay(scaled(), read.trace).loops("y")) == 2


def test_another_order_of_fields_and_other_spaces_are_the_same_record() -> None:
    fields = json.loads(line_of(trial()))
    turned = json.dumps(dict(reversed(fields.items())), indent=1).encode()
    assert record_of(turned) == trial()


def test_the_seconds_of_a_trial_are_the_median_of_its_samples() -> None:
    assert trial(seconds=2e-6).seconds == 3e-6
    assert trial(outcome="wrong").seconds is None


def changed(**fields: object) -> bytes:
    """The line of a trial with other fields and the right sum for them."""
    from tilewright.autotune.log import record

    body = json.loads(line_of(trial()))
    del body["sum"]
    body.update(fields)
    return json.dumps({**body, "sum": record._sum(body)}).encode()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\xff\n", "log: the line is no UTF-8: 'utf-8' codec can't decode byte 0xff in position "
         "0: invalid start byte. [log-line]"),
        (b"[1, 2]", "log: the sum of the line is None; expected '44136fa355b3678a'. [log-sum]\n"
         "  Hint: the line was cut or changed after it was written."),
        (b"[" * 100_000, "maximum recursion"),
        (changed(schema=2), "log: the record has schema 2; expected 1. [log-schema]\n"
         "  Hint: a newer tilewright reads it."),
        (changed(schema=0), "log: the record has schema 0; expected 1. [log-schema]"),
        (changed(outcome="lost"), "log: no record of ours: json: record.outcome is 'lost'; "
         "expected 'ok' or 'wrong' or 'crashed' or 'timed-out' or 'out-of-memory' or "
         "'build-failed'. [log-line]"),
        (changed(samples=[float("nan")]), "log: record.samples[0] is nan; expected a number of "
         "seconds. [log-line]"),
        (changed(trace=[]), "log: no record of ours: trace: format version None; expected 1. "
         "[log-line]"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: bytes, message: str) -> None:
    with pytest.raises(RecordError) as refused:
        record_of(line)
    assert message in str(refused.value)


def test_a_changed_character_is_seen() -> None:
    line = line_of(trial())
    for place in range(0, len(line) - 1, 7):
        other = bytes([line[place] ^ 1])
        with pytest.raises(RecordError):
            record_of(line[:place] + other + line[place + 1 :])


def test_the_time_of_a_trial_at_several_sizes_is_the_mean_of_its_medians() -> None:
    small, large = SizeTimes((1,), 8, (1e-6, 9e-6, 1e-6)), SizeTimes((64,), 2, (4e-6, 4e-6, 7e-6))
    one = replace(trial(), samples=(2e-6, 6e-6, 2.6e-6), sizes=(small, large))
    assert one.seconds == pytest.approx(2e-6)
    assert one.timed_at == ((1,), (64,))
    assert [one.seconds_at(values) for values in ((1,), (64,), (2,), ())] == [
        1e-6,
        4e-6,
        None,
        None,
    ]
    assert trial().seconds_at(()) == trial().seconds
    assert trial().seconds_at((1,)) is None
    assert str(small) == "1: 1 us"
