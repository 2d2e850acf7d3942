"""The file of an engine, `.twe`: a zip without compression, whose weights are used where they lie.

    manifest.json        format, requirements, and the bytes of every other section with their
                         SHA-256, or, of weights, their sums (see block_sums.py)
    program.json         what the engine is: artifact, reports, memory plan
    weights.safetensors  every constant that a run reads, once
    source/<n>.c         the generated sources, of a GPU source/<n>.cu
    binary/model.so      the compiled object          } of a CPU
    binary/pool.so       the thread pool's            }
    binary/<n>.cubin     the code of each source, of a GPU
    plain.json           the program before schedules, to build from    } with keep_weights
    reference.json       the model as imported, to verify against       }
    kept.safetensors     their weights, as far as no run reads them     }
    variant/<n>/...      the same of the variant for the sizes number <n>, but for the weights

Nothing in it is a pickle. Loading checks bounds, hashes and sums, writes no file of its own and
needs no compiler. Only the sums of kept.safetensors wait until somebody asks for what lies there: a
rebuild, `verify` or `save`. But loading loads code: a file is as trustworthy as where it came from.
While an engine is in use its file may be replaced, but must not be changed in place.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from ...tir.errors import TilewrightError
from ...tir.target.target import covers

FORMAT = 6  # of the file; a newer one is refused
READABLE = (5, FORMAT)  # what 5 has not is engines for a GPU
ABI = 1  # of the compiled entries; another one does not fit

MANIFEST, PROGRAM, WEIGHTS = "manifest.json", "program.json", "weights.safetensors"
BINARY, POOL = "binary/model.so", "binary/pool.so"
PLAIN, REFERENCE, KEPT = "plain.json", "reference.json", "kept.safetensors"
VARIANTS = "variants"  # the field of program.json that says what they are
SUMMED = (WEIGHTS, KEPT)  # sections that are told by their sums, the others by their SHA-256


class EngineFileError(TilewrightError, ValueError):
    """A file is no engine, is damaged, or does not fit this machine."""


class EngineFileMissing(EngineFileError, FileNotFoundError):
    """There is no such file."""


class Malformed(ValueError):
    """The sections of a file contradict each other."""


def source_section(number: int) -> str:
    """The name of the section of a source in C."""
    return f"source/{number}.c"


def cuda_section(number: int) -> str:
    """The name of the section of a source in CUDA C."""
    return f"source/{number}.cu"


def cubin_section(number: int) -> str:
    """The name of the section of the code of a source in CUDA C."""
    return f"binary/{number}.cubin"


def variant_section(number: int, name: str) -> str:
    """The name of a section of a variant."""
    return f"variant/{number}/{name}"


def check_name(section: str) -> str:
    """What the manifest calls that by which damage to a section is found."""
    return "sums" if section in SUMMED else "sha256"


def platform_name() -> str:
    """The operating system and the machine, such as "linux-x86_64"."""
    return f"{sys.platform}-{os.uname().machine}"


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a compiled object needs: the entries' convention, an operating system and machine, an
    instruction set; and, for people, what made it.
    """

    abi: int
    platform: str
    isa: str
    compiler: str
    tool: str

    def missing(self, isas: tuple[str, ...]) -> tuple[str, ...]:
        """What a machine with these instruction sets lacks, one line each; () where it fits."""
        lines = []
        if self.platform != platform_name():
            lines.append(f"it was built for {self.platform}; this is {platform_name()}.")
        elif not covers(isas, self.isa):
            lines.append(f"it was built for {self.isa}; this machine has {', '.join(isas)}.")
        if self.abi != ABI:
            lines.append(
                f"its code follows convention {self.abi} of tilewright {self.tool}; this version "
                f"follows {ABI}."
            )
        return tuple(lines)
