"""What other packages add: operators, passes and importers, where they come from, how found."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
