"""CUDA artifacts as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from ...codegen.cuda.artifact import CudaArtifact, Dimensions, KernelLaunch, Part, Temporary
from ...tir.json_reader import Json, Reader
from ...tir.target.target import Target
from ..artifact_json import SYMBOL, parameter_from_json, parameter_to_json, target_from_json, wrong

_MOST_THREADS, _MOST_BLOCKS = 1024, 2**31 - 1  # along an axis
_MOST_SHARED = 1 << 20  # bytes


def cuda_to_json(artifact: CudaArtifact) -> dict[str, Json]:
    """An artifact, of a function whose sizes are numbers, without its text."""
    return {
        "name": artifact.name,
        "target": dict(artifact.target.to_json()),
        **parts_to_json(artifact),
    }


def cuda_from_json(data: Reader, source: str = "") -> CudaArtifact:
    """The artifact that `cuda_to_json` wrote, with its text. Raises: IRError."""
    return artifact_of_parts(data, data["name"].text(), source, target_from_json(data["target"]))


def parts_to_json(artifact: CudaArtifact) -> dict[str, Json]:
    """What an artifact launches."""
    prepare = None if artifact.prepare is None else _part_to_json(artifact.prepare)
    return {"run": _part_to_json(artifact.run), "prepare": prepare}


def artifact_of_parts(data: Reader, name: str, source: str, target: Target) -> CudaArtifact:
    """An artifact of what `parts_to_json` wrote. Raises: IRError."""
    run, prepare = _part(data["run"]), data["prepare"].or_none(_part)
    return CudaArtifact(name, source, target, run, prepare)


def _part_to_json(part: Part) -> Json:
    return {
        "parameters": [parameter_to_json(p) for p in part.parameters],
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "arguments": list(launch.arguments),
                "shared_bytes": launch.shared_bytes,
            }
            for launch in part.launches
        ],
        "temporaries": [
            {"name": t.name, "dtype": str(t.dtype), "shape": list(t.shape)}
            for t in part.temporaries
        ],
    }


def _part(data: Reader) -> Part:
    part = Part(
        tuple(parameter_from_json(item) for item in data["parameters"].items(1 << 10)),
        tuple(_launch(item) for item in data["launches"].items(1 << 10)),
        tuple(
            Temporary(item["name"].text(), item["dtype"].dtype(), item["shape"].shape())
            for item in data["temporaries"].items(1 << 10)
        ),
    )
    for launch in part.launches:
        if not set(launch.arguments) <= set(part.names):
            raise wrong(f"'{launch.kernel}' takes what nobody hands it")
    return part


def _launch(data: Reader) -> KernelLaunch:
    return KernelLaunch(
        data["kernel"].text(SYMBOL),
        _dimensions(data["grid"], _MOST_BLOCKS),
        _dimensions(data["block"], _MOST_THREADS),
        tuple(item.text() for item in data["arguments"].items(1 << 10)),
        data["shared_bytes"].integer(_MOST_SHARED),
    )


def _dimensions(data: Reader, most: int) -> Dimensions:
    extents = [item.integer(most) for item in data.items(3)]
    if len(extents) != 3:
        raise wrong(f"{data.where} has {len(extents)} extents")
    return extents[0], extents[1], extents[2]
