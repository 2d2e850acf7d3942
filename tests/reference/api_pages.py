"""The pages of the public names: signatures by `inspect`, docstrings as they are."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from textwrap import indent
from types import ModuleType
from typing import ForwardRef, get_overloads

from tests.reference.docstrings import markdown
from tilewright.tir.node import Node

WIDTH = 92
INSTANCES = {"PrimFunc": "func", "Schedule": "sch"}  # as documents call them; others by their class
DESCRIPTORS = (property, staticmethod, classmethod)
SECTION = re.compile(r"    # -- (\w+) -+|    def (\w+)\(")


@dataclass(frozen=True)
class Member:
    """A method or a property of a class."""

    name: str
    value: object
    doc: str

    @property
    def function(self) -> Callable[..., object]:
        """What is called; of a property, what gives its value."""
        value = self.value
        if isinstance(value, property):
            assert value.fget is not None
            return value.fget
        return getattr(value, "__func__", value)  # type: ignore[no-any-return, arg-type]


def members(kind: type) -> dict[str, Member]:
    """The documented public members of a class, its own first; without what every node of the
    language has.
    """
    own = [one for one in kind.__mro__ if one.__module__.startswith("tilewright.")]
    found: dict[str, Member] = {}
    for name, value in ((name, value) for one in own for name, value in vars(one).items()):
        if name in vars(Node) or (name.startswith("_") and name != "__call__"):
            continue
        docs = (vars(one)[name].__doc__ for one in own if name in vars(one))
        doc = next(filter(None, docs), None)
        if doc and (inspect.isfunction(value) or isinstance(value, DESCRIPTORS)):
            found.setdefault(name, Member(name, value, inspect.cleandoc(doc)))
    return found


# -- signatures -----------------------------------------------------------------------------------


def annotation_text(annotation: object) -> str:
    """An annotation as the source has it."""
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"^(['\"])(.*)\1$", r"\2", text)


def default_text(value: object) -> str:
    """A default as one would write it."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isroutine(value) or inspect.isclass(value):
        return value.__name__
    text = repr(value)
    assert " at 0x" not in text, text
    return text


def signature(
    name: str, function: Callable[..., object], *, bound: bool, result: bool = True
) -> str:
    """`name(parameters) -> result`, on one line where it fits. bound: without the first one."""
    of = inspect.signature(function)
    parts, is_keyword_only = [], False
    parameters = list(of.parameters.values())[1 if bound else 0 :]
    for at, parameter in enumerate(parameters):
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            parts.append("*")
        is_keyword_only |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
        text = f"{stars.get(parameter.kind, '')}{parameter.name}"
        if parameter.annotation is not parameter.empty:
            text += f": {annotation_text(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            text += f" = {default_text(parameter.default)}"
        parts.append(text)
        rest = parameters[at + 1 : at + 2]
        if parameter.kind is parameter.POSITIONAL_ONLY and not any(
            one.kind is one.POSITIONAL_ONLY for one in rest
        ):
            parts.append("/")
    arrow = ""
    if result and of.return_annotation is not of.empty:
        arrow = f" -> {annotation_text(of.return_annotation)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){arrow}"])


def signatures(name: str, function: Callable[..., object], *, bound: bool) -> list[str]:
    """The signatures of a function: those of its overloads, where it has some."""
    forms = get_overloads(function) or [function]
    return [signature(name, form, bound=bound) for form in forms]


def _code(texts: Iterable[str]) -> list[str]:
    return ["```python", *texts, "```", ""]


def _words(function: Callable[..., object]) -> frozenset[str]:
    """The parameters, with the names that `**options: Unpack[Options]` stands for."""
    parameters = inspect.signature(function).parameters
    words = set(parameters)
    for parameter in parameters.values():
        if match := re.fullmatch(r"Unpack\[(\w+)\]", annotation_text(parameter.annotation)):
            words |= getattr(inspect.getmodule(function), match[1]).__annotations__.keys()
    return frozenset(words)


# -- entries --------------------------------------------------------------------------------------


