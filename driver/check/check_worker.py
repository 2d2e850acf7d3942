"""The process that checks kernels beside its parent, a module to be run.

It reads from standard input, as pickles of its parent: the program's artifact and its object, then
functions with the symbols of their kernels' entries, one at a time. To each it answers on standard
output with what `KernelChecker` found; the output of a kernel goes to standard error. It ends when
its parent does.
"""

from __future__ import annotations

import os
import pickle
import sys

from .program import KernelChecker


def main() -> None:
    """Check kernels until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    jobs = sys.stdin.buffer
    checker: KernelChecker | None = None
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:  # the parent has none, or is gone
            return
        if checker is None:
            checker = KernelChecker(job.artifact, job.shared)
        else:
            answers.write(pickle.dumps(job.run(checker)))


if __name__ == "__main__":
    main()
