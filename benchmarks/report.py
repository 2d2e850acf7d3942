"""Tables in Markdown and results in JSON, with the machine and the versions that they are true
for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.compare.peers import Peer
from tilewright.cli.conditions import conditions
from tilewright.runtime.machine.host import host
from tilewright.runtime.measure.rounds import is_disturbed

RESULTS = Path(__file__).parent / "results"


def folder() -> Path:
    """Where results of this machine are kept: one folder for each model of processor."""
    words = re.findall("[a-z0-9]+", host().model.lower())
    return RESULTS / ("-".join(words) or "untold")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def ratio_text(median: float, low: float, high: float) -> str:
    """A time over ours; "disturbed" where the rounds agree too little for a figure."""
    return "disturbed" if is_disturbed(low, high) else f"{median:.2f}"


def write(name: str, text: str, rows: Sequence[object], peers: Sequence[Peer]) -> None:
    """Keep a result of this machine as NAME.json and NAME.md in its folder."""
    kept = folder()
    kept.mkdir(parents=True, exist_ok=True)
    about = conditions(peers)
    (kept / f"{name}.json").write_text(
        json.dumps({"conditions": about, "rows": rows}, indent=1) + "\n"
    )
    lines = ", ".join(f"{key} {value}" for key, value in about.items())
    (kept / f"{name}.md").write_text(f"# {name}\n\n{lines}\n\n{text}\n")
