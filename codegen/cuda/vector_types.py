"""The types of vectors that CUDA C loads and stores in one piece: those of CUDA with two and four
components, structs of ours with eight and sixteen.
"""

from __future__ import annotations

import re

from ...tir.dtype import DType
from ..text.lines import wrapped
from .dialect import CUDA

_NAMES = {
    "signed char": "char",
    "unsigned char": "uchar",
    "short": "short",
    "unsigned short": "ushort",
    "int": "int",
    "unsigned int": "uint",
    "long long": "longlong",
    "unsigned long long": "ulonglong",
    "float": "float",
    "double": "double",
}
BUILT_IN = tuple(f"{name}{lanes}" for name in _NAMES.values() for lanes in (2, 4))
_OURS = {
    f"tw_{_NAMES[kind]}{lanes}": (kind, lanes, lanes * size)
    for kind, size in (
        ("signed char", 1),
        ("unsigned char", 1),
        ("short", 2),
        ("unsigned short", 2),
    )
    for lanes in (8, 16)
    if lanes * size <= 16
}


def vector_type(dtype: DType) -> str:
    """The type of a vector of 2, 4, 8 or 16 lanes, of at most 16 bytes."""
    name = f"{_NAMES[CUDA.type_of(dtype.scalar)]}{dtype.lanes}"
    return name if dtype.lanes <= 4 else f"tw_{name}"


def component(lanes: int, lane: int) -> str:
    """What stands behind a vector for one of its lanes."""
    return f".{'xyzw'[lane]}" if lanes <= 4 else f".at[{lane}]"


def vector_maker(dtype: DType) -> str:
    """The function that makes such a vector of its components."""
    return _maker(vector_type(dtype))


def _maker(name: str) -> str:
    return f"tw_make_{name.removeprefix('tw_')}" if name in _OURS else f"make_{name}"


def vector_definitions(source: str) -> str:
    """What stands before the kernels of a source for the structs that it uses; empty for none."""
    used = set(re.findall(r"\w+", source))
    parts = []
    for name in _OURS:
        parts += [_struct(name)] if used & {name, _maker(name)} else []
        parts += [_function(name)] if _maker(name) in used else []
    return "\n".join(parts)


def _struct(name: str) -> str:
    kind, lanes, size = _OURS[name]
    return f"struct __align__({size}) {name} {{ {kind} at[{lanes}]; }};\n"


def _function(name: str) -> str:
    kind, lanes, _ = _OURS[name]
    names = [f"a{lane}" for lane in range(lanes)]
    given = wrapped([f"{kind} {item}" for item in names], "    ")
    return (
        f"{CUDA.inline} {name}\n{_maker(name)}({given})\n"
        f"{{\n    return {{{{{', '.join(names)}}}}};\n}}\n"
    )
