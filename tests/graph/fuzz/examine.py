"""What comes of a model that nobody trusts: imported, or compiled for the interpreter, within ten
seconds of processor time and two gigabytes more than Python has already taken.

Only errors that say what is wrong with the model may come out. `python -m
tests.graph.fuzz.examine` answers one line of JSON for each it is given: {"seed": 7}, or {"file":
"..."}, with "compile": true.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from types import FrameType

from onnx import ModelProto

from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.tir.errors import InternalError, TilewrightError

from .mutate import mutant
from .seeds import add_folder

SECONDS = 10.0  # of processor time
BYTES = 2 << 30  # of addresses, beside those of the process before the first model


class Overtime(BaseException):
    """A case took too long."""


def examine(model: ModelProto | bytes, *, build: bool) -> dict[str, object]:
    """The outcome: "accepted", "refused" with its code, or a failure: what, and where."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        if build:
            compile(model, "python", verify="rewrites", cache=False)
        else:
            import_onnx(model)
    except InternalError as error:
        return _failure("internal", error)
    except MemoryError as error:  # one that we tell of is still one that nobody foresaw
        return _failure("memory", error.__cause__ or error)
    except TilewrightError as error:
        str(error)
        return {"outcome": "refused", "code": error.code}
    except Overtime as error:
        return _failure("slow", error)
    except Exception as error:
        return _failure("foreign", error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return {"outcome": "accepted"}


def _failure(kind: str, error: BaseException) -> dict[str, object]:
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    return {"outcome": kind, "message": text, "where": " > ".join(places)}


def _overtime(number: int, frame: FrameType | None) -> None:
    raise Overtime


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Answer until there are no more lines."""
    for folder in sys.argv[1:]:
        add_folder(Path(folder))
    warnings.simplefilter("error")  # a warning of NumPy's is not meant for who brings a model
    signal.signal(signal.SIGPROF, _overtime)
    examine(mutant(0), build=True)  # loads what a build needs
    if Path("/proc/self/statm").exists():
        _limit_memory()
    for line in sys.stdin:
        request = json.loads(line)
        began = time.process_time()
        model = Path(request["file"]).read_bytes() if "file" in request else mutant(request["seed"])
        answer = examine(model, build=request["compile"])
        answer["seconds"] = time.process_time() - began
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
