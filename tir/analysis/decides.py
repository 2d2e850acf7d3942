"""Does a function make a great difference of a small one?"""

from __future__ import annotations

from ..expr import Call, Cast, Compare
from ..func import PrimFunc
from ..intrinsics import FLOOR, ROUND
from ..visit import walk


def decides(func: PrimFunc) -> bool:
    """Whether a function compares floats, or makes whole numbers of them."""
    for node in walk(func.body):
        match node:
            case Compare() if node.a.dtype.is_float:
                return True
            case Cast(value, kind) if value.dtype.is_float and not kind.is_float:
                return True
            case Call(intrinsic, _) if intrinsic in (FLOOR, ROUND):
                return True
    return False
