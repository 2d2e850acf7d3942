"""CUDA artifacts as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from ...codegen.cuda.artifact import CudaArtifact, Dimensions, Launch, Part, Temporary
from ...tir.errors import IRError
from ...tir.json_reader import Json, Reader
from ..artifact_json import parameter_from_json, parameter_to_json, target_from_json

_MOST = 1 << 12  # parameters, launches, temporaries, arguments


def cuda_to_json(artifact: CudaArtifact) -> dict[str, Json]:
    """An artifact, of a function whose sizes are numbers, without its text."""
    return {
        "name": artifact.name,
        "target": dict(artifact.target.to_json()),
        "run": _part_to_json(artifact.run),
        "prepare": None if artifact.prepare is None else _part_to_json(artifact.prepare),
    }


def cuda_from_json(data: Reader, source: str = "") -> CudaArtifact:
    """The artifact that `cuda_to_json` wrote, with its text. Raises: IRError."""
    prepare = data["prepare"]
    return CudaArtifact(
        data["name"].text(),
        source,
        target_from_json(data["target"]),
        _part(data["run"]),
        None if prepare.value is None else _part(prepare),
    )


def _part_to_json(part: Part) -> Json:
    return {
        "parameters": [parameter_to_json(one) for one in part.parameters],
        "launches": [_launch_to_json(one) for one in part.launches],
        "temporaries": [
            {"name": one.name, "dtype": str(one.dtype), "shape": list(one.shape)}
            for one in part.temporaries
        ],
    }


def _part(data: Reader) -> Part:
    """A part whose launches take what it has: no address is made of another name."""
    part = Part(
        tuple(map(parameter_from_json, data["parameters"].items(_MOST))),
        tuple(map(_launch, data["launches"].items(_MOST))),
        tuple(map(_temporary, data["temporaries"].items(_MOST))),
    )
    known = {one.name for one in part.parameters} | {one.name for one in part.temporaries}
    for launch in part.launches:
        for name in launch.arguments:
            if name not in known:
                raise IRError(
                    f"cuda: a launch of '{launch.kernel}' takes '{name}', which is neither a "
                    "parameter nor a temporary.",
                    code="cuda-artifact-json",
                )
    return part


def _launch_to_json(launch: Launch) -> Json:
    return {
        "kernel": launch.kernel,
        "grid": list(launch.grid),
        "block": list(launch.block),
        "arguments": list(launch.arguments),
        "shared_bytes": launch.shared_bytes,
    }


def _launch(data: Reader) -> Launch:
    return Launch(
        data["kernel"].text(),
        _dimensions(data["grid"]),
        _dimensions(data["block"]),
        tuple(one.text() for one in data["arguments"].items(_MOST)),
        data["shared_bytes"].integer(),
    )


def _temporary(data: Reader) -> Temporary:
    return Temporary(data["name"].text(), data["dtype"].dtype(), data["shape"].shape())


def _dimensions(data: Reader) -> Dimensions:
    sizes = [one.integer() for one in data.items(3)]
    if len(sizes) != 3:
        raise IRError(
            f"json: {data.where} has {len(sizes)} numbers; expected three: along x, y and z.",
            code="cuda-artifact-json",
        )
    return sizes[0], sizes[1], sizes[2]
