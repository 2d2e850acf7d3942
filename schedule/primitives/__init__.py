"""The primitives: each a function PrimFunc -> Rewrite that resolves, asks legality, builds and
returns.
"""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

from .annotate import annotate
from .cache import cache_read, cache_write
from .compute_at import compute_at, reverse_compute_at
from .inline import compute_inline, reverse_compute_inline
from .kinds import parallel, unroll, vectorize
from .layout import pad, transform_layout
from .loops import fuse, reorder, split
from .padding import decompose_padding
from .prefetch import prefetch
from .reduction import decompose_reduction
from .rfactor import rfactor
from .stage import stage

__all__ = [
    "annotate",
    "cache_read",
    "cache_write",
    "compute_at",
    "compute_inline",
    "decompose_padding",
    "decompose_reduction",
    "fuse",
    "pad",
    "parallel",
    "prefetch",
    "reorder",
    "reverse_compute_at",
    "reverse_compute_inline",
    "rfactor",
    "split",
    "stage",
    "transform_layout",
    "unroll",
    "vectorize",
]
