"""Programs that torch holds as graphs of FX: what torch.export and torch.compile make."""

if not __name__.startswith("tilewright."):
    raise ImportError(
        f"'{__name__}' is a part of tilewright: import tilewright.{__name__}, not {__name__}"
    )
