"""cli/main.py and cli/errors.py: verbs, help, exit codes, what goes to stderr."""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import tilewright as package
from tilewright.cli import doctor, errors
from tilewright.cli.errors import exit_code
from tilewright.cli.main import VERBS
from tilewright.runtime.toolchain.compilers import CompilerNotFound
from tilewright.tir.errors import InternalError, TilewrightError

from .conftest import Command

NAMES = (
    "demo",
    "run",
    "verify",
    "reduce",
    "bench",
    "calibrate",
    "compile",
    "export-c",
    "explain",
    "tune",
    "log",
    "fuzz",
    "doctor",
)


def steady(text: str) -> str:
    """Help as every version of Python prints it: a metavar once, no columns, no wrapped lines."""
    once = re.sub(r"(--?[\w-]+) [A-Z]+(?=, -)", r"\1", text)
    return re.sub(r"(?<=\S)(?:\n {10,}| {2,})", " ", once)


def test_help_lists_the_verbs_and_the_exit_codes(
    tilewright: Command, golden: Callable[[str, str], None]
) -> None:
    done = tilewright("--help")
    assert done.code == 0
    golden("cli/help.txt", steady(done.out))


@pytest.mark.parametrize("verb", NAMES)
def test_each_verb_explains_itself_with_examples(
    verb: str, tilewright: Command, golden: Callable[[str, str], None]
) -> None:
    done = tilewright(verb, "--help")
    assert done.code == 0
    assert f"examples:\n  tilewright {verb}" in done.out
    golden(f"cli/help_{verb}.txt", steady(done.out))


def test_every_verb_is_tested() -> None:
    files = [verb.__name__.rpartition(".")[2].replace("_", "-") for verb in VERBS]
    assert tuple(files) == NAMES


def test_no_verb_prints_the_help_and_is_a_usage_error(tilewright: Command) -> None:
    done = tilewright()
    assert done.code == 2
    assert done.out == ""
    assert "verbs:" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("fly",),
        ("run", "--threads", "0"),
        ("run", "--threads", "1,x"),
        ("run", "--duration", "-1"),
        ("run", "--duration", "soon"),
        ("run", "--warmup", "-1"),
        ("export-c", "model.onnx"),
        ("doctor", "--nonsense"),
    ],
)
def test_what_cannot_be_parsed_is_a_usage_error(
    arguments: tuple[str, ...], tilewright: Command
) -> None:
    done = tilewright(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "usage: tilewright" in done.err


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("complie", "model.onnx"), "compile"),
        (("log", "shwo", "a.jsonl"), "show"),
        (("explain", "model.onnx", "--jsno"), "--json"),
        (("run", "model.onnx", "--iteration-s=3"), "--iterations"),
        (("log", "show", "a.jsonl", "--onyl", "x"), "--only"),
    ],
)
def test_what_was_probably_meant_is_named(
    arguments: tuple[str, ...], meant: str, tilewright: Command
) -> None:
    done = tilewright(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(f"; did you mean '{meant}'?\n")


def test_what_is_close_to_nothing_is_not_guessed(tilewright: Command) -> None:
    assert "did you mean" not in tilewright("doctor", "--nonsense").err
    assert "did you mean" not in tilewright("zzzzzzzz").err


def test_an_unknown_option_is_reported_with_the_usage_of_its_verb(tilewright: Command) -> None:
    assert tilewright("log", "show", "a.jsonl", "--onyl").err.startswith(
        "usage: tilewright log show"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "nosuch.onnx"),
        ("run", "--load-engine", "nosuch.twe"),
        ("log", "show", "nosuch.jsonl"),
        ("compile", "nosuch.onnx", "--log", "nosuch.jsonl"),
    ],
)
def test_a_missing_file_has_one_exit_code(arguments: tuple[str, ...], tilewright: Command) -> None:
    done = tilewright(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "nosuch" in done.err


def test_an_error_is_json_where_that_is_asked_for(tilewright: Command) -> None:
    done = tilewright("explain", "nosuch.onnx", "--json")
    assert (done.code, done.err.partition(":")[0]) == (2, "ModelFileError")
    assert json.loads(done.out) == {
        "error": {
            "kind": "ModelFileError",
            "code": "onnx-file",
            "message": "model: file 'nosuch.onnx' cannot be read: No such file or directory.",
            "where": "",
            "notes": [],
            "hints": [],
            "exit": 2,
        }
    }


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tilewright ex", "explain"),
        ("tilewright cal", "calibrate"),
        ("tilewright log sh", "show"),
        ("tilewright calibrate m.onnx data -o c.npz --method en", "entropy"),
        ("tilewright compile m.onnx --prec", "--precision"),
        ("tilewright compile m.onnx --accuracy ag", "agreement"),
    ],
)
def test_a_shell_may_complete_verbs(line: str, offered: str) -> None:
    pytest.importorskip("argcomplete")
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    code = "import sys; from tilewright.cli.main import main; sys.exit(main())"
    command = f'"{sys.executable}" -c "{code}" 8>&1 9>/dev/null'
    done = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert offered in done.stdout.split()


