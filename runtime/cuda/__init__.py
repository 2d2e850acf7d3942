"""From CUDA C to a running kernel: NVRTC, what a cubin holds, the driver."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
