"""Engines with passes and operators of others are kept, under what identifies their sources."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import tilewright as tw
from tilewright.runtime.toolchain.cache import FOLDER_VARIABLE

PACKAGE = str(Path(tw.__file__).parents[1])  # where processes find the tilewright of this one
MINE = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import tilewright as tw
from tilewright import te

@dataclass(frozen=True)
class Nothing:
    """It leaves everything as it is."""

    number: int = 0
    keeps_rounding: ClassVar[bool] = True

    def __call__(self, graph):
        return graph

def in_function():
    @dataclass(frozen=True)
    class Inner(Nothing):
        pass

    return Inner()

@dataclass(frozen=True)
class Holding(Nothing):
    held: object = None

def plain(graph):
    return graph

plain.keeps_rounding = True

@tw.operator("mine::Double", onnx=("mine", "Double", (1,)))
class Double(tw.Elementwise):
    arity = (1, 1)

    def reference(self, *arrays):
        return (arrays[0] * 2,)

    def element(self, *elements):
        return elements[0] * 2
'''
USE = """
import sys
import mine
import tilewright as tw
from onnx import TensorProto, helper

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, (3, 4)) for name in "xy")
own = "double" in sys.argv[1]
domain, name = ("mine", "Double") if own else ("", "Relu")
graph = helper.make_graph([helper.make_node(name, ["x"], ["y"], "n", domain=domain)], "g", [x], [y])
opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
stages = []
passes = None if own else tw.PASSES.after("GeluRecognition", eval(sys.argv[1]))
engine = tw.compile(model, "python", passes=passes, progress=stages.append)
print("built" if "build" in stages else "kept")
print(*[note for note in engine.explain().notes if note.startswith("not kept")], sep="\\n")
"""


@dataclass(frozen=True)
class Project:
    """A folder with a module of somebody's, and a cache."""

    folder: Path

    def write(self, text: str) -> None:
        (self.folder / "mine.py").write_text(text)

    def compiled(self, what: str) -> str:
        """What a process says that compiles a model with a pass, or with the operator."""
        done = subprocess.run(
            [sys.executable, self.folder / "use.py", what],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((PACKAGE, str(self.folder))),
                FOLDER_VARIABLE: str(self.folder / "cache"),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "cache").mkdir(mode=0o700)
    made = Project(tmp_path)
    made.write(MINE)
    return made


@pytest.mark.parametrize("what", ["mine.Nothing()", "double"], ids=["pass", "operator"])
def test_an_engine_is_found_until_the_source_changes(what: str, project: Project) -> None:
    assert project.compiled(what) == "built"
    assert project.compiled(what) == "kept"
    project.write(MINE + "# another version\n")
    assert project.compiled(what) == "built"
    project.write(MINE)
    assert project.compiled(what) == "kept"


def test_a_pass_with_other_fields_is_another_one(project: Project) -> None:
    assert project.compiled("mine.Nothing(1)") == "built"
    assert project.compiled("mine.Nothing(2)") == "built"
    assert project.compiled("mine.Nothing(1)") == "kept"
    assert project.compiled("mine.plain") == "built"
    assert project.compiled("mine.plain") == "kept"


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (
            "mine.in_function()",
            "pass Inner of 'mine.in_function.<locals>.Inner': a function made it",
        ),
        ("mine.Holding(0, [1])", "pass Holding of 'mine.Holding': a field holds a list"),
        (
            "(exec('class Typed(mine.Nothing): __module__ = \"typed\"'), Typed())[1]",
            "pass Typed of 'typed.Typed': no file holds its source",
        ),
    ],
)
def test_what_nothing_identifies_is_not_kept_and_notes_say_so(
    what: str, why: str, project: Project
) -> None:
    for _ in range(2):
        assert project.compiled(what) == f"built\nnot kept in the cache: {why}"
