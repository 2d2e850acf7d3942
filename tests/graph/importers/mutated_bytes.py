"""Bytes of a file that are damaged at random."""

from __future__ import annotations

import random


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bytes overwritten, cut out or doubled."""
    made = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        start = rng.randrange(len(made))
        end = min(len(made), start + rng.choice((1, 1, 1, 4, 64)))
        match rng.randrange(4):
            case 0:
                made[start:end] = rng.randbytes(end - start)
            case 1:
                made[start] ^= 1 << rng.randrange(8)
            case 2:
                del made[start:end]
            case _:
                made[start:start] = made[start:end]
    return bytes(made)
