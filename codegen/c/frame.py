"""The C text around generated code: what every source starts with."""

from __future__ import annotations

from ...tir.target.target import Target
from .dialect import C

TEAM = """\
struct tw_team { void (*barrier)(void *state, int thread); void *state; };
"""


def prelude(target: Target, body: str) -> str:
    """What stands above `body`: headers, the table that every entry is handed, and the helpers that
    it calls.
    """
    header = "arm_neon.h" if target.isa == "neon" else "immintrin.h"
    intrinsics = f"#include <{header}>\n" if target.has_vectors else ""
    parts = [f"{intrinsics}#include <stdint.h>\n#include <string.h>\n", TEAM]
    return "\n".join([*parts, *C.definitions(body)])
