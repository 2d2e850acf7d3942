from __future__ import annotations

import sys

import pytest

from tilewright.runtime.toolchain.compile import compile_shared
from tilewright.runtime.toolchain.elf import section, symbols
from tilewright.runtime.toolchain.line_table import LineTable
from tilewright.tir.target.target import Target

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(sys.platform != "linux", reason="shared objects are ELF files on Linux"),
]

SOURCE = """\
int first(int x);
int first(int x)
{
    return x + 1;
}
static int kept[25];
#line 300 "other.c"
int second(int x);
int second(int x)
{
    kept[x] += 1;
    return first(x) * kept[x];
}
"""
FLAGS = ("-O0", "-g1", "-gdwarf-4", "-gz=none")


def compiled() -> bytes:
    return compile_shared(SOURCE, Target.parse("c:scalar"), name="lines", flags=FLAGS).binary


def test_symbols_have_their_place_and_size_local_ones_too() -> None:
    found = symbols(compiled())
    assert found["kept"].bytes == 100
    first, second = found["first"], found["second"]
    assert 0 < first.address < first.address + first.bytes <= second.address
    assert "third" not in found


def test_sections_have_their_content() -> None:
    binary = compiled()
    assert b"first\0" in section(binary, ".strtab")
    assert section(binary, ".bss") == b""
    assert section(binary, ".not-there") == b""


def test_each_instruction_has_its_line_of_its_file() -> None:
    binary = compiled()
    table, found = LineTable(binary), symbols(binary)
    addresses = range(found["second"].address, found["second"].address + found["second"].bytes)
    lines = [table.line(address, "other.c") for address in addresses]
    assert lines == sorted(lines, key=lambda line: line or 0)
    # a head stands on its name's line or its {, clang's return on that of its value, not of its }
    assert {303, 304} <= set(lines) - {301, 302} <= {303, 304, 305}
    assert table.line(found["first"].address, "lines.c") in (2, 3)
    assert table.line(found["first"].address, "other.c") is None
    assert table.line(0, "lines.c") is None
    assert table.line(1 << 40, "lines.c") is None


def test_an_object_without_a_table_knows_no_line() -> None:
    binary = compile_shared(SOURCE, Target.parse("c:scalar"), name="lines").binary
    assert LineTable(binary).line(symbols(binary)["first"].address, "lines.c") is None
