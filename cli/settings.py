"""The environment variables that tilewright reads. A test checks that the list is complete."""

from __future__ import annotations

import os
from dataclasses import dataclass

MEANINGS = {
    "TILEWRIGHT_CACHE": "folder of the cache, or off (the user's cache folder)",
    "TILEWRIGHT_CACHE_BYTES": "most bytes that the cache keeps (8 GiB)",
    "TILEWRIGHT_CPU": "most that is used of the CPU, such as avx2 (all that it has)",
    "TILEWRIGHT_EXTENSIONS": "0: nothing of other packages is loaded (what is asked for is)",
    "TILEWRIGHT_NVRTC": "libnvrtc, for CUDA C (its wheel's, or a toolkit's)",
    "TILEWRIGHT_NUM_THREADS": "threads of a run that does not say (the CPUs allowed)",
    "TILEWRIGHT_WERROR": "1: warnings of the C compiler are errors (they are not)",
    "CC": "the C compiler (cc, gcc, clang, the ziglang wheel)",
    "CUDA_HOME": "a CUDA toolkit, for what NVIDIA's wheels lack (none)",
    "CUDA_PATH": "the same (none)",
}


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """A variable. value: None where it is not set. meaning: with the default in brackets."""

    name: str
    value: str | None
    meaning: str


def settings() -> tuple[EnvironmentVariable, ...]:
    """The variables with their current values."""
    return tuple(
        EnvironmentVariable(name, os.environ.get(name), text) for name, text in MEANINGS.items()
    )
