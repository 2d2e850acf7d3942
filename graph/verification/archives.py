"""PyTorch as the other system of an archive of torch.export. It opens the whole archive in its own
way: pickled parts, too.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...runtime.arrays import Array
from .systems import ModelRun, SystemMissing, telling

NAME = "torch"


def torch_title() -> str:
    """The name and version of PyTorch. Raises: SystemMissing."""
    if find_spec(NAME) is None:
        raise SystemMissing(
            "verify: 'torch', which runs archives of torch.export, is not installed.",
            code="verify-torch-missing",
            hints=(
                "python -m pip install torch",
                "tw.compile(model).verify() compares an engine with the reference in float64.",
            ),
        )
    return f"torch {version(NAME)}"


def load_archive(model: str | os.PathLike[str] | bytes, outputs: Sequence[str]) -> ModelRun:
    """What computes the outputs of an archive, which have these names, in PyTorch.

    Raises: SystemFailed, in runs too.
    """
    import torch  # an optional dependency
    from torch.utils import _pytree as trees

    title = torch_title()
    with telling(title):
        file = io.BytesIO(model) if isinstance(model, bytes) else os.fspath(model)
        exported: Any = torch.export.load(file)
        module, names = exported.module(), exported.graph_signature.user_inputs

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        with telling(title), torch.no_grad():
            flat = [torch.from_numpy(np.array(inputs[name])) for name in names]
            positional, named = trees.tree_unflatten(flat, exported.call_spec.in_spec)
            found = trees.tree_leaves(module(*positional, **named))
            arrays = [value.detach().numpy() for value in found]
            return dict(zip(outputs, arrays, strict=True))

    return run
