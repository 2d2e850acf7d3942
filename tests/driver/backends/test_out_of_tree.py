"""A target that another package brings, installed from its wheel, is built for, compiled for and
tuned for like any other.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.wheels import install, wheel
from tilewright.tir.target.kinds import GROUP

HERE = Path(__file__).parent

MATMUL = """
import numpy as np
import tilewright as tw
from tilewright import te

def matmul(n):
    a, b = (te.placeholder((n, n), "float32", name=name) for name in "AB")
    k = te.reduce_axis(n, name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.func(a, b, c, name="matmul")

if __name__ == "__main__":
    a, b = (np.random.default_rng(n).standard_normal((8, 8), np.float32) for n in range(2))
"""
BUILD = """
    assert tw.Target("text") == tw.Target.parse("text")
    assert (tw.Target("text").has_grid, tw.Target("text", "sm_80").has_grid) == (False, True)
    kernel = tw.build(matmul(8), "text")
    assert kernel.artifact.__class__.__module__ == "text_target"
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)
    assert kernel.proof.status == "proved"
"""
COMPILE = """
    from onnx import TensorProto, helper
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, (8, 8))
    nodes = [helper.make_node("MatMul", ["a", "b"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "small", [value("a"), value("b")], [value("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    engine = tw.compile(model, "text")
    np.testing.assert_allclose(engine(a, b), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)
    engine = tw.load(engine.save("small.twe"))
    np.testing.assert_allclose(engine(a, b), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)
    assert str(engine.parts.artifact.target) == "text"
    assert engine.parts.code.__class__.__module__ == "text_target"
    assert [kernel.proof[:6] for kernel in engine.parts.report.kernels] == ["proved"]
    assert "parallel" in engine.parts.code.source or "unrolled" in engine.parts.code.source
    assert engine.verify()
    assert tw.compile(model, "text").verify()
"""
TUNE = """
    result = tw.tune(matmul(8), "text", trials=3, log="text.jsonl")
    assert [trial.outcome for trial in result.history] == ["ok"] * 3, result.history
    kernel = tw.build(matmul(8), "text", schedules=tw.TuningLog("text.jsonl"))
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)
"""


WITHOUT = """
import sys
import tilewright as tw
before = "importlib.metadata" in sys.modules
tw.Target("c", "avx2"), tw.Target("python")
assert ("importlib.metadata" in sys.modules) == before
try:
    tw.Target("text")
except tw.TilewrightError as refused:
    assert str(refused).endswith("as an entry point of the group 'tilewright.targets'."), refused
else:
    raise AssertionError
"""


BROKEN = """
    try:
        tw.build(matmul(8), "broken")
    except tw.TilewrightError as refused:
        assert str(refused) == (
            "TargetError: target: the back end 'broken' of another package does not load: "
            "No module named 'no_such_module'. [target-load]\\n"
            "  Hint: its entry point of 'tilewright.targets' says 'no_such_module:BACKEND'."
        ), refused
    else:
        raise AssertionError
"""


DOCTOR = """
    from tilewright.cli.examination import examine
    found = {one.kind: (one.package, one.problem) for one in examine().targets}
    assert found["text"] == ("text_target 1.0", None), found
    assert found["broken"] == (
        "broken_target 1.0", "ModuleNotFoundError: No module named 'no_such_module'"
    ), found
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a package with the back end is installed, and one that does not load."""
    folder = tmp_path_factory.mktemp("site")
    wheels = tmp_path_factory.mktemp("wheels")
    module = {"text_target.py": (HERE / "text_target.py").read_bytes()}
    made = [
        wheel(wheels, "text_target", module, {GROUP: {"text": "text_target:TEXT"}}),
        wheel(wheels, "broken_target", {}, {GROUP: {"broken": "no_such_module:BACKEND"}}),
    ]
    install(*made, options=("--target", str(folder)))
    return folder


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(BUILD, id="build"),
        pytest.param(COMPILE, id="compile"),
        pytest.param(TUNE, id="tune", marks=pytest.mark.needs_cc),  # of the probe
    ],
)
def test_a_target_of_another_package_works_like_ours(
    steps: str, site: Path, tmp_path: Path
) -> None:
    run(MATMUL + steps, tmp_path, {"PYTHONPATH": str(site)})


def test_packages_are_looked_through_for_a_kind_that_is_not_built_in(tmp_path: Path) -> None:
    run(WITHOUT, tmp_path, {})


def test_a_back_end_that_does_not_load_is_told(site: Path, tmp_path: Path) -> None:
    run(MATMUL + BROKEN, tmp_path, {"PYTHONPATH": str(site)})


def test_doctor_lists_the_targets_of_packages(site: Path, tmp_path: Path) -> None:
    run(MATMUL + DOCTOR, tmp_path, {"PYTHONPATH": str(site)})


def run(script: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Run a script, which asserts, in a process of its own."""
    file = folder / "use.py"
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, file],
        env={**os.environ, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
