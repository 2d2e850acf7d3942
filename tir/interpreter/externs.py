"""What the interpreter does for the call of a C function: the reference, on whole tensors."""

from __future__ import annotations

import numpy as np

from ..buffer import Buffer
from ..stmt import Extern
from .checks import Cells

Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def plain(extern: Extern, _: int, *flat: Array) -> None:
    """Compute the outputs; `flat`: the elements of the inputs, then of the outputs."""
    count = len(extern.inputs)
    for array, made in zip(flat[count:], _made(extern, flat[:count]), strict=True):
        array[...] = made.reshape(-1)


def watched(extern: Extern, site: int, *cells: Cells) -> None:
    """As `plain`, where every element that is read or written is watched."""
    count = len(extern.inputs)
    for read in cells[:count]:
        for place in range(len(read.data)):
            read.read_flat(site, place)
    made = _made(extern, [read.data for read in cells[:count]])
    for written, array in zip(cells[count:], made, strict=True):
        for place, value in enumerate(array.reshape(-1)):
            written.write_flat(site, place, value, True)


def _made(extern: Extern, flat: tuple[Array, ...] | list[Array]) -> list[Array]:
    def shaped(buffer: Buffer, array: Array) -> Array:
        result: Array = array.reshape(buffer.shape)
        return result

    inputs = [shaped(buffer, array) for buffer, array in zip(extern.inputs, flat, strict=True)]
    return extern.function.compute(inputs, [(b, b.type.numpy) for b in extern.outputs])
