"""Programs of torch.export that exist as objects: what an archive of them holds.

torch is not imported here: who holds such an object has imported it.
"""

from __future__ import annotations

import io
import sys
from typing import Any


def archived(model: object) -> object:
    """The bytes of the archive of an ExportedProgram; any other model as it is."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.export.ExportedProgram):
        return model
    file = io.BytesIO()
    torch.export.save(model, file)
    return file.getvalue()