def test_version_is_the_package_s(tilewright: Command) -> None:
    done = tilewright("--version")
    assert (done.code, done.out) == (0, f"tilewright {package.__version__}\n")


def _optional(name: str) -> None:
    """A package that cannot be imported; which may be so is asked where modules are."""


def error_classes() -> dict[str, type[TilewrightError]]:
    """Every error class of the package, by name; all modules are imported."""
    for module in pkgutil.walk_packages(package.__path__, "tilewright.", onerror=_optional):
        if ".tests" not in module.name and "setup" not in module.name:
            if module.name.split(".")[1] in ("tests", "tutorials", "benchmarks", "build"):
                continue
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:  # of a framework that is optional
                if error.name not in ("torch", "sympy"):
                    raise
    found: dict[str, type[TilewrightError]] = {}
    todo = [TilewrightError]
    while todo:
        kind = todo.pop()
        found[kind.__name__] = kind
        todo += kind.__subclasses__()
    return found


def test_the_exit_codes_name_error_classes_that_exist() -> None:
    assert set(errors._CODES) <= set(error_classes())


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (TilewrightError("x", code="x"), 2),
        (CompilerNotFound("x", code="x"), 4),
        (InternalError("x", code="x"), 1),
        (errors.UsageError("x", code="x"), 2),
    ],
)
def test_an_error_has_the_exit_code_of_its_class(error: TilewrightError, code: int) -> None:
    assert exit_code(error) == code


def test_the_most_special_class_decides() -> None:
    kinds = error_classes()
    model, file = kinds["ModelError"], kinds["ModelFileError"]
    assert exit_code(model("x", code="x")) == 3
    assert exit_code(file("x", code="x")) == 2
    assert exit_code(model("x", code="shapes-open")) == 2


def test_an_error_is_its_rendered_text_on_stderr_and_nothing_else(tilewright: Command) -> None:
    done = tilewright("run", "nosuch.onnx")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "ModelFileError: model: file 'nosuch.onnx' cannot be read: No such file or directory. "
        "[onnx-file]\n"
    )


def test_an_error_of_the_system_ends_with_4(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> int:
        raise PermissionError(13, "Permission denied", "out.npz")

    monkeypatch.setattr(doctor, "run", fails)
    done = tilewright("doctor")
    assert (done.code, done.err) == (4, "tilewright: [Errno 13] Permission denied: 'out.npz'\n")


def test_ctrl_c_ends_without_a_traceback(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "run", interrupted)
    done = tilewright("doctor")
    assert (done.code, done.err) == (130, "tilewright: interrupted\n")


def test_warnings_of_the_package_are_shown_and_handlers_do_not_stay(
    tilewright: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("tilewright.cache")
    before = list(logging.getLogger("tilewright").handlers)

    def warns(_: object) -> int:
        log.warning("no room")
        log.debug("details")
        return 0

    monkeypatch.setattr(doctor, "run", warns)
    assert tilewright("doctor").err == "tilewright: WARNING: no room\n"
    assert tilewright("-v", "doctor").err.endswith("tilewright: DEBUG: details\n")
    assert logging.getLogger("tilewright").handlers == before


def test_help_loads_neither_numpy_nor_the_compiler_of_models() -> None:
    heavy = ("numpy", "onnx", "networkx", "islpy", "cffi", "rich", "tilewright.graph")
    code = (
        "import sys\nfrom tilewright.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    )
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path("/")
    )
    assert done.stderr == "[]\n"
    assert time.perf_counter() - began < 2


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "from tilewright.cli.main import main\nraise SystemExit(main(['doctor', '--json']))"
    reading = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert reading.stdout is not None
    assert reading.stderr is not None
    reading.stdout.close()
    assert reading.stderr.read() == ""
    reading.stderr.close()
    assert reading.wait(60) in (0, 4)
