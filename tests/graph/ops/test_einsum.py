"""Einsum over equations, against ONNX's reference; what it becomes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.errors import ModelError
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.types import Array

from ..cases import Case, check_case, check_compiled, model_of

RNG = np.random.default_rng(0)
SIZES = {label: size for size, label in enumerate("abcdefghij", 2)}


def operand(term: str, dtype: str = "float32") -> Array:
    """Of the sizes of the letters; '.' is an axis of 3, '1' one of 1."""
    shape = [{".": 3, "1": 1}.get(label) or SIZES[label] for label in term]
    return RNG.integers(-3, 4, shape).astype(dtype)


def case(equation: str, *operands: str, dtype: str = "float32") -> Case:
    arrays = tuple(operand(term, dtype) for term in operands)
    return Case("Einsum", arrays, {"equation": equation}, (12,))


ONE = [
    case("ab", "ab"),
    case("ba", "ab"),
    case("ab->ba", "ab"),
    case("abc->b", "abc"),
    case("ab->", "ab"),
    case("->", ""),
    case("aa->a", "aa"),
    case("aa", "aa"),
    case("abaca->abc", "abaca"),
    case("...aa->...a", "..aa"),
    case("a...->...", "a.."),
    case(" a b -> b a", "ab"),
]
TWO = [
    case("ab,bc->ac", "ab", "bc"),
    case("ab,bc", "ab", "bc"),
    case("ab,bc->ca", "ab", "bc"),
    case("ab,cb->ac", "ab", "cb"),
    case("abc,acd->abd", "abc", "acd"),
    case("abcd,aecd->abce", "abcd", "aecd"),
    case("abcd,adbe->acbe", "abcd", "adbe"),
    case("...ab,...bc->...ac", "..ab", ".bc"),
    case("...ab,...bc", "1.ab", ".1bc"),
    case("ab,ab->", "ab", "ab"),
    case("ab,ab->ab", "ab", "ab"),
    case("a,b->ab", "a", "b"),
    case("a,b->ba", "a", "b"),
    case("ab,b->a", "ab", "b"),
    case("a,ab->b", "a", "ab"),
    case("abc,ad->dc", "abc", "ad"),
    case("aab,bc->ac", "aab", "bc"),
    case("ab,bc->ac", "a1", "bc"),
    case("a,->a", "a", ""),
    case("a,a", "a", "a"),
    case("abcd,cde->abe", "abcd", "cde"),
]
THREE = [
    case("ab,bc,cd->ad", "ab", "bc", "cd"),
    case("ab,cb,dc->da", "ab", "cb", "dc"),
    case("a,b,c->cab", "a", "b", "c"),
    case("ab,ac,ad->bcd", "ab", "ac", "ad"),
    case("ab,ab,ab->b", "ab", "ab", "ab"),
]
INTEGERS = [
    case("ab,bc->ac", "ab", "bc", dtype=dtype) for dtype in ("int8", "int32", "int64", "uint16")
]
EMPTY = Case(
    "Einsum",
    (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)),
    {"equation": "ab,bc->ac"},
    (12,),
)
CASES = [*ONE, *TWO, *THREE, *INTEGERS, EMPTY, case("ab,bc->ac", "ab", "bc", dtype="float64")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.attributes['equation']} {case}")
def test_equations_agree_with_the_reference(case: Case) -> None:
    check_case(case)


@pytest.mark.needs_cc
def test_compiled_equations_agree_with_float64() -> None:
    check_compiled(CASES)


@pytest.mark.parametrize(
    ("found", "products"),
    [
        (case("abcd,aecd->abce", "abcd", "aecd"), ["MatMul"]),
        (case("abcd,adbe->acbe", "abcd", "adbe"), ["MatMul"]),
        (case("ab,bc,cd->ad", "ab", "bc", "cd"), ["MatMul", "MatMul"]),
        (case("a,b->ab", "a", "b"), ["Mul"]),
        (case("ab,ab->a", "ab", "ab"), ["Mul", "ReduceSum"]),
        (case("abaca->abc", "abaca"), []),
    ],
    ids=str,
)
def test_products_run_where_products_run(found: Case, products: list[str]) -> None:
    model, _ = model_of([found], 12)
    kinds = [node.op.title for node in import_onnx(model).nodes]
    assert [kind for kind in kinds if kind in ("MatMul", "Mul", "ReduceSum")] == products


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (case("ab,b->a", "ab"), "2 terms for 1 inputs"),
        (case("a->a", "ab"), "'a' is the term of an input with 2 axes"),
        (case("a1->a", "ab"), "'a1' is no row of letters with at most one '...'"),
        (case("ab->a.b", "ab"), "'a.b' is no row of letters with at most one '...'"),
        (case("ab,bc->ac", "ab", "ac"), "axis 'b' has sizes 3 and 2"),
        (case("ab->aa", "ab"), "'aa' names an axis twice, or one that no input has"),
        (case("ab->c", "ab"), "'c' names an axis twice, or one that no input has"),
    ],
    ids=str,
)
def test_an_equation_that_does_not_fit_is_refused(found: Case, problem: str) -> None:
    model, _ = model_of([found], 12)
    with pytest.raises(ModelError) as refused:
        import_onnx(model)
    equation = str(found.attributes["equation"])
    assert str(refused.value) == (
        f"ModelError: model: node 'y0' (Einsum) has the equation '{equation}': {problem}. "
        "[onnx-einsum]"
    )
