"""Groups of nodes as one kernel: what it fuses, its function, the algorithms that compute it."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
