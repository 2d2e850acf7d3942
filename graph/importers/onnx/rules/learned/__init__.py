"""Import rules of the domain ai.onnx.ml: models that were fitted to data, and what prepares it."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
