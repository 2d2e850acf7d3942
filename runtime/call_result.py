"""What a call of a kernel or an engine gives, for type checkers: one array, unless it is said that
there are several.

    kernel = tw.build(matmul)                                      # kernel(a) is an array
    best: tw.Kernel[tuple[Array, Array]] = tw.build(argmax)        # best(a) is two
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # Python has defaults of type variables since 3.13
    import numpy.typing as npt
    from typing_extensions import TypeVar

    CallResult = TypeVar("CallResult", covariant=True, default=npt.NDArray[Any])
else:
    from typing import TypeVar

    CallResult = TypeVar("CallResult", covariant=True)
