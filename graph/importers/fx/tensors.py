"""Tensors of torch as arrays. torch is not imported: who has a tensor has imported it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ....tir.dtype import NAMES
from ...errors import ModelError
from ...types import Array, numpy_type, owned


def torch() -> Any:
    """The module, which the caller of a function with tensors has imported."""
    return sys.modules["torch"]


def dtype_name(dtype: object) -> str:
    """Our name of an element type of torch: "float32"."""
    return str(dtype).removeprefix("torch.")


class ArrayReader:
    """Arrays of tensors: tied ones, and views of the same elements, have one."""

    def __init__(self) -> None:
        self._known: dict[object, Array] = {}

    def read(self, what: str, tensor: Any) -> Array:
        """A copy of the elements, which a model may go on to change. Raises: ModelError."""
        _check_plain(what, tensor)
        storage = tensor.untyped_storage().data_ptr(), tensor.storage_offset()
        key = (*storage, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device)
        if key not in self._known:
            self._known[key] = owned(np.array(shown(tensor.detach().cpu()), order="C"))
        return self._known[key]


def shown(tensor: Any) -> Array:
    """The elements of a tensor of the CPU that needs no gradient, without a copy."""
    array: Array
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    try:
        array = tensor.numpy()
    except TypeError:  # NumPy has no such type; its bits then
        bits = getattr(torch(), f"uint{tensor.element_size() * 8}")
        array = tensor.view(bits).numpy().view(numpy_type(dtype_name(tensor.dtype)))
    return array


def _way_out(tensor: Any) -> str:
    """How a tensor becomes a dense one."""
    if type(tensor).__module__.startswith("torchao."):
        return "torchao.utils.unwrap_tensor_subclass(model) makes dense tensors of its weights."
    if tensor.device.type == "meta":
        return "a model on 'meta' gets its weights from model.to_empty() and load_state_dict."
    if tensor.layout != torch().strided:
        return "tensor.to_dense() makes one."
    return "model.to(torch.float32) has elements of a type that is known."


def _check_plain(what: str, tensor: Any) -> None:
    """Raises: ModelError for what is no dense tensor with elements."""
    module, name = torch(), type(tensor).__name__
    plain = name in ("Tensor", "Parameter", "Buffer") and tensor.layout == module.strided
    named = dtype_name(tensor.dtype)
    if not plain or tensor.device.type == "meta" or named not in (*NAMES, *_OF_NUMPY):
        where = " on the device 'meta'" if tensor.device.type == "meta" else ""
        raise ModelError(
            f"model: {what} is a {name} of {named}, {tensor.layout}{where}; expected a dense "
            "tensor with elements.",
            code="torch-tensor",
            hints=(_way_out(tensor),),
        )


_OF_NUMPY = "complex64", "complex128"  # arrays of them are made; the importer says what it reads
