"""The code of a candidate, C for a CPU or CUDA C for a GPU, and its JSON form."""

from __future__ import annotations

from typing import TypeAlias

from ...codegen.artifact import Artifact
from ...codegen.cuda.artifact import CudaArtifact
from ...runtime.artifact_json import kernel_from_json, kernel_to_json
from ...runtime.cuda.artifact_json import cuda_from_json, cuda_to_json
from ...tir.parsing.json_reader import Json, Reader
from ...tir.target import KINDS

CandidateCode: TypeAlias = Artifact | CudaArtifact


def code_to_json(code: CandidateCode) -> dict[str, Json]:
    """The code without its source text, as JSON."""
    return cuda_to_json(code) if isinstance(code, CudaArtifact) else kernel_to_json(code)


def code_from_json(data: Reader, source: str = "") -> CandidateCode:
    """The code that `code_to_json` wrote, with its source text. Raises: IRError."""
    is_cuda = data["target"]["kind"].one_of(*KINDS) == "cuda"
    return cuda_from_json(data, source) if is_cuda else kernel_from_json(data, source)
