"""Programs of JAX's primitives as Graphs; jax is imported by who gives one."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
