"""Which errors the sources raise, read from their text: each call with `code=...`, its class, its
message and its hints as templates.

A template is the text of the message with `{...}` where a value of the user's program comes in.
Followed are literals, f-strings, choices between them, local names, and functions of ours that
return them. What is none of these is a placeholder that bears the name of the expression, and the
entry says that the text is not in the sources (`is_literal`). Nothing is imported or run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import resolve_name
from pathlib import Path

from tests.reference.templates import shown, template


@dataclass(frozen=True)
class ErrorCall:
    """A place that makes an error. kind: of a refused step (`ScheduleError.kind`), else empty."""

    code: str
    error: str
    path: str
    messages: tuple[str, ...]
    hints: tuple[str, ...]
    kind: str = ""
    is_literal: bool = True


@dataclass(frozen=True)
class Maker:
    """A function that makes errors for others: it takes the code, and the message or a part of it.

    position: where calls pass that part, `self` not counted.
    """

    error: str
    text: str
    part: str
    position: int
    hints: tuple[str, ...]

    def message(self, part: str) -> str:
        """The whole message for what a call passes."""
        return self.text.replace(f"{{{self.part}}}", part)


class Module:
    """A file, parsed when somebody asks, with what stands around each of its nodes."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def above(self) -> dict[ast.AST, ast.AST]:
        """The node right around each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef]:
        """The functions and methods, by name."""
        return {
            node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)
        }

    @cached_property
    def imports(self) -> dict[str, str]:
        """The file from which each name is imported, where it is one of ours."""
        package = ".".join(("tilewright", *Path(self.path).parts[:-1]))
        found = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                source = resolve_name("." * node.level + (node.module or ""), package)
                path = "/".join(source.split(".")[1:]) + ".py"
                found.update({alias.asname or alias.name: path for alias in node.names})
        return found

    def around(self, node: ast.AST, kind: type[ast.AST]) -> ast.AST:
        """The innermost node of that kind around a node; the whole file where there is none."""
        while not isinstance(node, kind | ast.Module):
            node = self.above[node]
        return node

    def assigned(self, name: ast.Name) -> list[ast.expr]:
        """What a local name may hold where it is read: what the last assignment on every way there
        gave it, and what branches between gave it.
        """
        function = self.around(name, ast.FunctionDef)
        start, inner = 0, ast.AST()
        node: ast.AST = name
        while start == 0 and node is not function:
            node, inner = self.above[node], node
            for _, block in ast.iter_fields(node):
                if isinstance(block, list) and inner in block:
                    before = block[: block.index(inner)]
                    start = max((one.lineno for one in before if _given(one, name.id)), default=0)
        return [
            value
            for one in ast.walk(function)
            for value in _given(one, name.id)
            if start <= value.lineno and _end(value) < (name.lineno, name.col_offset)
        ]


class Sources:
    """The files of the package, by their paths from its root."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.modules = {path: Module(path, text) for path, text in texts.items()}
        self.coded = [module for module in self.modules.values() if "code=" in module.text]
        self.makers = dict(self._find_makers())
        self.carriers = dict(self._find_carriers())
        self.class_hints = dict(self._find_class_hints())

    @cached_property
    def calls(self) -> tuple[ErrorCall, ...]:
        """Every place that makes an error with a code that stands there."""
        return tuple(self._find_calls())

    def class_named(self, name: str) -> ast.ClassDef:
        """The definition of a class of errors."""
        head = f"\nclass {name}("
        module = next(one for one in self.modules.values() if head in one.text)
        return next(
            node
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and node.name == name
        )

    # -- one call ---------------------------------------------------------------------------------

    def _find_calls(self) -> Iterator[ErrorCall]:
        for module in self.coded:
            for call, code in _coded_calls(module.tree):
                literals = [node.value for node in ast.walk(code) if _is_text(node)]
                for literal in literals:
                    yield self._error_call(module, call, literal)
                if not literals:
                    yield from self._told_by_a_check(module, call, code)

    def _error_call(self, module: Module, call: ast.Call, code: str) -> ErrorCall:
        maker = self._maker(module, call)
        part = call.args[maker.position] if maker else call.args[0]
        messages = self.texts(module, part)
        hints = self.hints(module, _keyword(call, "hints"))
        error = maker.error if maker else self._class(module, call)
        return ErrorCall(
            code=code,
            error=error,
            path=module.path,
            messages=tuple(map(maker.message, messages)) if maker else messages,
            hints=hints or (maker.hints if maker else self.class_hints.get(error, ())),
            kind=_kind(_keyword(call, "kind")),
            is_literal=f"{{{shown(part)}}}" not in messages,
        )

    def _told_by_a_check(
        self, module: Module, call: ast.Call, code: ast.expr
    ) -> Iterator[ErrorCall]:
        """`problem = check(...)`, then `error(problem[0], code=problem[1])`: what `check` returns
        are pairs of a message and its code.
        """
        if not isinstance(code, ast.Subscript):
            return  # handed on by a maker or a carrier, whose callers have it
        maker = self._maker(module, call)
        assert isinstance(code.value, ast.Name)
        assert maker is not None, f"{module.path}:{call.lineno}: no maker of errors is called"
        for value in module.assigned(code.value):
            home, check = self._function(module, value)
            for pair in _returns(check):
                if _is_none(pair):
                    continue
                place = f"{home.path}:{pair.lineno}"
                assert isinstance(pair, ast.Tuple), f"{place}: expected a message and its code"
                said, name = pair.elts
                assert isinstance(name, ast.Constant), f"{place}: the code is no literal"
                messages = tuple(map(maker.message, self.texts(home, said)))
                yield ErrorCall(name.value, maker.error, home.path, messages, maker.hints)

    def _class(self, module: Module, call: ast.Call) -> str:
        name = ast.unparse(call.func)
        if name == "super().__init__":
            around = module.around(call, ast.ClassDef)
            assert isinstance(around, ast.ClassDef)
            return around.name
        name = self.carriers.get(name, name)
        assert name[0].isupper(), f"{module.path}:{call.lineno}: {name} makes an error of no class"
        return name

    # -- texts ------------------------------------------------------------------------------------

    def texts(self, module: Module, node: ast.expr) -> tuple[str, ...]:
        """The templates of a message; one placeholder where its text is not in the sources."""
        found = self._texts(module, node, {}, 4)
        return (f"{{{shown(node)}}}",) if found is None else tuple(dict.fromkeys(found))

    def _texts(
        self, module: Module, node: ast.expr, given: Mapping[str, Sequence[str]], depth: int
    ) -> Sequence[str] | None:
        """given: the texts of the arguments, in a function that is followed."""
        values = [node]
        match node:
            case ast.Constant() | ast.JoinedStr():
                return [template(node)]
            case ast.Name(id=name) if name in given:
                return given[name]
            case ast.IfExp():
                values = [node.body, node.orelse]
            case ast.Name():
                values = module.assigned(node)
                if not values:
                    module = self.modules.get(module.imports.get(node.id, ""), module)
                    values = [one for each in module.tree.body for one in _given(each, node.id)]
            case ast.Attribute(value=ast.Name(id="self")):
                values = list(_returns(module.functions.get(node.attr)))
            case ast.Call():
                home, function = self._function(module, node)
                values = [value for value in _returns(function) if not _is_none(value)]
                names = [] if function is None else _parameters(function)
                texts = (self.texts(module, one) for one in node.args)
                given = dict(zip(names, texts, strict=False))
                module = home
            case _:
                return None
        texts = [self._texts(module, value, given, depth - 1) for value in values if depth]
        if not texts or any(text is None for text in texts):
            return None
        return [one for text in texts if text is not None for one in text]

    def hints(self, module: Module, node: ast.expr | None, depth: int = 4) -> tuple[str, ...]:
        """The templates of all hints that may be given."""
        match node:
            case None:
                return ()
            case ast.Tuple() | ast.List():
                parts = node.elts
            case ast.IfExp():
                parts = [node.body, node.orelse]
            case ast.Starred() | ast.Subscript(value=ast.Tuple() | ast.Subscript()):
                parts = [node.value]
            case ast.GeneratorExp() | ast.ListComp():
                parts = [node.elt]
            case ast.Call(func=ast.Name(id="tuple")):
                parts = node.args
            case ast.Name() if depth and (values := module.assigned(node)):
                parts = values
            case ast.Constant(value=None | ""):
                return ()
            case _:
                return self.texts(module, node)
        hints = [hint for part in parts for hint in self.hints(module, part, depth - 1)]
        return tuple(dict.fromkeys(hints))

    # -- who makes errors -------------------------------------------------------------------------

    def _function(self, module: Module, call: ast.expr) -> tuple[Module, ast.FunctionDef | None]:
        """The function of ours that a call names, and the module in which it stands."""
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute):
            name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr
            home = self.modules.get(module.imports.get(name, ""), module)
            return home, home.functions.get(name)
        return module, None

    def _maker(self, module: Module, call: ast.Call) -> Maker | None:
        """The maker of errors that is called: of this file, or of one from which it imports."""
        name = ast.unparse(call.func).rpartition(".")[2]
        homes = (module.path, *module.imports.values())
        return next(
            (self.makers[key] for home in homes if (key := (home, name)) in self.makers), None
        )

    def _find_makers(self) -> Iterator[tuple[tuple[str, str], Maker]]:
        for module in self.coded:
            for function in module.functions.values():
                if "code" not in {one.arg for one in function.args.kwonlyargs}:
                    continue
                names = _parameters(function)
                taken = {*names, *(one.arg for one in function.args.kwonlyargs)}
                for call, code in _coded_calls(function):
                    passed_on = isinstance(code, ast.Name) and code.id == "code"
                    if function.name == "__init__" or not passed_on or not call.args:
                        continue
                    used = _names(call.args[0])
                    part = next(name for name in reversed(names) if name in used)
                    said = call.args[0]
                    is_text = isinstance(said, ast.JoinedStr)
                    text = template(said) if is_text else f"{{{shown(said)}}}"
                    hints = _keyword(call, "hints")
                    is_passed = hints is not None and not taken.isdisjoint(_names(hints))
                    yield (
                        (module.path, function.name),
                        Maker(
                            ast.unparse(call.func),
                            text,
                            part,
                            names.index(part),
                            () if is_passed else self.hints(module, hints),
                        ),
                    )

    def _find_class_hints(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The hints that a class of errors always gives."""
        for module in self.coded:
            for node in module.tree.body:
                for call, code in _coded_calls(node) if isinstance(node, ast.ClassDef) else ():
                    hints = _keyword(call, "hints")
                    is_own = ast.unparse(call.func) == "super().__init__" and not _is_text(code)
                    if is_own and isinstance(hints, ast.Tuple):
                        yield node.name, self.hints(module, hints)

    def _find_carriers(self) -> Iterator[tuple[str, str]]:
        """What is no error of ours and carries a code to one: `Error(..., code=fault.code)`."""
        for module in self.coded:
            carrying = module.functions.values() if ".code" in module.text else ()
            for function in carrying:
                kinds = {one.arg: one.annotation for one in function.args.args}
                for call, code in _coded_calls(function):
                    if isinstance(code, ast.Attribute) and isinstance(code.value, ast.Name):
                        annotation = kinds[code.value.id]
                        assert annotation is not None
                        yield ast.unparse(annotation), ast.unparse(call.func)


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _parameters(function: ast.FunctionDef) -> list[str]:
    return [one.arg for one in function.args.args if one.arg != "self"]


def _given(node: ast.AST, name: str) -> list[ast.expr]:
    """What a statement or `:=` assigns to a name, or appends to the list of that name."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            pairs = list(zip(targets, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            pairs = [(target, value)]
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
        case ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.Call(func=ast.Attribute(value=target, attr="append"), args=[value]):
            pairs = [(target, value)]
        case _:
            pairs = []
    return [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or 0, node.end_col_offset or 0


def _coded_calls(tree: ast.AST) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Each call with `code=...`, and that argument."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (code := _keyword(node, "code")) is not None:
            yield node, code


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == name), None)


def _returns(function: ast.FunctionDef | None) -> Iterable[ast.expr]:
    """What the `return` statements of a function return."""
    nodes = () if function is None else ast.walk(function)
    return [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _kind(node: ast.expr | None) -> str:
    """The names of `Kind` that an argument names."""
    nodes = () if node is None else ast.walk(node)
    names = [
        one.attr.lower()
        for one in nodes
        if isinstance(one, ast.Attribute)
        and isinstance(one.value, ast.Name)
        and one.value.id == "Kind"
    ]
    return " or ".join(names)
