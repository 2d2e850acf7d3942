"""What is read of the calls that make errors, and what is not guessed."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from tests.reference.error_calls import ErrorCall, Sources
from tests.reference.templates import shown, template


def calls(**texts: str) -> tuple[ErrorCall, ...]:
    """The calls of modules of one folder, by their names."""
    return Sources({f"tir/{name}.py": dedent(text) for name, text in texts.items()}).calls


def only(**texts: str) -> ErrorCall:
    (call,) = calls(**texts)
    return call


def test_a_call_gives_its_class_its_message_and_its_hints() -> None:
    call = only(
        one="""
        raise LoadError(
            f"load: '{self.name}' is {', '.join(map(repr, sizes))}.", code="load-size",
            hints=("ask again.", f"ask {who}.") if asked else ("give up.",),
        )
        """
    )
    assert call == ErrorCall(
        "load-size",
        "LoadError",
        "tir/one.py",
        ("load: '{name}' is {sizes, ...}.",),
        ("ask again.", "ask {who}.", "give up."),
    )


def test_the_kind_of_a_refusal_is_read() -> None:
    assert only(one='E("x", code="a-b", kind=Kind.LIMIT)').kind == "limit"
    either = 'E("x", code="a-b", kind=Kind.LIMIT if a else Kind.CONFLICT)'
    assert only(one=either).kind == "limit or conflict"


def test_a_maker_of_errors_in_another_file_gives_class_and_prefix() -> None:
    call = only(
        base="""
        def refuse(operator, problem, *, code):
            raise ModelError(f"{operator}: {problem}.", code=code)
        """,
        one="""
        from .base import refuse
        refuse(self, f"got {count}", code="op-count")
        """,
    )
    assert (call.error, call.messages) == ("ModelError", ("{operator}: got {count}.",))


def test_a_name_holds_what_was_assigned_last_on_each_way() -> None:
    call = only(
        one="""
        def check(a):
            said = "never seen"
            said = "one"
            if a:
                said = "two"
            raise E(said, code="a-b")
            said = "too late"
        """
    )
    assert call.messages == ("one", "two")


def test_each_branch_has_its_own_message() -> None:
    first, second = calls(
        one="""
        def check(a):
            if a:
                said = "one"
                raise E(said, code="a-one")
            else:
                said = "two"
                raise E(said, code="a-two")
        """
    )
    assert (first.messages, second.messages) == (("one",), ("two",))


def test_a_function_of_ours_is_followed_with_its_arguments() -> None:
    call = only(
        texts="""
        def said(way, other):
            return way if way else f"not {other}"
        """,
        one="""
        from .texts import said
        raise E(said("this way", 2), code="a-b")
        """,
    )
    assert call.messages == ("this way", "not {other}")


def test_pairs_that_a_check_returns_are_a_message_and_its_code() -> None:
    first, second = calls(
        checks="""
        def problem(a):
            if a:
                return f"loop {a} is bad", "loop-bad"
            if a is None:
                return "loop is gone", "loop-gone"
            return None
        """,
        one="""
        from .checks import problem
        class Verifier:
            def error(self, message, *, code):
                return VerificationError(f"verify: {message}.", code=code)
            def check(self, a):
                if (found := problem(a)) is not None:
                    raise self.error(found[0], code=found[1])
        """,
    )
    assert (first.code, first.error, first.path) == (
        "loop-bad",
        "VerificationError",
        "tir/checks.py",
    )
    assert first.messages == ("verify: loop {a} is bad.",)
    assert second.code == "loop-gone"


def test_what_carries_a_code_to_an_error_is_named_as_that_error() -> None:
    call = only(
        one="""
        def failed(fault: Fault):
            return CheckError(f"check: {fault.said}", code=fault.code)
        raise Fault("it wrote", code="check-wrote")
        """
    )
    assert call.error == "CheckError"


def test_hints_that_a_class_always_gives_belong_to_its_errors() -> None:
    call = only(
        one="""
        class Defect(Exception):
            def __init__(self, message, *, code):
                super().__init__(message, code=code, hints=("report it.",))
        raise Defect("x", code="a-b")
        """
    )
    assert call.hints == ("report it.",)


@pytest.mark.parametrize("said", ["error.text", "told(x)", "message"])
def test_a_text_that_is_not_in_the_sources_is_no_guess(said: str) -> None:
    call = only(one=f'raise E({said}, code="a-b")')
    assert not call.is_literal
    assert call.messages == (f"{{{said}}}",)


def test_an_error_of_no_class_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"tir/one\.py:1: told makes an error of no class"):
        calls(one='told("x", code="a-b")')


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("f\"{', '.join(f'{a}' for a in names)}\"", "{names, ...}"),
        ("f'{known_names(wanted, FOLDERS)}'", "{FOLDERS, closest first}"),
        ("f'{self._size + 1:>4} of {len(found)}'", "{size + 1} of {len(found)}"),
        ("f\"{type(a).__name__} {'is' if one else 'are'}\"", "{type of a} {is | are}"),
        ("f\"{x if x else f'no {x}'}\"", "{x | no x}"),
        ("f'{a[-1].b!r} {{c}}'", "{a[-1].b} {c}"),
        ("f'{[a for a in b if a > c] == d}'", "{...}"),
        (f"f'{{{'a' * 61}}}'", "{...}"),
    ],
)
def test_placeholders_are_readable(source: str, text: str) -> None:
    assert template(ast.parse(source, mode="eval").body) == text


def test_a_placeholder_holds_no_braces() -> None:
    assert "{" not in shown(ast.parse("f'{a} {b}' if c else d", mode="eval").body)
