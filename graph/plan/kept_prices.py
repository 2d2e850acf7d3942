"""Estimated prices of functions, kept from one process to the next.

A price is kept under what it depends on: the workload, the target, what rules may use, and the code
of tilewright itself. A function that cannot be scheduled has none, since the reason names what is
the user's.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence

from ...driver.code_digest import code_digest
from ...runtime.toolchain.cache import cache_key, user_cache
from ...runtime.version import tool_version
from ...tir.target.target import Target

PRICES = "prices"  # the kind of entries
_SECONDS = struct.Struct("<d")


class KeptPrices:
    """The prices of the user's cache for one kind of build."""

    def __init__(self, target: Target, *, strict: bool = False, allow: Sequence[str] = ()) -> None:
        """strict, allow: as a `Pricer` has them."""
        words = json.dumps([target.to_json(), strict, list(allow)], sort_keys=True)
        self._made_by = (words, tool_version(), code_digest())

    def get(self, key: str) -> float | None:
        """The estimated seconds of the workload with this key; None where none are kept."""
        data = user_cache().get(PRICES, cache_key(*self._made_by, key))
        if data is None or len(data) != _SECONDS.size:
            return None
        (seconds,) = _SECONDS.unpack(data)
        return float(seconds)

    def put(self, key: str, seconds: float) -> None:
        """Keep what a workload is estimated to take."""
        assert math.isfinite(seconds)
        user_cache().put(PRICES, cache_key(*self._made_by, key), _SECONDS.pack(seconds))
