"""What a rule of an aten operator is: a function whose parameters, behind the writer, are those of
the operator's schema, with their defaults, but for those that change no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]  # gives a tensor, a number, several of these, or None
# parameters of schemas that say where and how elements are kept, how a gradient is computed, or
# which of several ways is taken: no rule has them
NO_VALUES = frozenset(
    {
        "compute_mode",
        "copy",
        "cudnn_enable",
        "cudnn_enabled",
        "device",
        "implicit",
        "layout",
        "memory_format",
        "non_blocking",
        "path",
        "pin_memory",
        "scale_grad_by_freq",
        "sparse",
        "sparse_grad",
    }
)
