"""Vector math: elementary functions as arithmetic in the IR, the same for every target."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

from .expand import ExpandMath, ExpandQuotients

__all__ = ["ExpandMath", "ExpandQuotients"]
