"""Tables in Markdown and results in JSON, with the machine and the versions that they are true
for.
"""

from __future__ import annotations

import datetime
import json
import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import tilewright
from tilewright.runtime.compilers import find_compiler
from tilewright.runtime.host import host

from . import peers

RESULTS = Path(__file__).parent / "results"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def conditions(systems: Sequence[str]) -> dict[str, str]:
    """The machine, the date and the versions."""
    found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": host().model,
        "isa": host().isa,
        "compiler": find_compiler().version,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "tilewright": tilewright.__version__,
    }
    return {**found, **{name: peers.version(name) for name in systems}}


def write(name: str, text: str, rows: Sequence[object], systems: Sequence[str]) -> None:
    """Keep a result as results/NAME.json and results/NAME.md."""
    RESULTS.mkdir(exist_ok=True)
    about = conditions(systems)
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"conditions": about, "rows": rows}, indent=1) + "\n"
    )
    lines = ", ".join(f"{key} {value}" for key, value in about.items())
    (RESULTS / f"{name}.md").write_text(f"# {name}\n\n{lines}\n\n{text}\n")
