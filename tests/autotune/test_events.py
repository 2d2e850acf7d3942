"""The events of a search keep to their schema, and to its version."""

from __future__ import annotations

import json
from pathlib import Path

from tilewright.autotune import events
from tilewright.autotune.events import VERSION
from tilewright.autotune.tune import tune
from tilewright.tir.json_reader import Json
from tilewright.tir.target.target import Target

from .places.test_executors import Instant, right
from .samples import scaled
from .test_task import in_parts

SCHEMA = json.loads(Path(events.__file__).with_name("events.schema.json").read_text())
KINDS = {kind["properties"]["event"]["const"]: kind for kind in SCHEMA["oneOf"]}


def test_each_event_is_as_the_schema_says(tmp_path: Path) -> None:
    told = list[dict[str, Json]]()
    pairs = [(scaled(64), 1), (scaled(32), 2)]
    tune(
        pairs, Target.parse("c:avx512"), rule=in_parts, executor=Instant(right), events=told.append
    )
    assert told[0]["event"] == "began"
    assert told[-1]["event"] == "ended"
    assert {str(one["event"]) for one in told} == {"began", "trial", "best", "ended"}
    for event in told:
        kind = KINDS[str(event["event"])]
        assert set(event) == {*SCHEMA["required"], *kind["required"]}
        assert set(kind["required"]) | {"event"} == set(kind["properties"])
        assert event["version"] == VERSION == SCHEMA["properties"]["version"]["const"]
        assert json.loads(json.dumps(event)) == event
    assert set(KINDS) == set(SCHEMA["properties"]["event"]["enum"])


def test_the_trials_of_a_resumed_log_are_no_events(tmp_path: Path) -> None:
    log, target = tmp_path / "a.jsonl", Target.parse("c:avx512")
    tune(scaled(), target, rule=in_parts, executor=Instant(right), log=log)
    told = list[dict[str, Json]]()
    executor = Instant(right)
    tune(scaled(), target, rule=in_parts, executor=executor, log=log, events=told.append)
    assert [one["event"] for one in told] == ["began", "ended"]
