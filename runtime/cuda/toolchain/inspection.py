"""What a cubin will need and do, read by NVIDIA's own tools: no device is asked.

`cuobjdump` says what each kernel takes in some milliseconds, so that a candidate that spills can be
dropped before it is timed; `nvdisasm` says which instructions it is made of.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ....tir.errors import TargetError, TilewrightError
from .compile import Cubin
from .toolkit import INSTALL_HINT, find_tool

_USAGE = re.compile(r"^ Function (\S+):\n\s+(.*)$", re.MULTILINE)
# from sm_90 on the system keeps this much of the shared memory of a block that uses some, and
# cuobjdump counts it with the kernel's own
_RESERVED_SHARED_BYTES, _RESERVED_SINCE = 1024, 90


class ToolNotFound(TilewrightError, OSError):
    """A tool of NVIDIA's that reads cubins is not installed here."""


class ToolFailed(TilewrightError, RuntimeError):
    """A tool of NVIDIA's could not read a cubin."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What a kernel takes: registers of a thread; static shared memory of a block; local memory of
    a thread, on its stack (what spilled, arrays indexed at run time) and apart from it.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    local_bytes: int


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """How often each instruction stands in a kernel, by its name with all parts: "LDG.E.128"."""

    counts: Mapping[str, int]

    def count(self, *names: str) -> int:
        """How many are one of `names` or such a one with more parts: "LDG" counts "LDG.E.128",
        and not "LDGSTS.E".
        """
        prefixes = tuple(f"{name}." for name in names)
        return sum(n for name, n in self.counts.items() if f"{name}.".startswith(prefixes))

    @property
    def total(self) -> int:
        """All instructions but the padding after the last."""
        return sum(self.counts.values())


def resources(cubin: Cubin) -> dict[str, Resources]:
    """What each kernel of a cubin takes. Raises: ToolNotFound, ToolFailed; TargetError for PTX."""
    said = _run("cuobjdump", cubin, "--dump-resource-usage")
    number = re.search(r"\d+", cubin.arch)
    reserves = number is not None and int(number[0]) >= _RESERVED_SINCE
    found = {}
    for name, usage in _USAGE.findall(said):
        values = {key: int(value) for key, value in re.findall(r"([A-Z]+):(\d+)", usage)}
        shared = values["SHARED"]
        if reserves and shared:
            shared -= _RESERVED_SHARED_BYTES
        found[name] = Resources(values["REG"], shared, values["STACK"], values["LOCAL"])
    return found


def instruction_mix(cubin: Cubin) -> dict[str, InstructionMix]:
    """The instructions of each kernel of a cubin.

    Raises: ToolNotFound, ToolFailed; TargetError for PTX.
    """
    _, functions = json.loads(_run("nvdisasm", cubin, "--emit-json", "--print-code"))
    mixes = {}
    for function in functions:
        counts = Counter(one["opcode"] for one in function["sass-instructions"])
        del counts["NOP"]
        mixes[function["function-name"]] = InstructionMix(dict(counts))
    return mixes


def disassembly(cubin: Cubin) -> str:
    """The machine code of a cubin, as text.

    Raises: ToolNotFound, ToolFailed; TargetError for PTX.
    """
    return _run("nvdisasm", cubin, "--print-code")


def inspector(name: str) -> Path:
    """A tool of NVIDIA's that reads cubins. Raises: ToolNotFound."""
    tool = find_tool(name)
    if tool is None:
        raise ToolNotFound(
            f"inspect: NVIDIA's {name} is not here; looked for the nvidia-cuda-{name} wheel, "
            "$CUDA_HOME, $CUDA_PATH and on the PATH.",
            code="inspect-tool-missing",
            hints=(INSTALL_HINT,),
        )
    return tool


def _run(name: str, cubin: Cubin, *options: str) -> str:
    """What a tool says of a cubin."""
    if cubin.is_ptx:
        raise TargetError(
            f"inspect: '{cubin.name}' is PTX for {cubin.arch}; only machine code can be inspected.",
            code="inspect-ptx",
            hints=(f"compile it for {cubin.arch.replace('compute', 'sm')}.",),
        )
    tool = inspector(name)
    with tempfile.NamedTemporaryFile(prefix="tilewright-", suffix=".cubin") as file:
        file.write(cubin.image)
        file.flush()
        done = subprocess.run(
            [str(tool), *options, file.name],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip() or "it said nothing"
            raise ToolFailed(
                f"inspect: {tool} refused the cubin of '{cubin.name}': "
                f"{said.replace(file.name, 'it')}.",
                code="inspect-tool-failed",
            )
    return done.stdout
