"""`tilewright demo`: compile a real model, check it, time it, and show what was done. The
model is SqueezeNet from the onnx package's own tests, with seeded random weights; nothing is
downloaded. Without a C compiler a small model runs in the interpreter.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ..arguments import add_verb, described_by
from ..errors import MISMATCH, OK
from ..text import paragraph, strong

if TYPE_CHECKING:
    from ..arguments import Verbs

MODEL = "squeezenet"
WAYS = (  # to install a C compiler
    "Debian, Ubuntu: sudo apt install gcc libc6-dev",
    "macOS: xcode-select --install",
    "anywhere: {python} -m pip install ziglang",
)
_EXAMPLES = """\
  tilewright demo
  TILEWRIGHT_CACHE=off tilewright demo    compile anew what was compiled before
  CC=clang tilewright demo                with another compiler
"""


def add_parser(verbs: Verbs) -> None:
    """The verb and its options."""
    parser = add_verb(
        verbs,
        "demo",
        "compile a real model, check it, time it",
        described_by(__doc__),
        _EXAMPLES,
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; without a working C compiler, in the interpreter."""
    from ...runtime.cpu.pool import pool_object
    from ...runtime.toolchain.compile import CompileFailed  # start-up
    from ...runtime.toolchain.compilers import CompilerNotFound

    try:
        pool_object()
    except CompilerNotFound as error:
        named = error.code == "compiler-named"
        return _without_compiler("$CC does not run" if named else "No C compiler was found")
    except CompileFailed:
        return _without_compiler("The C compiler that was found does not work")
    return _fast()


def _fast() -> int:
    from ...graph.samples.samples import random_model  # start-up
    from .demonstration import Demonstration
    from .text import lines

    demonstration = Demonstration.make(random_model(MODEL))
    for label, *text in lines(demonstration):
        print(paragraph(label, *text))
    return OK if demonstration.report else MISMATCH


def _without_compiler(reason: str) -> int:
    """Run a small model in the interpreter; first and last say how to get the fast path."""
    from .demonstration import interpreted_demonstration  # start-up
    from .text import interpreted_lines

    ways = "; ".join(WAYS).format(python=sys.executable)
    print(f"{strong(reason)}: a tiny model runs in the interpreter. For the fast path: {ways}")
    report, text = interpreted_lines(interpreted_demonstration())
    for label, *parts in text:
        print(paragraph(label, *parts))
    print(f"Get a C compiler and run this again, for a real model on the fast path: {ways}")
    return OK if report else MISMATCH
