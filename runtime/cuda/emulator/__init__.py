"""CUDA C on the CPU: a device emulated thread by thread, which reports what it sees."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
