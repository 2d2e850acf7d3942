"""What becomes of a model that may crash or hang: it is tried in a process of its own."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from onnx import ModelProto

from ...driver.fuzz.session import FuzzWorker
from ...runtime.arrays import Array
from .setting import EngineSetting

COMMAND = ("-m", "tilewright.graph.verification.worker")  # what Python runs


class ModelTrial(Protocol):
    """Tries models."""

    def outcome(self, model: ModelProto, inputs: Mapping[str, Array]) -> str:
        """What became of a model, in a few words that are the same for the same failure."""

    def is_failure(self, outcome: str) -> bool:
        """Whether this is a failure."""

    def stop(self) -> None:
        """End what was started."""


class EngineTrial:
    """Compiles models in a worker, and compares them with another system; None: only compiles."""

    def __init__(self, setting: EngineSetting, against: str | None, seconds: float) -> None:
        self._setting, self._against, self._seconds = setting, against, seconds
        self._worker = FuzzWorker(COMMAND)
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-")

    def outcome(self, model: ModelProto, inputs: Mapping[str, Array]) -> str:
        """ "equal", "differs", "error CODE", "raised TYPE", or how the process ended."""
        path, given = Path(self._folder.name, "model.onnx"), Path(self._folder.name, "in.npz")
        path.write_bytes(model.SerializeToString())
        with given.open("wb") as file:
            np.savez(file, **dict(inputs))  # type: ignore[arg-type]  # its stub has other keywords
        setting, bound = self._setting.closed_by(model), self._setting.bound
        request: dict[str, object] = {
            "model": str(path),
            "inputs": str(given),
            "against": self._against,
            "target": None if setting.target is None else str(setting.target),
            "shapes": dict(setting.shapes or {}),
            "bound": [bound.atol, bound.rtol, bound.tolerance],
        }
        answer = self._worker.ask(request, self._seconds)
        return answer if isinstance(answer, str) else str(answer[0]["outcome"])

    def is_failure(self, outcome: str) -> bool:
        """Whether it is neither equal nor something that the other system cannot run."""
        return outcome != "equal" and not outcome.startswith("error verify-system")

    def stop(self) -> None:
        """End the worker."""
        self._worker.stop()
        self._folder.cleanup()


class CommandTrial:
    """Runs a line of the shell for each model."""

    def __init__(self, command: str, seconds: float) -> None:
        self._command, self._seconds = command, seconds
        self._folder = tempfile.TemporaryDirectory(prefix="tilewright-")

    def outcome(self, model: ModelProto, inputs: Mapping[str, Array]) -> str:
        """The status of the command, its signal, or that it did not end."""
        path = Path(self._folder.name, "model.onnx")
        path.write_bytes(model.SerializeToString())
        line = self._command.replace("{model}", shlex.quote(str(path)))
        process = subprocess.Popen(
            ["sh", "-c", line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that all that it starts can be ended
        )
        try:
            code = process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            return f"no end within {self._seconds:.0f} s"
        finally:
            _end(process)
        return f"status {code}" if code >= 0 else f"crashed: {signal.Signals(-code).name}"

    def is_failure(self, outcome: str) -> bool:
        """Whether the command ended otherwise than with 0."""
        return outcome != "status 0"

    def stop(self) -> None:
        """Remove the folder of the models."""
        self._folder.cleanup()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with all of its group."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