def function_entry(shown: str, function: Callable[..., object]) -> list[str]:
    """A function: heading, signature, docstring."""
    doc = inspect.getdoc(function) or ""
    code = _code(signatures(shown, function, bound=False))
    return [f"### `{shown}`", "", *code, *markdown(doc, _words(function)), ""]


def class_entry(kind: type) -> list[str]:
    """A class: how it is made, what it is, its properties in a list, its methods."""
    name = kind.__name__
    doc = inspect.cleandoc(kind.__doc__ or "")
    if doc.startswith(f"{name}("):  # what a dataclass says where its author said nothing
        doc = ""
    made = partial(signature, name, bound=False, result=False)
    if issubclass(kind, Enum):
        code, words = [f"{name}.{one.name}" for one in kind], frozenset[str]()
    else:
        code, words = [made(kind)], _words(kind)
    lines = [f"### `{name}`", "", *_code(code), *markdown(doc, words), ""]
    return [*lines, *member_entries(name, members(kind).values())]


def value_entry(shown: str, value: object) -> list[str]:
    """A value: its type, and how it is printed."""
    name = type(value).__name__
    return [
        f"### `{shown}`",
        "",
        f"A [{name}](#{anchor(name)}):",
        "",
        "```text",
        str(value),
        "```",
        "",
    ]


def member_entries(name: str, of: Iterable[Member], level: int = 4) -> list[str]:
    """The properties in a list, then each method under its own heading."""
    listed, lines = [], []
    for member in of:
        if isinstance(member.value, property):
            kind = annotation_text(inspect.signature(member.function).return_annotation)
            text = "\n".join(markdown(member.doc, frozenset()))
            listed.append(f"- **{member.name}**: `{kind}`\\\n{indent(text, '  ')}")
        else:
            lines += _method(name, member, level)
    return [*(["Properties:", "", *listed, ""] if listed else []), *lines]


def _method(name: str, member: Member, level: int) -> list[str]:
    is_static = isinstance(member.value, staticmethod | classmethod)
    instance = INSTANCES.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    first = name if is_static else instance
    shown = first if member.name == "__call__" else f"{first}.{member.name}"
    bound = not isinstance(member.value, staticmethod)
    code = _code(signatures(shown, member.function, bound=bound))
    lines = markdown(member.doc, _words(member.function))
    return [f"{'#' * level} `{name}.{member.name}`", "", *code, *lines, ""]


