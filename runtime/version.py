"""The version of the tool, for files that outlive it."""

from __future__ import annotations

import sys


def tool_version() -> str:
    """The version of the package that this module is a part of."""
    return str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])
