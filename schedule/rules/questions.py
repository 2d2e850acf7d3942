"""What several rules leave open, asked in the same words.

The name of a question is what is asked and of which block: "tile of C". A question with one
candidate is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from ..schedule import Schedule
from .tiles import Tile

MOST_TILES = 12  # that a tuner may choose from

Choice = TypeVar("Choice")


def ask(sch: Schedule, name: str, candidates: Sequence[Choice], default: Choice) -> Choice:
    """One of the candidates, each of which counts once; `default`, what the model takes, is one."""
    listed = list(dict.fromkeys(candidates))
    if default not in listed:
        listed.insert(0, default)
    if len(listed) == 1:
        return default
    return sch.sample_categorical(listed, listed.index(default), name=name)


def ask_whether(sch: Schedule, name: str, default: bool) -> bool:
    """Yes or no."""
    return ask(sch, name, (False, True), default)


def ask_tile(sch: Schedule, block: str, tiles: Sequence[Tile]) -> Tile:
    """One of the first of the tiles of a block, the best by the model first."""
    listed = [tile.to_json() for tile in tiles[:MOST_TILES]]
    return Tile(*ask(sch, f"tile of {block}", listed, listed[0]))
