"""Models: import, optimise, plan, lower to a Program."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

import time

LOADED = time.time()  # a source file that changed later may not be what runs in this process
