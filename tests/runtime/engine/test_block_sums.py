"""Sums of large data: the same however it is cut, another one for every kind of damage."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.runtime.engine.block_sums import BlockSums, block_sums

BLOCK = 1 << 20
DATA = np.random.default_rng(0).integers(0, 256, 2 * BLOCK + 777, np.uint8).tobytes()
PAGE = 4096


def sums(data: bytes | bytearray) -> str:
    return block_sums(memoryview(data))


def test_pieces_of_any_size_have_the_sums_of_the_whole() -> None:
    rng = random.Random(0)
    for largest in (9, 5000, 1 << 21):
        data = DATA[: 400 * largest]
        together = BlockSums()
        place = 0
        while place < len(data):
            size = rng.randint(0, largest)
            together.update(data[place : place + size])
            place += size
        assert together.hexdigest() == sums(data)


def test_a_changed_bit_changes_them() -> None:
    rng = random.Random(1)
    found = {sums(DATA)}
    for _ in range(20):
        data = bytearray(DATA)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        found.add(sums(data))
    assert len(found) == 21


@pytest.mark.parametrize("pages", [1, 3, 256])
def test_pages_that_were_never_written_change_them(pages: int) -> None:
    data = bytearray(DATA)
    data[7 * PAGE : (7 + pages) * PAGE] = bytes(pages * PAGE)
    assert sums(data) != sums(DATA)


@pytest.mark.parametrize("distance", [1, 2, 256])
def test_pages_that_changed_places_change_them(distance: int) -> None:
    data = bytearray(DATA)
    there = distance * PAGE
    data[:PAGE], data[there : there + PAGE] = DATA[there : there + PAGE], DATA[:PAGE]
    assert sums(data) != sums(DATA)


def test_zeros_at_the_end_count() -> None:
    assert len({sums(b""), sums(bytes(1)), sums(bytes(8)), sums(bytes(BLOCK))}) == 4
