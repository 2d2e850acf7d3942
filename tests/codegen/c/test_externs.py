"""codegen/c/externs.py: the C texts of a user in a generated source."""

from __future__ import annotations

import pytest

from tilewright.codegen.c.build import build_artifact
from tilewright.codegen.c.emit import emit
from tilewright.codegen.c.externs import blamed
from tilewright.codegen.lower.lower import lower, lower_to_nest
from tilewright.tir.func import PrimFunc
from tilewright.tir.target.target import Target
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor

SCALAR = Target.parse("c:scalar")
TEXT = """\
#define X 3
static float more(float x) { return x + X; }
void go(const float *x, float *y)
{
    for (int i = 0; i < 4; i++)
        y[i] = more(x[i]);
}
void back(const float *x, float *y)
{
    for (int i = 0; i < 4; i++)
        y[i] = x[3 - i];
}
"""


def call(x: Tensor, symbol: str, name: str, text: str = TEXT) -> Tensor:
    return te.extern(4, "float32", x, source=text, symbol=symbol, reference=lambda a: a, name=name)


def source_of(func: PrimFunc) -> str:
    return build_artifact(lower_to_nest(func), SCALAR).source


def x(name: str = "X", *, constant: bool = False) -> Tensor:
    return te.placeholder((4,), "float32", name=name, constant=constant)


def test_a_text_stands_last_and_its_functions_are_declared_first() -> None:
    given = x()
    source = source_of(te.func(given, call(given, "go", "Y"), name="one"))
    before, _, after = source.partition("/* one(input X: float32[4], output Y: float32[4]) */")
    assert before.endswith("\nstatic void go(const float *, float *);\n\n")
    body, _, text = after.partition("/* begin of the text of extern go */\n")
    assert "    if (thread == 0) {\n        go(X, Y);\n    }\n" in body
    assert text == f"{TEXT}/* end of the text of extern go */\n"


def test_one_text_stands_once_for_all_its_functions() -> None:
    given = x()
    y = call(call(call(given, "go", "S"), "back", "T"), "go", "Y")
    source = source_of(te.func(given, y, name="three"))
    assert source.count(TEXT) == 1
    assert source.count("static void go(const float *, float *);") == 1
    assert source.count("static void back(const float *, float *);") == 1


def test_no_name_of_a_function_hides_a_symbol() -> None:
    given = x("go")
    text = emit(
        lower(lower_to_nest(te.func(given, call(given, "go", "back"), name="f")), SCALAR),
        SCALAR,
        "tw_f",
    )
    assert "        go(go_1, back);\n" in text


def test_what_a_call_makes_of_constants_is_prepared() -> None:
    weights, given = x("W", constant=True), x()
    made = call(weights, "go", "P")
    y = te.compute((4,), lambda i: made[i] + given[i], name="Y")
    artifact = build_artifact(lower_to_nest(te.func(weights, given, y, name="f")), SCALAR)
    assert artifact.prepare is not None
    entry = artifact.source.index("void tw_f_prepare(")
    assert artifact.source.index("go(W, P);") < entry
    assert artifact.source.count("go(") == 3  # declared, called, defined


@pytest.mark.parametrize(
    ("line", "found"), [(2, None), (5, ("go", 1)), (6, ("go", 2)), (8, None), (10, ("back", 1))]
)
def test_a_line_is_traced_to_its_text(line: int, found: tuple[str, int] | None) -> None:
    texts = [
        "/* f */",
        "int ours;",
        "",
        "/* begin of the text of extern go */",
        "int one;",
        "int two;",
        "/* end of the text of extern go */",
        "int ours;",
        "/* begin of the text of extern back */",
        "int three;",
    ]
    assert blamed("\n".join(texts), line) == found
