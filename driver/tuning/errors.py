"""What tuning raises on purpose, whichever back end is meant."""

from __future__ import annotations

from ...tir.errors import TilewrightError


class TuneError(TilewrightError, ValueError):
    """What is to be tuned cannot be."""


class TuneTypeError(TuneError, TypeError):
    """A search has no such option."""
