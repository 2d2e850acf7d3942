"""A process that examines cases: one line of JSON in, one out; `python -m
tilewright.driver.fuzz.worker`.

Compiled code that is wrong may crash or hang; then only this process is lost. A request is
{"seeds": [...], "isas": [...]} or {"case": {...}, "isas": [...]}; the answer is a list, one entry
for each case.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict

from .case import ISAS, Case, Drawn, draw
from .compiled import run_batch
from .examine import CaseFailure, Examined, LoweredCase, examine
from .steps import Tally

Json = dict[str, object]


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(answer(request)), flush=True)


def answer(request: Json) -> list[Json]:
    """One entry for each case: its steps, what was found, and the case itself where it failed."""
    isas = [str(isa) for isa in _items(request.get("isas"))]
    drawn: list[tuple[Drawn, Tally]] = []
    if "case" in request:
        held = request["case"]
        assert isinstance(held, dict)
        case = Case.of(str(held["function"]), _items(held["steps"]))
        drawn.append((Drawn(case), Tally()))
    for seed in _items(request.get("seeds", [])):
        tally = Tally()
        drawn.append((draw(int(str(seed)), tally), tally))
    found = [_examined(item) for item, _ in drawn]
    _compile(found, isas)
    return [_entry(item, tally, one) for (item, tally), one in zip(drawn, found, strict=True)]


def _examined(drawn: Drawn) -> Examined:
    if drawn.failed is None:
        return examine(drawn.case)
    step, message = drawn.failed
    if step is not None:  # replayed, it fails in the same way
        found = examine(drawn.case, ISAS[:1])
        if found.failure is not None:
            return found
    return Examined(CaseFailure("schedule", message.partition(":")[0], message))


def _compile(found: Sequence[Examined], isas: Sequence[str]) -> None:
    """Run what was lowered, all cases of an instruction set in one source."""
    for isa in isas:
        chosen: list[tuple[Examined, LoweredCase]] = [
            (one, lowered)
            for one in found
            if one.failure is None
            for lowered in one.lowered
            if lowered.target.isa == isa
        ]
        failures = run_batch([lowered for _, lowered in chosen])
        for (one, _), failure in zip(chosen, failures, strict=True):
            one.failure = failure


def _entry(drawn: Drawn, tally: Tally, found: Examined) -> Json:
    entry: Json = {
        "steps": len(drawn.case.trace.steps),
        "applied": dict(tally.applied),
        "refused": dict(tally.refused),
        "kinds": {kind: dict(codes) for kind, codes in tally.kinds.items()},
        "proof": found.proof,
        "target_refused": found.refused,
        "failure": None,
    }
    if found.failure is not None:
        entry |= {"failure": asdict(found.failure), "case": drawn.case.to_json()}
    return entry


def _items(value: object) -> list[object]:
    assert isinstance(value, list)
    return value


if __name__ == "__main__":
    main()
