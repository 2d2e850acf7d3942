"""CUDA artifacts as JSON and back; what writing cannot have made is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from ...codegen.artifact import ToldSize, told_sizes
from ...codegen.cuda.artifact import CudaArtifact, Dimensions, KernelLaunch, Part, Stop, Temporary
from ...tir.json_reader import LARGEST_SIZE, Json, Reader
from ...tir.program.sizes_json import NO_DIMS, Dims, dims_from_json, dims_to_json
from ...tir.sizes import AnySize, size_of
from ...tir.target.target import Target
from ..artifact_json import SYMBOL, parameter_from_json, parameter_to_json, target_from_json, wrong

_MOST_THREADS, _MOST_BLOCKS = 1024, 2**31 - 1  # along an axis
_MOST_SHARED = 1 << 20  # bytes


def cuda_to_json(artifact: CudaArtifact) -> dict[str, Json]:
    """An artifact without its text."""
    return {
        "name": artifact.name,
        "target": dict(artifact.target.to_json()),
        **parts_to_json(artifact),
    }


def cuda_from_json(data: Reader, source: str = "") -> CudaArtifact:
    """The artifact that `cuda_to_json` wrote, with its text. Raises: IRError."""
    return artifact_of_parts(data, data["name"].text(), source, target_from_json(data["target"]))


def parts_to_json(artifact: CudaArtifact) -> dict[str, Json]:
    """What an artifact launches, and the sizes that a call decides."""
    # whatever a size is made of, for a kernel it is one, by the name that its launches have for it
    named = list(zip(artifact.run.sizes, artifact.sizes, strict=True))
    dims = {told.dim: replace(told.dim, name=name) for name, told in named}
    own: dict[AnySize, AnySize] = {size_of(dim): size_of(mine) for dim, mine in dims.items()}
    prepare = None if artifact.prepare is None else _part_to_json(artifact.prepare, own)
    return {
        "dims": dims_to_json(dims.values()),
        "untold": [name for name, told in named if told.parameter is None],
        "run": _part_to_json(artifact.run, own),
        "prepare": prepare,
    }


def artifact_of_parts(data: Reader, name: str, source: str, target: Target) -> CudaArtifact:
    """An artifact of what `parts_to_json` wrote. Raises: IRError."""
    dims = dims_from_json(data.optional("dims"))
    run, prepare = _part(data["run"], dims), data["prepare"].or_none(_part)
    untold = data.optional("untold")  # older files have none
    hidden = set[str]() if untold is None else {item.text() for item in untold.items(1 << 10)}
    sizes = tuple(
        ToldSize(size.dim) if size.dim.name in hidden else size
        for size in told_sizes(tuple(dims.values()), run.parameters)
    )
    return CudaArtifact(name, source, target, run, prepare, sizes)


def _part_to_json(part: Part, own: Mapping[AnySize, AnySize]) -> Json:
    return {
        "parameters": [
            parameter_to_json(replace(p, shape=tuple(own.get(size, size) for size in p.shape)))
            for p in part.parameters
        ],
        "launches": [
            {
                "kernel": launch.kernel,
                "grid": list(launch.grid),
                "block": list(launch.block),
                "arguments": list(launch.arguments),
                "shared_bytes": launch.shared_bytes,
                "stops": [asdict(stop) for stop in launch.stops],
            }
            for launch in part.launches
        ],
        "temporaries": [
            {"name": t.name, "dtype": str(t.dtype), "shape": list(t.shape)}
            for t in part.temporaries
        ],
    }


def _part(data: Reader, dims: Dims = NO_DIMS) -> Part:
    part = Part(
        tuple(parameter_from_json(item, dims) for item in data["parameters"].items(1 << 10)),
        tuple(_launch(item) for item in data["launches"].items(1 << 10)),
        tuple(
            Temporary(item["name"].text(), item["dtype"].dtype(), item["shape"].shape())
            for item in data["temporaries"].items(1 << 10)
        ),
        tuple(dims),
    )
    if set(part.names) & set(part.sizes):
        raise wrong(f"{data.where} has arrays and sizes of one name")
    for launch in part.launches:
        if not set(launch.arguments) <= {*part.names, *part.sizes}:
            raise wrong(f"'{launch.kernel}' takes what nobody hands it")
        if not {stop.size for stop in launch.stops} <= set(part.sizes):
            raise wrong(f"the grid of '{launch.kernel}' ends with a size that it does not have")
    return part


def _launch(data: Reader) -> KernelLaunch:
    stops = data.optional("stops")  # older files have none
    return KernelLaunch(
        data["kernel"].text(SYMBOL),
        _dimensions(data["grid"], _MOST_BLOCKS),
        _dimensions(data["block"], _MOST_THREADS),
        tuple(item.text() for item in data["arguments"].items(1 << 10)),
        data["shared_bytes"].integer(_MOST_SHARED),
        () if stops is None else tuple(_stop(item) for item in stops.items(3)),
    )


def _stop(data: Reader) -> Stop:
    offset, scale, step = data["offset"].value, data["scale"].integer(), data["step"].integer()
    if type(offset) is not int or abs(offset) > LARGEST_SIZE or not scale or not step:
        raise wrong(f"{data.where} ends no grid")
    return Stop(data["axis"].integer(2), data["size"].text(), scale, step, offset)


def _dimensions(data: Reader, most: int) -> Dimensions:
    extents = [item.integer(most) for item in data.items(3)]
    if len(extents) != 3:
        raise wrong(f"{data.where} has {len(extents)} extents")
    return extents[0], extents[1], extents[2]
