"""A distribution with operators, a pass and an importer, installed into a virtual environment:
models are compiled with it, and run where it is not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.wheels import install, project_wheel, wheel
from tilewright.graph.errors import UnsupportedOperator

HERE = Path(__file__).parent
PACKAGE = str(Path(tw.__file__).parents[1])  # where processes find the tilewright of this one

MODEL = """
import sys
import numpy as np
import tilewright as tw
from onnx import TensorProto, helper, numpy_helper

HERE = sys.argv[1]
rng = np.random.default_rng(0)
w, x = rng.standard_normal((16, 24), np.float32), rng.standard_normal((3, 16), np.float32)

def model(*nodes):
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, 16))]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "small", given, made, [numpy_helper.from_array(w, "w")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.ops", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)

def own(name, x, y, **attributes):
    return helper.make_node(name, [x], [y], f"n_{y}", domain="my.ops", **attributes)

def mish(x, beta=1.0):
    return x * np.tanh(np.logaddexp(0, beta * x))

def near_mean(x, width):
    return np.lib.stride_tricks.sliding_window_view(x, width, -1).mean(-1)

product = helper.make_node("MatMul", ["x", "w"], ["m"])
whole = model(
    product, own("Mish", "m", "a", beta=0.5), own("NearMean", "a", "b", width=3),
    helper.make_node("Relu", ["b"], ["y"]),
)
wanted = np.maximum(near_mean(mish(x @ w, 0.5), 3), 0)

def stages(*arguments, **options):
    told = []
    engine = tw.compile(*arguments, **options, progress=told.append)
    return engine, told
"""

COMPILED = """
assert "tilewright_example" not in sys.modules
engine, told = stages(whole)
assert "tilewright_example.operators" in sys.modules
np.testing.assert_allclose(engine(x), wanted, rtol=2e-5, atol=2e-6)
assert engine.verify()
notes = engine.explain().notes
assert "operator 'my.ops::Mish', version 1, of tilewright-example 1.2: 1 node" in notes, notes
assert "operator 'my.ops::NearMean', version 1, of tilewright-example 1.2: 1 node" in notes
assert any(note.startswith("fused: MatMul+Mish: ") for note in notes), notes
assert any(note.startswith("fused: NearMean+Relu: ") for note in notes), notes
assert [kernel.proof[:6] for kernel in engine.parts.report.kernels] == ["proved"] * 2
assert not [note for note in notes if "not kept" in note]
engine.save("small.twe")
np.savez("small.npz", x=x, y=wanted)
assert "build" in told
assert stages(whole)[1] == []
"""

PASSES = """
spelled = model(
    product, helper.make_node("Softplus", ["m"], ["s"]), helper.make_node("Tanh", ["s"], ["t"]),
    helper.make_node("Mul", ["m", "t"], ["y"]),
)
assert not any("MishRecognition" in note for note in tw.compile(spelled).explain().notes)
passes = tw.PASSES.named("mish")
assert len(passes) == len(tw.PASSES) + 1
engine, told = stages(spelled, passes=passes)
assert "build" in told
np.testing.assert_allclose(engine(x), mish(x @ w), rtol=2e-5, atol=2e-6)
notes = engine.explain().notes
wanted_note = (
    "pass MishRecognition of tilewright-example 1.2: equal; Mish 0 -> 1, Mul 1 -> 0, "
    "Softplus 1 -> 0, Tanh 1 -> 0"
)
assert wanted_note in notes, notes
assert any(note.startswith("fused: MatMul+Mish: ") for note in notes), notes
assert stages(spelled, passes=tw.PASSES.named("mish"))[1] == [], "the engine is kept"
assert "build" in stages(spelled, passes=tw.PASSES.named("mish").without("HeadMerging"))[1]
strict = tw.compile(spelled, passes=passes, strict=True)
left = "pass MishRecognition of tilewright-example 1.2: left out; it may round elsewhere"
assert any(note.startswith(left) for note in strict.explain().notes), strict.explain().notes
try:
    tw.PASSES.named("mesh")
except tw.TilewrightError as refused:
    assert str(refused) == (
        "ExtensionError: passes: no installed package brings 'mesh'; known are 'mish', 'broken'. "
        "[passes-named]\\n"
        "  Hint: a package brings passes by an entry point of 'tilewright.passes'."
    ), refused
else:
    raise AssertionError
"""

ARCHIVE = """
with np.load(f"{HERE}/calls.npz") as arrays:
    engine, told = stages(f"{HERE}/calls.pt2")
    found = engine.run({"x": arrays["x"]})
    for n, array in enumerate(found.values()):
        np.testing.assert_allclose(array, arrays[f"y{n}"], rtol=2e-5, atol=2e-6)
assert engine.verify()
notes = engine.explain().notes
assert "operator 'my.ops::Mish', version 1, of tilewright-example 1.2: 2 nodes" in notes, notes
assert stages(f"{HERE}/calls.pt2")[1] == []
"""

TRIED = """
from tilewright_example.operators import Mish, NearMean
for op in (Mish(0.5), NearMean(3)):
    report = tw.check_operator(op, [(x,), (tw.TensorType("float32", (2, 4, 6)),)])
    assert report and not report.notes, report
"""

IMPORTER = """
from pathlib import Path
Path("short.chain").write_text("x 3 16\\nMish 2.0\\nNearMean 4\\n")
engine = tw.compile("short.chain")
np.testing.assert_allclose(engine(x), near_mean(mish(x, 2.0), 4), rtol=2e-5, atol=2e-6)
Path("wrong.chain").write_text("x 3 16\\nMish two\\n")
try:
    tw.compile("wrong.chain")
except tw.TilewrightError as refused:
    assert str(refused) == (
        "ExtensionError: model: the importer of 'chain' of tilewright-example 1.2 raised "
        "ValueError: could not convert string to float: 'two'. [extension-importer]"
    ), refused
else:
    raise AssertionError
"""

OFF = """
try:
    tw.compile(whole)
except tw.TilewrightError as refused:
    assert str(refused) == (
        "UnsupportedOperator: model: 2 of 4 nodes cannot be imported. [onnx-unsupported]\\n"
        "  in the model:\\n"
        "    node 'n_a': Mish of my.ops opset 1: tilewright-example 1.2 may bring it\\n"
        "    node 'n_b': NearMean of my.ops opset 1: tilewright-example 1.2 may bring it\\n"
        "  Hint: TILEWRIGHT_EXTENSIONS=0 keeps it from being loaded."
    ), refused
else:
    raise AssertionError
assert "tilewright_example" not in sys.modules
from tilewright_example import operators  # what is imported by hand is there
np.testing.assert_allclose(tw.compile(whole)(x), wanted, rtol=2e-5, atol=2e-6)
"""

REFUSED = """
def told(graph):
    try:
        tw.compile(graph)
    except tw.TilewrightError as refused:
        return str(refused).splitlines()[2:]
    raise AssertionError

assert told(model(own("Mash", "x", "y"))) == [
    "    node 'n_y': Mash of my.ops opset 1: tilewright-example 1.2 does not bring it; it brings "
    "'my.ops.Mish', 'my.ops.NearMean'",
    "  Hint: @tw.operator(name, onnx=(domain, type, (opset,))) declares an operator of your own; a "
    "function of the model may spell it in operators of ONNX, too.",
]
node = helper.make_node("Thing", ["x"], ["y"], "n_y", domain="broken.ops")
lost = model(node)
lost.opset_import.append(helper.make_opsetid("broken.ops", 1))
assert told(lost) == [
    "    node 'n_y': Thing of broken.ops opset 1: 'broken.ops' of broken-example 0.1 does not "
    "load: ModuleNotFoundError: No module named 'no_such_module'",
    "  Hint: its entry point of 'tilewright.operators' says 'no_such_module'; "
    "TILEWRIGHT_EXTENSIONS=0 does without extensions.",
]
try:
    tw.PASSES.named("broken")
except tw.TilewrightError as refused:
    assert str(refused) == (
        "ExtensionError: extensions: 'broken' of broken-example 0.1 does not load: "
        "ModuleNotFoundError: No module named 'no_such_module'. [extension-load]\\n"
        "  Hint: its entry point of 'tilewright.passes' says 'no_such_module:passes'; "
        "TILEWRIGHT_EXTENSIONS=0 does without extensions."
    ), refused
else:
    raise AssertionError
"""

DOCTOR = """
import os
from tilewright.cli.main import main
assert main(["doctor"]) in (0, 4)
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment with packages, and all that this process has."""

    python: Path
    folder: Path

    def run(self, script: str, *arguments: str, **variables: str) -> str:
        """Run a script, which asserts, in a process of its own; what it printed."""
        file = self.folder / "use.py"
        file.write_text(script)
        done = subprocess.run(
            [self.python, file, HERE, *arguments],
            env={**os.environ, "PYTHONPATH": PACKAGE, **variables},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def environment(folder: Path, *wheels: Path) -> Environment:
    """An environment without packages of its own but these, which sees those of this process."""
    made = folder / "venv"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(made)
    (site,) = made.glob("lib/python*/site-packages")
    outer = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "outer.pth").write_text(
        "".join(f"import site; site.addsitedir({path!r})\n" for path in outer)
    )
    python = made / "bin" / "python"
    install(*wheels, python=str(python))
    work = folder / "work"
    work.mkdir()
    return Environment(python, work)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("example")
    points = {
        "tilewright.operators": {"broken.ops": "no_such_module"},
        "tilewright.passes": {"broken": "no_such_module:passes"},
    }
    broken = wheel(folder, "broken-example", {}, points, "0.1")
    return environment(folder, project_wheel(folder, HERE / "example"), broken)


@pytest.mark.needs_cc
def test_a_model_is_compiled_with_its_operators_and_runs_without_them(
    example: Environment,
) -> None:
    example.run(MODEL + COMPILED)
    engine = tw.load(example.folder / "small.twe")
    with np.load(example.folder / "small.npz") as arrays:
        np.testing.assert_allclose(engine(arrays["x"]), arrays["y"], rtol=2e-5, atol=2e-6)
    assert engine.verify(), "the reference is in the file, too"
    assert "tilewright_example" not in sys.modules
    assert (
        "operator 'my.ops::Mish', version 1, of tilewright-example 1.2: 1 node"
        in engine.explain().notes
    )


def test_without_the_package_its_operators_are_refused() -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        tw.compile(HERE / "calls.pt2", cache=False)
    assert str(caught.value) == (
        "UnsupportedOperator: model: 3 of 6 nodes cannot be imported. [aten-unsupported]\n"
        "  in the model:\n"
        "    2 nodes: my.mish.default: there is no rule for it (nodes 'mish' "
        "(make_archives.py:54), 'mish_1' (make_archives.py:55))\n"
        "    node 'near_mean' (make_archives.py:55): my.near_mean.default: there is no rule for "
        "it\n"
        "  Hint: @tw.operator(name, aten='library::operator') declares an operator of your own."
    )


@pytest.mark.needs_cc
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(PASSES, id="passes"),
        pytest.param(ARCHIVE, id="archive"),
        pytest.param(IMPORTER, id="file"),
        pytest.param(TRIED, id="check"),
    ],
)
def test_what_a_package_brings_works_like_ours(steps: str, example: Environment) -> None:
    example.run(MODEL + steps)


def test_a_variable_keeps_it_from_being_loaded(example: Environment) -> None:
    example.run(MODEL + OFF, TILEWRIGHT_EXTENSIONS="0")


def test_what_it_lacks_and_what_does_not_load_is_told_with_the_package(
    example: Environment,
) -> None:
    example.run(MODEL + REFUSED)


def test_doctor_lists_them(example: Environment) -> None:
    text = example.run(DOCTOR).replace("\n             ", " ")
    assert (
        "extensions operators: broken.ops, of broken-example 0.1: does not load: "
        "ModuleNotFoundError: No module named 'no_such_module'\n"
        "           operators: my, of tilewright-example 1.2\n"
        "           operators: my.ops, of tilewright-example 1.2\n"
        "           passes: broken, of broken-example 0.1: does not load: ModuleNotFoundError: "
        "No module named 'no_such_module'\n"
        "           passes: mish, of tilewright-example 1.2\n"
        "           importers: chain, of tilewright-example 1.2\n"
    ) in text
    text = example.run(DOCTOR, TILEWRIGHT_EXTENSIONS="0").replace("\n             ", " ")
    assert (
        "           importers: chain, of tilewright-example 1.2: TILEWRIGHT_EXTENSIONS=0 keeps it "
        "from being loaded\n"
    ) in text
