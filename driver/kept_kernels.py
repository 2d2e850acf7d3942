"""Kernels that an earlier build lowered, proved and checked, kept from one process to the next: a
model that changed in one place, or that is built with other options, is made anew there alone.

A kernel is kept under what it was made of: its function with all of its names, the target, what
rules may use, the C compiler as its file is now, whether this machine ran it, and the code of
tilewright itself. Kept are its lowered code, the verdict of its proof and what its check found,
after it passed; so a kernel that was not run is checked by the next build that checks. The text of
it is written anew, and the check of the whole engine runs each time.

Not kept: what a source of schedules decides, and code for a target with a grid.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ..runtime.log import log
from ..runtime.toolchain.cache import cache_key, user_cache
from ..runtime.version import tool_version
from ..schedule.verdict import UNKNOWN
from ..tir.func import PrimFunc
from ..tir.target.target import Target
from .check.program import KernelCheck
from .code_digest import code_digest
from .lower_program import LoweredKernel

KERNELS = "kernels"  # the kind of entries
# what a pickle raises whose classes are others than those that wrote it
_UNREADABLE = (pickle.UnpicklingError, AttributeError, ImportError, EOFError, TypeError, ValueError)


class CachedKernels:
    """The kernels of the user's cache that fit one kind of build."""

    def __init__(
        self, target: Target, stamp: str, *, strict: bool = False, allow: Sequence[str] = ()
    ) -> None:
        """stamp: of the back end; strict, allow: as `lower_program` has them."""
        self._made_by = (
            json.dumps(target.to_json(), sort_keys=True),
            stamp,
            f"{strict} {list(allow)}",
            tool_version(),
            code_digest(),
        )

    def get(self, func: PrimFunc, key: str) -> LoweredKernel | None:
        """The kernel of a function with this workload key; None where none is kept."""
        place = self.entry(func, key)
        data = user_cache().get(KERNELS, place)
        if data is None:
            return None
        try:
            found = pickle.loads(data)
        except _UNREADABLE as error:
            found = error
        if isinstance(found, LoweredKernel):
            return found
        log.info("cache: the kernel of '%s' cannot be read and is made anew: %s", func.name, found)
        path = user_cache().path(KERNELS, place)
        if path is not None:
            with suppress(OSError):
                path.unlink()
        return None

    def put(self, kernel: LoweredKernel, check: KernelCheck | None) -> None:
        """Keep a kernel that passed. check: what was found when it ran; None where it did not.

        One whose proof is undecided is not kept: on a faster machine it may be decided.
        """
        if user_cache().folder is None or kernel.verdict.status == UNKNOWN:
            return
        seconds = None if check is None else replace(check, seconds=0.0)
        made = replace(kernel.counted(), check=seconds, kept=True)
        try:
            data = pickle.dumps(made, protocol=5)
        except RecursionError:  # an expression of thousands of levels
            return
        user_cache().put(KERNELS, self.entry(kernel.func, kernel.key), data)

    def entry(self, func: PrimFunc, key: str) -> str:
        """The name of the entry. The text of the function is part of it, since its names are those
        of the code; its own name is not, which code is written under in any case.
        """
        return cache_key(*self._made_by, key, str(replace(func, name="kernel")))
