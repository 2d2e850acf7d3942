"""What a rule of an aten operator is: a function whose parameters, behind the writer, are those of
the operator's schema, with their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....tir.sizes import AnySize
from .writer import AtenValue

Result = AtenValue | AnySize | None | Sequence[AtenValue | None]
Rule = Callable[..., Any]  # a Result
