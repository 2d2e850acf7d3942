"""How functions share the trials of one search: the next trials go to the function that is
expected to save most seconds of a run of the model, count x seconds x expected gain.

The expected gain falls with every trial that gains nothing (expected_improvement.py), so small
functions get their turn once the large ones no longer improve. A function none of whose trials ran
promises nothing. This is Ansor's task scheduler (gradient descent on the sum of the times, Zheng et
al., 2020) with the expected gain as the gradient.
"""

from __future__ import annotations

from .expected_improvement import ExpectedImprovement


def expected_saving(count: int, fastest: float | None, improvement: ExpectedImprovement) -> float:
    """Seconds of a run of the model that one more trial is expected to save.

    count: how often the model runs the function; fastest: seconds of its fastest trial; None where
    none ran.
    """
    return count * (fastest or 0.0) * improvement.gain
