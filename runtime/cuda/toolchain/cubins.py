"""Cubins of many sources, compiled while others are still being written."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from ...machine.host import allowed_cpus
from .compile import Cubin, compile_cuda
from .nvrtc import find_nvrtc


class Cubins:
    """Cubins for one architecture, a thread for each CPU.

    with Cubins("sm_90a") as cubins:
        cubins.add(source, name)
        first, *others = cubins.made()

    Leaving it early waits for what runs and drops the rest.
    """

    def __init__(self, arch: str) -> None:
        """Raises: NvrtcNotFound."""
        find_nvrtc()
        self._arch = arch
        self._workers = ThreadPoolExecutor(max_workers=allowed_cpus())
        self._cubins: list[Future[Cubin]] = []

    def __enter__(self) -> Cubins:
        return self

    def __exit__(self, *error: object) -> None:
        self._workers.shutdown(cancel_futures=True)

    def add(self, source: str, name: str) -> None:
        """Compile a source, some time before `made` returns."""
        self._cubins.append(self._workers.submit(compile_cuda, source, self._arch, name=name))

    def made(self) -> tuple[Cubin, ...]:
        """The cubins, in the order of their sources. Raises: CompileFailed, TargetError."""
        return tuple(future.result() for future in self._cubins)
