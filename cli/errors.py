"""Errors of the command line, and the exit code of every error."""

from __future__ import annotations

from ..tir.errors import TilewrightError

OK, MISMATCH, USAGE, UNSUPPORTED, ENVIRONMENT = range(5)
INTERRUPTED = 130  # as a shell reports Ctrl-C

# error class -> exit code. By name, so that no module is loaded for the lookup; the most derived
# class that is listed decides.
_CODES = {
    "CheckError": MISMATCH,
    "InternalError": MISMATCH,
    "PeerDiffers": MISMATCH,
    "VerifyError": MISMATCH,
    "CompileFailed": ENVIRONMENT,
    "CompilerNotFound": ENVIRONMENT,
    "DiskFull": ENVIRONMENT,
    "ExtensionError": ENVIRONMENT,
    "HostError": ENVIRONMENT,
    "LibraryError": ENVIRONMENT,
    "LogError": ENVIRONMENT,
    "NoDevice": ENVIRONMENT,
    "NvrtcNotFound": ENVIRONMENT,
    "OutputFileError": ENVIRONMENT,
    "PeerMissing": ENVIRONMENT,
    "SystemMissing": ENVIRONMENT,
    "ToolNotFound": ENVIRONMENT,
    "ModelFileError": USAGE,
    "NotALog": USAGE,
    "OptionError": USAGE,
    "ModelError": UNSUPPORTED,
    "PeerFailed": UNSUPPORTED,
    "SystemFailed": UNSUPPORTED,
}
# codes of errors about what was given: `--shapes`, `--constants`, data and budgets of a precision,
# a log that is no file to read, an output without a place
_USAGE_CODES = (
    "shapes-",
    "constants-",
    "accuracy-",
    "bytes-name",
    "calibrate-",
    "calibration-",
    "precision-name",
    "log-missing",
    "log-read",
    "log-kind",
    "output-folder",
    "output-no-folder",
    "output-parent",
)


class UsageError(TilewrightError, ValueError):
    """The arguments of a command contradict each other, or name a file of the wrong kind."""


def exit_code(error: TilewrightError) -> int:
    """The exit code of a command that fails with `error`."""
    if error.code.startswith(_USAGE_CODES):
        return USAGE
    names = (base.__name__ for base in type(error).__mro__)
    return next((_CODES[name] for name in names if name in _CODES), USAGE)


def error_json(error: TilewrightError) -> dict[str, object]:
    """An error as `--json` prints it."""
    where = error.where() if callable(error.where) else error.where
    return {
        "kind": type(error).__name__,
        "code": error.code,
        "message": error.message,
        "where": where or "",
        "notes": list(error.notes),
        "hints": list(error.hints),
        "exit": exit_code(error),
    }
