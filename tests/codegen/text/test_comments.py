"""Comments of generated sources hold plain text, whatever a tensor or a model is called."""

from __future__ import annotations

import pytest

from tilewright.codegen.text.comments import comment
from tilewright.driver.build import build
from tilewright.schedule.schedule import Schedule
from tilewright.tir.te import te

HOSTILE = (
    "*/ int injected; /*",
    "\x1b]0;title\a",
    "\0",
    "\u202e reversed \u2066",
    "??/\n??)",
    "line\\",
    "\r\x0b\x0c\x85\u2028",
    "\udcff",
)


def test_text_for_comments_is_harmless() -> None:
    assert comment('a*/b/*c\\\n"?') == 'a* /b/ *c__"_'
    assert comment("/*/*/") == "/ * / * /"
    for name in HOSTILE:
        safe = comment(name)
        assert safe.isascii()
        assert safe.isprintable()
        assert not any(mark in safe for mark in ("*/", "/*", "?", "\\"))


@pytest.mark.parametrize("target", ["c:scalar", "cuda:sm_90a"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_kernels_source_is_plain_text_whatever_its_parts_are_called(
    name: str, target: str
) -> None:
    x = te.placeholder((8, 4), "float32", name=name)
    k = te.reduce_axis(4, name=f"k{name}")
    y = te.compute((8,), lambda i: te.sum(x[i, k], axis=k), name=f"y{name}")
    sch = Schedule(te.func(x, y, name=f"f{name}"))
    if target != "cuda:sm_90a":
        sch.split(sch.loops(f"y{name}")[0], (None, 4))
    source = build(sch if target == "c:scalar" else sch.func, target, verify="off").source
    assert source.isascii()
    assert not [c for c in source if not c.isprintable() and c != "\n"]
    assert "??" not in source
    assert "injected;" not in source.replace("/*", "").split("*/")[-1]
