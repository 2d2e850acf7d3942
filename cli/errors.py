"""What the command line refuses, and the exit code of every error."""

from __future__ import annotations

from ..tir.errors import TilewrightError

OK, MISMATCH, USAGE, UNSUPPORTED, ENVIRONMENT = range(5)
INTERRUPTED = 130  # as a shell reports Ctrl-C

# class of an error, by name, so that no module is loaded to look an error up -> exit code; the
# most special class of an error that is listed decides
_CODES = {
    "CheckError": MISMATCH,
    "InternalError": MISMATCH,
    "PeerDiffers": MISMATCH,
    "VerifyError": MISMATCH,
    "CompileFailed": ENVIRONMENT,
    "CompilerNotFound": ENVIRONMENT,
    "DiskFull": ENVIRONMENT,
    "HostError": ENVIRONMENT,
    "LibraryError": ENVIRONMENT,
    "LogError": ENVIRONMENT,
    "NoDevice": ENVIRONMENT,
    "NvrtcNotFound": ENVIRONMENT,
    "PeerMissing": ENVIRONMENT,
    "ToolNotFound": ENVIRONMENT,
    "ModelFileError": USAGE,
    "OptionError": USAGE,
    "ModelError": UNSUPPORTED,
    "PeerFailed": UNSUPPORTED,
}
_USAGE_PREFIX = "shapes-"  # errors about what `--shapes` says, or should have said


class UsageError(TilewrightError, ValueError):
    """The arguments of a command have no meaning together, or name a file that is not what they
    say.
    """


def exit_code(error: TilewrightError) -> int:
    """The code that a command ends with when it fails with `error`."""
    if error.code.startswith(_USAGE_PREFIX):
        return USAGE
    names = (base.__name__ for base in type(error).__mro__)
    return next((_CODES[name] for name in names if name in _CODES), USAGE)
