"""The primitives: each a function PrimFunc -> Rewrite that resolves, asks legality and builds, and
its declaration, from which it is recorded, replayed and drawn.
"""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
