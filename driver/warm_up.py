"""What every build by the C compiler needs and no model decides is made beside the caller: the
precompiled header of intrinsics and the thread pool, a second of the compiler where nothing is kept
yet. Meanwhile a model is read and planned, which leaves other processors idle.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from ..runtime.cpu.pool import pool_object
from ..runtime.machine.host import can_compile
from ..runtime.toolchain.cache import user_cache
from ..runtime.toolchain.compile import common_header
from ..tir.errors import TilewrightError
from ..tir.target.target import Target


def begin_warm_up(target: Target) -> threading.Thread | None:
    """Start to make, in a thread, what builds for a target keep in the cache; None where nothing is
    kept, or this machine compiles for other processors. What fails is for the build to say.
    """
    if user_cache().folder is None or not can_compile(target):
        return None
    thread = threading.Thread(target=_make, args=(target,), name="tilewright-warm-up")
    thread.start()
    return thread


def _make(target: Target) -> None:
    with suppress(TilewrightError, OSError):
        common_header(target.using(()))
        pool_object()
