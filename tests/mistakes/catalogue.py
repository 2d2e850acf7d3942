"""What a mistake is: a title, the lines that make it, and the message that answers them.

In a module of mistakes each public function makes one; its docstring is the title. Everything else
of the module, imports apart, is what the mistakes have in common.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from inspect import getsource
from io import StringIO
from textwrap import dedent
from types import ModuleType

from tilewright.cli.main import main
from tilewright.tir.errors import TilewrightError

CHOICES = re.compile(r"\(choose from [^)]*\)")  # quoted by some versions of Python, by others not


@dataclass(frozen=True)
class Mistake:
    """A mistake that was made: `code` is what was written, `message` what came back."""

    title: str
    code: str
    message: str

    def __str__(self) -> str:
        lines = "\n".join(f"    {line}".rstrip() for line in self.code.splitlines())
        return f"## {self.title}\n\n{lines}\n\n{self.message}\n"


def made(module: ModuleType) -> list[Mistake]:
    """Make every mistake of a module, in its order."""
    functions = [
        value
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and _home(value) == module.__name__
    ]
    return [Mistake(str(one.__doc__), _body(one), _message(one)) for one in functions]


def given(module: ModuleType) -> str:
    """What the mistakes of a module have in common."""
    source = getsource(module)
    kept = [
        ast.get_source_segment(source, node) or ""
        for node in ast.parse(source).body[1:]
        if not isinstance(node, ast.ImportFrom | ast.Import)
        and not (isinstance(node, ast.FunctionDef) and not node.name.startswith("_"))
    ]
    return "\n".join(kept)


def typed(title: str, line: str) -> Mistake:
    """Make a mistake on the command line: its message is what stderr shows, and the exit code."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(shlex.split(line)[1:])
        except SystemExit as end:  # argparse ends the process itself
            code = int(end.code or 0)
    shown = CHOICES.sub(lambda found: found[0].replace("'", ""), err.getvalue().rstrip())
    return Mistake(title, f"$ {line}", f"{shown}\nexit code {code}")


def _home(value: object) -> str | None:
    return getattr(value, "__module__", None)


def _body(function: Callable[[], object]) -> str:
    source = dedent(getsource(function))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    first = node.body[1].lineno
    lines = dedent("\n".join(source.splitlines()[first - 1 :])).splitlines()
    return "\n".join(line.removeprefix("return ") for line in lines)


def _message(function: Callable[[], object]) -> str:
    try:
        function()
    except TilewrightError as error:
        return str(error)
    except Exception as error:  # shown as it is: the test then says that it is no message of ours
        return f"{type(error).__name__}: {error}"
    return "no error"
