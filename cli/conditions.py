"""The conditions of measurements: the machine, the date, the versions of all software."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Iterable

import numpy as np

from ..runtime.machine.host import host
from ..runtime.toolchain.compilers import CompilerNotFound, find_compiler
from ..runtime.version import tool_version
from .compare.peers import Peer


def conditions(peers: Iterable[Peer]) -> dict[str, str]:
    """The conditions by name, as text."""
    here = host()
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cpu": here.model or "unknown",
        "isa": here.isa,
        "compiler": _compiler(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "tilewright": tool_version(),
        **{peer.name: peer.version() for peer in peers},
    }


def _compiler() -> str:
    try:
        return find_compiler().version
    except CompilerNotFound:
        return "none"
