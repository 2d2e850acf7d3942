"""The number of threads that a caller asks for."""

from __future__ import annotations

import operator

from ..arrays import ArgumentTypeError, ArgumentValueError
from .host import THREADS_ANYWHERE, most_threads


def checked_threads(threads: object, name: str) -> int:
    """`threads`, which a caller gave to the kernel or engine `name`, as a number of 1 or more.

    Raises: ArgumentTypeError for what is no whole number; ArgumentValueError for one below 1 or
    above `most_threads()`.
    """
    try:
        count = operator.index(threads)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: threads is {threads!r}; expected a whole number of at least 1.",
            code="argument-threads-type",
        ) from None
    if count < 1:
        raise ArgumentValueError(
            f"{name}: threads is {count}; expected a whole number of at least 1.",
            code="argument-threads",
        )
    # to count the CPUs takes as long as a small model
    if count > THREADS_ANYWHERE and count > most_threads():
        shown = str(count) if count < 10**20 else "a number of more than 20 digits"
        raise ArgumentValueError(
            f"{name}: threads is {shown}; expected at most {most_threads()}.",
            code="argument-threads-most",
            notes=("that is four for each CPU of this machine, and at least 64.",),
        )
    return count
