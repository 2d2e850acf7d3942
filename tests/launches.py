"""Launches whose grid and block lie along one axis."""

from __future__ import annotations

from tilewright.codegen.cuda.artifact import KernelLaunch


def flat(
    kernel: str, blocks: int, threads: int, arguments: tuple[str, ...], shared_bytes: int = 0
) -> KernelLaunch:
    """So many blocks of so many threads."""
    return KernelLaunch(kernel, (blocks, 1, 1), (threads, 1, 1), arguments, shared_bytes)
