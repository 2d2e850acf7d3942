"""schedule/rules recognise structure: neither names, nor the order of parameters and of operands,
nor the extents of a benchmark change what a rule does.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.schedule.rules.default import RULES, default_schedule, rule_for
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Add, Expr, Max, Min, Mul
from tilewright.tir.func import PrimFunc
from tilewright.tir.node import Node
from tilewright.tir.parsing.parser import parse
from tilewright.tir.stmt import Block, Store
from tilewright.tir.target.target import Target
from tilewright.tir.visit import transform, walk

from ....driver.kernels import KERNELS
from ... import programs

TARGETS = ("c:avx512+vnni", "c:avx2")
CORPUS: dict[str, Callable[[], PrimFunc]] = {
    **KERNELS,
    "square": lambda: programs.matmul(40, 48, 64),
    "long sum": lambda: programs.matmul(9, 21, 1100),
    "then relu": lambda: programs.matmul_relu(12, 33, 20),
    "groups": lambda: programs.conv(7, 6, 3, 8, groups=2),
    "windows": lambda: programs.pool(9, 8, 20, pad=1),
    "chain": lambda: programs.chain(70, 90),
    "several outputs": lambda: programs.moments(6, 29),
    "scan": lambda: programs.running(9, 21, axis=1),
    "two states": lambda: programs.cell(5, 43),
    "gathered": lambda: programs.gathered(9, 21, 12),
}
OTHER = re.compile(r"zz(\d+)yy")


def names_of(func: PrimFunc) -> list[str]:
    """The names of a function's tensors, blocks and axes, and its own."""
    found = {func.name}
    for node in walk(func.body):
        if isinstance(node, Block):
            found |= {node.name, *(it.var.name for it in node.iters)}
        if isinstance(node, Load | Store):
            found.add(node.buffer.name)
        var = getattr(node, "var", None)
        if var is not None:
            found.add(var.name)
    return sorted(found | {p.name for p in func.parameters})


def renamed(func: PrimFunc, rng: random.Random) -> tuple[PrimFunc, dict[str, str]]:
    """The function under names without meaning, in another order of the alphabet; and the names
    that they stand for. A block's axis v... keeps its v, which steps leave out.
    """
    names = sorted({re.sub("^v(?=.)", "", name) for name in names_of(func)})
    numbers = rng.sample(range(100, 999), len(names))
    new = {name: f"zz{number}yy" for name, number in zip(names, numbers, strict=True)}
    any_name = "|".join(map(re.escape, names))
    words = re.compile(rf"(?<=\bv)(?:{any_name})\b|\b(?:{any_name})\b(?!\()")
    head, _, body = str(func).partition("(")
    text = f"def {new[func.name]}({words.sub(lambda m: new[m[0]], body)}"
    assert head.startswith("def ")
    return parse(text), {value: key for key, value in new.items()}


def permuted(func: PrimFunc, rng: random.Random) -> PrimFunc:
    """The function with its inputs in another order."""
    inputs = [p for p in func.parameters if p.role != "output"]
    rest = [p for p in func.parameters if p.role == "output"]
    return replace(func, parameters=(*rng.sample(inputs, len(inputs)), *rest))


def commuted(func: PrimFunc) -> PrimFunc:
    """The function with the operands of sums, products, minima and maxima of data in the other
    order; what a reduction adds comes behind its accumulator, as te has it.
    """

    def data(store: Store) -> Node:
        def rule(node: Node) -> Node:
            if not isinstance(node, Add | Mul | Min | Max) or node.dtype.scalar == "int64":
                return node
            sides = (node.a, node.b)
            own = any(isinstance(x, Load) and x.buffer is store.buffer for x in sides)
            return node if own else type(node)(node.b, node.a)

        return Store(store.buffer, store.indices, _outside_of_indices(store.value, rule))

    return func.with_body(transform(func.body, lambda n: data(n) if isinstance(n, Store) else n))


def _outside_of_indices(expr: Expr, rule: Callable[[Node], Node]) -> Expr:
    if isinstance(expr, Load) or expr.dtype.is_bool:
        return expr
    inner = expr.map_children(lambda c: _outside_of_indices(c, rule) if isinstance(c, Expr) else c)
    result = rule(inner)
    assert isinstance(result, Expr)
    return result


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CORPUS)
def test_names_and_orders_leave_the_schedule_the_same(name: str, target: str) -> None:
    machine, rng = Target.parse(target), random.Random(name)
    func = CORPUS[name]()
    expected = list(default_schedule(func, machine).steps)
    other, meant = renamed(commuted(permuted(func, rng)), rng)
    assert rule_for(other, machine).name == rule_for(func, machine).name
    steps = default_schedule(other, machine).steps
    assert [OTHER.sub(lambda m: meant[m[0]], step) for step in steps] == expected


def test_every_rule_is_in_the_corpus() -> None:
    assert {rule_for(made()).name for made in CORPUS.values()} == {rule.name for rule in RULES}


SMALL = {*range(-1, 9), 16, 32}  # counts, ranks, halves, bits
LARGEST = 32  # of a constant that need not be a power of two


def constants(path: Path) -> list[tuple[str, ast.expr, bool]]:
    """The constants of a module: name, value, and whether a comment stands beside or above."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        (
            node.targets[0].id,
            node.value,
            "#" in lines[node.lineno - 1] or lines[node.lineno - 2].startswith("#"),
        )
        for node in ast.parse("\n".join(lines)).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]


def numbers(node: ast.AST) -> list[int]:
    """The whole numbers in a piece of source."""
    found = (n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
    return [value for value in found if isinstance(value, int) and not isinstance(value, bool)]


@pytest.fixture(scope="module")
def rules(root: Path) -> list[Path]:
    """The modules of schedule/rules."""
    return sorted((root / "schedule" / "rules").glob("*.py"))


def test_rules_know_no_extent_of_a_benchmark(rules: list[Path]) -> None:
    """In functions there are small numbers alone; larger ones are constants with a reason, and
    those above 32 sizes of the machine, which are powers of two.
    """
    for path in rules:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign):
                assert set(numbers(node)) <= SMALL, f"{path.name}:{node.lineno}"
        for name, value, _ in constants(path):
            large = [n for n in numbers(value) if n > LARGEST and n & (n - 1)]
            assert not large, f"{path.name}: {name}"


def test_each_number_that_a_rule_decides_by_is_explained(rules: list[Path]) -> None:
    silent = [
        f"{path.name}: {name}"
        for path in rules
        for name, value, explained in constants(path)
        if numbers(value) and isinstance(value, ast.Constant) and not explained
    ]
    assert silent == []
