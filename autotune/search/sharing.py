"""How functions share the trials of one search: the next ones go to that function which is expected
to lose most seconds of a run of the model by its next trial, count x seconds x expected gain.

One that was tried and never seen to run promises nothing. Since the
expected gain falls with every trial in vain (outlook.py), a function that counts much waits for the
others when it has given what it has, and small ones get their turn (the gradient of the sum:
Ansor's task scheduler, Zheng et al., 2020, with the gain that the model expects for the slope).
"""

from __future__ import annotations

from .expected_improvement import Outlook


def expected_saving(count: int, best: float | None, outlook: Outlook) -> float:
    """Seconds of a run of the model that one more trial is expected to save.

    count: how often the model runs the function; best: seconds of its best trial; None where none
    ran.
    """
    return count * (best or 0.0) * outlook.gain
