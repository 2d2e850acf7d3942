"""The proof that a loop nest computes what its canonical form does: properties P1 to P5, decided
with integer sets.
"""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

from ..verdict import Failure, Iteration, Verdict
from .forms.budget import MAX_OPERATIONS
from .prove import prove

__all__ = ["MAX_OPERATIONS", "Failure", "Iteration", "Verdict", "prove"]
