"""torch.compile(model, backend="tilewright"), and what it made of a function: `explain`."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )

from .dynamo import tilewright as backend
from .explain import explain

__all__ = ["backend", "explain"]
