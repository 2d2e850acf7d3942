"""Search over a rule's decisions, measured in workers of their own, kept in a log that lasts."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
