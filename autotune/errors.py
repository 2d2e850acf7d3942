"""Errors of the autotuner."""

from __future__ import annotations

from ..tir.errors import TilewrightError


class LogError(TilewrightError, OSError):
    """A tuning log cannot be read or written."""


class RecordError(TilewrightError, ValueError):
    """A line of a tuning log is not what tilewright writes."""


class NotALog(LogError):
    """A file that holds something else than a tuning log."""
