"""Numbers of bytes for people."""

from __future__ import annotations

_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))


def bytes_text(size: int) -> str:
    """A size with three digits and its unit; bytes with all."""
    name, unit = size_unit(size)
    return f"{size / unit:.3g} {name}" if unit > 1 else f"{size} {name}"


def size_unit(size: int) -> tuple[str, int]:
    """The name and the bytes of the largest unit that is not larger than a size."""
    return next((unit for unit in _UNITS if size >= unit[1]), _UNITS[-1])
