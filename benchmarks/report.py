"""Tables in Markdown and results in JSON, with the machine and the versions that they are true
for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tilewright.cli.conditions import conditions
from tilewright.cli.peers import Peer

RESULTS = Path(__file__).parent / "results"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def write(name: str, text: str, rows: Sequence[object], peers: Sequence[Peer]) -> None:
    """Keep a result as results/NAME.json and results/NAME.md."""
    RESULTS.mkdir(exist_ok=True)
    about = conditions(peers)
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"conditions": about, "rows": rows}, indent=1) + "\n"
    )
    lines = ", ".join(f"{key} {value}" for key, value in about.items())
    (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{lines}\n\n{text}\n")
