"""Rules of the functions of angles and of hyperbolic functions."""

from __future__ import annotations

from ....ops import angles, hyperbolic
from .rule import ImportRule, plain

RULES: dict[str, ImportRule] = {
    "Acos": ImportRule((7, 22), (), plain(angles.Acos())),
    "Acosh": ImportRule((9, 22), (), plain(hyperbolic.Acosh())),
    "Asin": ImportRule((7, 22), (), plain(angles.Asin())),
    "Asinh": ImportRule((9, 22), (), plain(hyperbolic.Asinh())),
    "Atan": ImportRule((7, 22), (), plain(angles.Atan())),
    "Atanh": ImportRule((9, 22), (), plain(hyperbolic.Atanh())),
    "Cos": ImportRule((7, 22), (), plain(angles.Cos())),
    "Cosh": ImportRule((9, 22), (), plain(hyperbolic.Cosh())),
    "Sin": ImportRule((7, 22), (), plain(angles.Sin())),
    "Sinh": ImportRule((9, 22), (), plain(hyperbolic.Sinh())),
    "Tan": ImportRule((7, 22), (), plain(angles.Tan())),
}
