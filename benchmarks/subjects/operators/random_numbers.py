"""Operators whose results are drawn."""

from __future__ import annotations

from .subject import Draw, Subject, known, normal, uniform


def _drawn(name: str, body: str, **draws: Draw) -> Subject:
    return Subject(name, body, draws, 17, is_random=True)


RANDOM_NUMBERS = (
    _drawn("RandomNormal 128x768", "y = RandomNormal <shape=[128, 768]> ()"),
    _drawn("RandomUniform 128x768", "y = RandomUniform <shape=[128, 768]> ()"),
    _drawn("RandomNormalLike 1x4x64x64", "y = RandomNormalLike(x)", x=normal(1, 4, 64, 64)),
    _drawn("Bernoulli 128x768", "y = Bernoulli(x)", x=uniform(0.0, 1.0, 128, 768)),
    _drawn(
        "Dropout 128x768",
        "y = Dropout(x, p, t)",
        x=uniform(0.5, 1.5, 128, 768),
        p=known(0.1),
        t=known(True, "bool"),
    ),
    _drawn("Multinomial 1 of 1x50000", "y = Multinomial <sample_size=1> (x)", x=normal(1, 50000)),
    _drawn("Multinomial 100 of 8x1000", "y = Multinomial <sample_size=100> (x)", x=normal(8, 1000)),
)
