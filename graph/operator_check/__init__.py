"""What an operator says of itself, held against what it does."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