def anchor(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _links(headings: Iterable[str], dropped: str = "") -> str:
    names = ((one.removeprefix(dropped), anchor(one)) for one in headings)
    return ", ".join(f"[{_link_text(name)}](#{to})" for name, to in names)


def _link_text(name: str) -> str:
    return f"`{name}`" if name.startswith("_") else name


# -- pages ----------------------------------------------------------------------------------------


def package_page(package: ModuleType) -> str:
    """The page of `tw.__all__`."""
    public = {name: getattr(package, name) for name in package.__all__}
    functions = {name: value for name, value in public.items() if inspect.isfunction(value)}
    kinds = {name: value for name, value in public.items() if inspect.isclass(value)}
    values = {name: value for name, value in public.items() if type(value) in kinds.values()}
    errors = {name: kind for name, kind in kinds.items() if issubclass(kind, Exception)}
    kinds = {name: kind for name, kind in kinds.items() if name not in errors}
    lines = [
        "# tilewright\n",
        "`import tilewright as tw`: every public name of the package. [te](te.md), the language\n"
        "of tensor expressions, and [Schedule](schedule.md) have pages of their own;\n"
        "`tw.__version__` is the version. A type that a signature names and that is not here is\n"
        "an inner one: what you pass or get, the text says. This page is generated:\n"
        "[how](README.md).\n",
        "| | |\n|---|---|",
        f"| functions | {_links([f'tw.{name}' for name in functions], 'tw.')} |",
        f"| values | {_links([f'tw.{name}' for name in values], 'tw.')} |",
    ]
    for name, kind in kinds.items():
        has = [f"{name}.{one.name}" for one in members(kind).values() if _is_method(one)]
        row = _links(has, f"{name}.") if name != "Schedule" else "[a page of its own](schedule.md)"
        lines.append(f"| [{name}](#{anchor(name)}) | {row} |")
    lines += [f"| errors | {_links(errors)}; [all codes](errors.md) |", "", "## Functions", ""]
    for name, function in functions.items():
        lines += function_entry(f"tw.{name}", function)
    lines += ["## Values", ""]
    for name, value in values.items():
        lines += value_entry(f"tw.{name}", value)
    return _page([*lines, "## Classes", "", *_classes(kinds), "## Errors", "", *_classes(errors)])


def _is_method(member: Member) -> bool:
    return not isinstance(member.value, property)


def _classes(kinds: dict[str, type]) -> Iterator[str]:
    for name, kind in kinds.items():
        if name == "Schedule":
            yield from ("### `Schedule`", "", "[It has a page of its own](schedule.md).", "")
        else:
            yield from class_entry(kind)


def language_page(language: ModuleType) -> str:
    """The page of `te.__all__`: a section for each module of the language."""
    sections: dict[str, list[str]] = {}
    for name in language.__all__:
        value = getattr(language, name)
        home = value.__module__ if inspect.isfunction(value) else "types"
        sections.setdefault(home.rpartition(".")[2], []).append(name)
    order = sorted(sections, key=lambda name: (name != "te", name == "types", name))
    lines = [
        "# te\n",
        "`from tilewright import te`.\n",
        *markdown(language.__doc__ or "", frozenset()),
    ]
    lines += ["", "This page is generated: [how](README.md).", "", "| | |", "|---|---|"]
    titles = {"te": "tensors and functions", "types": "types"}
    for section in order:
        names = [_heading(language, name) for name in sections[section]]
        lines.append(f"| {titles.get(section, section)} | {_links(names, 'te.')} |")
    for section in order:
        lines += ["", f"## {titles.get(section, section).capitalize()}", ""]
        for name in sections[section]:
            lines += _language_entry(name, getattr(language, name))
    return _page(lines)


def _heading(language: ModuleType, name: str) -> str:
    return f"te.{name}" if inspect.isfunction(getattr(language, name)) else name


def _language_entry(name: str, value: object) -> list[str]:
    if inspect.isfunction(value):
        return function_entry(f"te.{name}", value)
    if inspect.isclass(value):
        return class_entry(value)
    alias = re.sub(r"\b(?:\w+\.)+", "", str(value))
    return [f"### `{name}`", "", *_code([f"{name} = {alias}"])]


def schedule_page(kind: type) -> str:
    """The page of `tw.Schedule`: its methods in the sections of its source."""
    module = inspect.getmodule(kind)
    assert module is not None
    assert module.__file__ is not None
    sections: dict[str, list[Member]] = {}
    title = ""
    own = members(kind)
    for section, name in SECTION.findall(Path(module.__file__).read_text(encoding="utf-8")):
        title = section or title
        if name in own:
            sections.setdefault(title, []).append(own.pop(name))
    sections["record"] = list(own.values())
    name = kind.__name__
    lines = [f"# {name}\n", *markdown(module.__doc__ or "", frozenset()), ""]
    lines += [*_code([signature(name, kind, bound=False, result=False)])]
    lines += [*markdown(inspect.cleandoc(kind.__doc__ or ""), _words(kind)), ""]
    lines += [
        "Why a step is refused: [three reasons](../design/refusals.md), and "
        "[all codes](errors.md#schedule)."
    ]
    lines += ["This page is generated: [how](README.md).", "", "| | |", "|---|---|"]
    for title, of in sections.items():
        heads = [f"{name}.{one.name}" for one in of if _is_method(one)]
        lines.append(f"| [{title}](#{title}) | {_links(heads, f'{name}.')} |")
    for title, of in sections.items():
        lines += ["", f"## {title.capitalize()}", "", *member_entries(name, of, level=3)]
    return _page(lines)


def _page(lines: Iterable[str]) -> str:
    """The lines as a page, without two empty ones in a row."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"
