"""Single operators on usual sizes, family by family."""

from __future__ import annotations

from .families import FAMILIES as FAMILIES
