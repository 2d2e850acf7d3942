"""The primitives: each a function PrimFunc -> Rewrite that resolves, asks legality and builds."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

from .align import storage_align as storage_align
from .annotate import annotate as annotate
from .axes import join_axes as join_axes
from .axes import split_axis as split_axis
from .bind import bind as bind
from .cache import cache_read as cache_read
from .cache import cache_write as cache_write
from .cache import reindex as reindex
from .compute_at import compute_at as compute_at
from .compute_at import reverse_compute_at as reverse_compute_at
from .inline import compute_inline as compute_inline
from .inline import reverse_compute_inline as reverse_compute_inline
from .kinds import parallel as parallel
from .kinds import unroll as unroll
from .kinds import vectorize as vectorize
from .layout import pad as pad
from .layout import transform_layout as transform_layout
from .loops import add_unit_loop as add_unit_loop
from .loops import fuse as fuse
from .loops import reorder as reorder
from .loops import split as split
from .merge import merge as merge
from .narrow import narrow as narrow
from .pad_axes import pad_axes as pad_axes
from .padding import decompose_padding as decompose_padding
from .partition import loop_partition as loop_partition
from .prefetch import prefetch as prefetch
from .reduction import decompose_reduction as decompose_reduction
from .rfactor import rfactor as rfactor
from .rolling import rolling_buffer as rolling_buffer
from .scope import set_scope as set_scope
from .stage import stage as stage
from .swizzle import swizzle as swizzle
from .tensorize import blockize as blockize
from .tensorize import tensorize as tensorize
