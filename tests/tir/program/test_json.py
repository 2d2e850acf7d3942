from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.parsing.parser import ParseError
from tilewright.tir.program.json import parse_program, program_text
from tilewright.tir.program.program import Copy, Sync
from tilewright.tir.text.equal import equal

from ...checked_program import embedding
from ...tiny_program import SIZE, piece, tiny


def test_a_program_survives() -> None:
    program = tiny()
    copy = Copy(piece("arena", SIZE), piece("arena", 0))
    program = replace(program, body=(*program.body, Sync(), copy))
    twin = parse_program(program_text(program))
    assert replace(twin, functions=()) == replace(program, functions=())
    assert all(equal(a, b) for a, b in zip(twin.functions, program.functions, strict=True))


def test_the_checks_of_a_program_survive() -> None:
    assert parse_program(program_text(embedding())).checks == embedding().checks


def test_its_text_is_stable() -> None:
    text = program_text(tiny())
    assert program_text(parse_program(text)) == text


def test_a_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(IRError) as caught:
        parse_program("{")
    assert str(caught.value) == (
        "IRError: json: program is not JSON: Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1). [json-syntax]"
    )
    with pytest.raises(IRError, match="program is not JSON"):
        parse_program("[" * 100_000)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", 1, "json: program.name is 1; expected a text of at most 4096 characters."),
        ("arena_bytes", -1, "json: program.arena_bytes is -1; expected a whole number from 0 to"),
        ("body", [{"step": "jump"}], "json: program.body[0].step is 'jump'; expected 'launch' or"),
        ("inputs", {}, "json: program.inputs is {}; expected a list of at most 1048576."),
        ("outputs", [{}], "json: program.outputs[0] is {}; expected an object with 'name'."),
    ],
)
def test_a_field_of_another_kind_is_named(field: str, value: object, message: str) -> None:
    data = {**json.loads(program_text(tiny())), field: value}
    with pytest.raises(IRError) as caught:
        parse_program(json.dumps(data))
    assert message in str(caught.value)


def test_a_function_that_is_not_one_is_refused() -> None:
    data = {**json.loads(program_text(tiny())), "functions": ["import os"]}
    with pytest.raises(ParseError):
        parse_program(json.dumps(data))


def test_a_program_that_is_not_well_formed_is_refused() -> None:
    with pytest.raises(IRError, match="which does not exist"):
        parse_program(program_text(replace(tiny(), arena_bytes=64)))
