"""DLPack: a tensor's memory, handed from one library to another without a copy.

A tensor travels in a capsule of CPython's with a C structure in it, old or, from DLPack 1.0 on,
versioned. The one who takes it renames the capsule, and later calls the structure's deleter; a
capsule that nobody took deletes by itself.

Both may happen in any thread, at the end of the process, and while an error is on its way, where
Python code has no place. So our capsules are NumPy's, of an array that is never read, in which the
device and the dtype are put right.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # kinds of devices

_VERSION = (1, 0)
_READ_ONLY = 1  # a flag of the versioned structure
_LEGACY, _VERSIONED = b"dltensor", b"dltensor_versioned"
_TAKEN = {_LEGACY: b"used_dltensor", _VERSIONED: b"used_dltensor_versioned"}
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_KINDS = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_EXTENDED: dict[np.dtype[np.generic], int] = {
    np.dtype(ml_dtypes.bfloat16): _BFLOAT,
    np.dtype(ml_dtypes.float8_e4m3fn): 10,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 11,
    np.dtype(ml_dtypes.float8_e5m2): 12,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 13,
}


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Legacy(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True, slots=True)
class DlpackTensor:
    """What a capsule says.

    device: its kind and number. strides: in items; None: row-major without gaps. owner: keeps the
    memory.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: np.dtype[np.generic]
    device: tuple[int, int]
    read_only: bool
    owner: object


class NoCapsule(Exception):
    """What is to be taken is no capsule of a tensor, or is used up."""


class UnknownType(Exception):
    """A dtype that DLPack, or NumPy, does not have."""


def export(tensor: DlpackTensor, max_version: tuple[int, int] | None) -> object:
    """A capsule of a tensor, for one who knows DLPack up to `max_version`; None: before 1.0.

    Raises: UnknownType.
    """
    code = _code(tensor.dtype)
    array = np.asarray(_Shown(tensor))
    capsule: object = (
        array.__dlpack__() if max_version is None else array.__dlpack__(max_version=max_version)
    )
    managed = _structure(capsule)
    managed.tensor.device = _Device(*tensor.device)
    managed.tensor.dtype = _Type(code, tensor.dtype.itemsize * 8, 1)
    return capsule


class _Shown:
    """A tensor as NumPy sees it: items of its size, and kept by the array that is made of it."""

    def __init__(self, tensor: DlpackTensor) -> None:
        size = tensor.dtype.itemsize
        strides = tensor.strides
        self.owner = tensor.owner
        self.__array_interface__ = {
            "data": (tensor.pointer, tensor.read_only),
            "shape": tensor.shape,
            "strides": None if strides is None else tuple(step * size for step in strides),
            "typestr": f"<{'c' if tensor.dtype.kind == 'c' else 'u'}{size}",
            "version": 3,
        }


def take(capsule: object) -> DlpackTensor:
    """The tensor of a capsule, which is used up by it.

    Raises: UnknownType; NoCapsule.
    """
    managed = _structure(capsule)
    tensor = managed.tensor
    dtype = _dtype(tensor.dtype)
    versioned = isinstance(managed, _Versioned)
    _rename(capsule, _TAKEN[_VERSIONED if versioned else _LEGACY])
    return DlpackTensor(
        pointer=(tensor.data or 0) + tensor.offset,
        shape=tuple(tensor.shape[: tensor.rank]),
        strides=tuple(tensor.strides[: tensor.rank]) if tensor.strides else None,
        dtype=dtype,
        device=(tensor.device.kind, tensor.device.index),
        read_only=versioned and bool(managed.flags & _READ_ONLY),
        owner=_Taken(ctypes.addressof(managed), managed.deleter),
    )


class _Taken:
    """Another library's tensor; its deleter is called when nobody holds it."""

    def __init__(self, address: int, deleter: Any) -> None:
        if deleter:  # not NULL
            weakref.finalize(self, deleter, address)


def _structure(capsule: object) -> Any:
    """What is in a capsule. Raises: NoCapsule."""
    for name, kind in ((_VERSIONED, _Versioned), (_LEGACY, _Legacy)):
        if _is_valid(capsule, name):
            return kind.from_address(_pointer(capsule, name))
    raise NoCapsule


def _code(dtype: np.dtype[np.generic]) -> int:
    code = _EXTENDED.get(dtype, _KINDS.get(dtype.kind))
    if code is None or not dtype.isnative:
        raise UnknownType(dtype.name)
    return code


def _dtype(kind: _Type) -> np.dtype[np.generic]:
    for extended, code in _EXTENDED.items():
        if (kind.code, kind.bits, kind.lanes) == (code, extended.itemsize * 8, 1):
            return extended
    for letter, code in _KINDS.items():
        if kind.code == code and kind.bits % 8 == 0 and kind.lanes == 1:
            return np.dtype(f"{letter}{kind.bits // 8}")
    raise UnknownType(f"code {kind.code}, {kind.bits} bits, {kind.lanes} lanes")


def _python(name: str, result: object, *arguments: object) -> Any:
    """A function of CPython's own interface."""
    function = ctypes.pythonapi[name]  # apart from the attribute, which every user shares
    function.restype = result  # type: ignore[assignment]
    function.argtypes = arguments  # type: ignore[assignment]
    return function


_is_valid = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
