from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.cuda.artifact import CudaArtifact
from tilewright.runtime.cuda.artifact_json import cuda_from_json, cuda_to_json
from tilewright.tir.dim import Dim
from tilewright.tir.errors import IRError
from tilewright.tir.json_reader import parse_json


def written() -> CudaArtifact:
    """With a prepared constant, a temporary and a grid of two axes."""
    x = te.placeholder((64, 64), "float32", name="x")
    w = te.placeholder((64, 64), "float32", name="w", constant=True)
    v = te.compute((64, 64), lambda i, j: w[j, i] * 2.0, name="v")
    k, m = te.reduce_axis(64, name="k"), te.reduce_axis(64, name="m")
    y = te.compute((64, 64), lambda i, j: te.sum(x[i, k] * v[k, j], axis=k), name="y")
    z = te.compute((64, 64), lambda i, j: te.sum(y[i, m] * x[m, j], axis=m), name="z")
    constants = {"w": np.zeros((64, 64), np.float32)}
    func = te.func(x, w, z, name="twice")
    artifact = tw.build(func, "cuda:sm_90a", constants=constants, verify="off").artifact
    assert isinstance(artifact, CudaArtifact)
    return artifact


def test_an_artifact_comes_back_from_its_json_and_its_text() -> None:
    artifact = written()
    assert artifact.prepare is not None
    assert artifact.run.temporaries
    data = parse_json(json.dumps(cuda_to_json(artifact)), "artifact")
    assert cuda_from_json(data, artifact.source) == artifact


def test_an_artifact_of_open_sizes_comes_back_with_what_tells_them() -> None:
    n, m = te.dim("n", 1, 40), Dim("m", low=1, high=30, typical=8)
    x = te.placeholder((n, 20), "float32", name="n")
    y = te.placeholder((m, 20), "float32", name="y")
    a = te.compute((n, 20), lambda i, j: x[i, j] * 2.0, name="a")
    b = te.compute((m, 20), lambda i, j: y[i, j] + 2.0, name="b")
    artifact = tw.build(te.func(x, y, a, b, name="two"), "cuda:sm_90a", verify="off").artifact
    assert isinstance(artifact, CudaArtifact)
    written = cuda_to_json(artifact)
    found = cuda_from_json(parse_json(json.dumps(written), "artifact"), artifact.source)
    assert cuda_to_json(found) == written
    assert found.run.launches == artifact.run.launches
    assert all(launch.stops for launch in found.run.launches)
    assert found.run.sizes == ("n_", "m")
    told = [(s.dim.low, s.dim.high, s.dim.usual, s.parameter, s.axis) for s in found.sizes]
    assert told == [(1, 40, 40, 0, 0), (1, 30, 8, 1, 0)]
    shapes = [(7, 20), (3, 20)] * 2
    assert found.sizes_of(shapes) == artifact.sizes_of(shapes) == {"n_": 7, "m": 3}


def test_a_launch_takes_what_its_part_has_and_nothing_else() -> None:
    artifact = written()
    data = cuda_to_json(replace(artifact, run=replace(artifact.run, temporaries=())))
    with pytest.raises(IRError) as refused:
        cuda_from_json(parse_json(json.dumps(data), "artifact"))
    assert str(refused.value) == (
        "IRError: program: 'tw_twice_0' takes what nobody hands it. [artifact-json]"
    )


def test_a_grid_has_three_axes() -> None:
    artifact = written()
    launch = replace(artifact.run.launches[0], grid=(4, 1))  # type: ignore[arg-type]
    data = cuda_to_json(replace(artifact, run=replace(artifact.run, launches=(launch,))))
    with pytest.raises(IRError) as refused:
        cuda_from_json(parse_json(json.dumps(data), "artifact"))
    assert str(refused.value) == (
        "IRError: program: artifact.run.launches[0].grid has 2 extents. [artifact-json]"
    )
