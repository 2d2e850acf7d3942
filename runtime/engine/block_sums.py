"""Sums that tell damage to large data as fast as memory is read.

The data is cut into blocks of 1 MiB, the last one filled up with zeros; a block is a matrix of
128 x 1,024 words of 64 bits. What is kept is the SHA-256 of the sums, modulo 2**64, of each row and
of each column, and of the number of bytes. One changed word, or any damage within the 8 KiB of a
row, such as a page that was never written, changes a column's sum; what is found no more is damage
whose differences cancel in every row and in every column that it touches. It is no defence against
somebody who changes data on purpose: neither is any sum that lies beside the data.
"""

from __future__ import annotations

import hashlib

import numpy as np

_ROWS, _COLUMNS = 128, 1024
_WORD = np.dtype("<u8")
_BLOCK = _ROWS * _COLUMNS * _WORD.itemsize  # bytes


class BlockSums:
    """The sums of data that comes in pieces of any size."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._rest = bytearray()  # of a block that is not whole yet
        self._bytes = 0

    def update(self, piece: bytes | memoryview) -> None:
        """Go on with the next bytes."""
        view = memoryview(piece)
        self._bytes += len(view)
        if self._rest:
            missing = _BLOCK - len(self._rest)
            self._rest += view[:missing]
            view = view[missing:]
        if len(self._rest) == _BLOCK:
            self._add(memoryview(self._rest))
            self._rest = bytearray()
        whole = len(view) // _BLOCK * _BLOCK
        for first in range(0, whole, _BLOCK):
            self._add(view[first : first + _BLOCK])
        self._rest += view[whole:]

    def hexdigest(self) -> str:
        """What tells the data so far; call it once, at the end."""
        if self._rest:
            self._add(memoryview(self._rest + bytes(_BLOCK - len(self._rest))))
        self._digest.update(self._bytes.to_bytes(8, "little"))
        return self._digest.hexdigest()

    def _add(self, block: memoryview) -> None:
        words = np.frombuffer(block, _WORD).reshape(_ROWS, _COLUMNS)
        for axis in (0, 1):
            sums: np.ndarray[tuple[int, ...], np.dtype[np.uint64]] = np.add.reduce(words, axis=axis)
            self._digest.update(sums.astype(_WORD, copy=False).data)


def block_sums(data: memoryview) -> str:
    """What tells these bytes, in hexadecimal."""
    sums = BlockSums()
    sums.update(data)
    return sums.hexdigest()
