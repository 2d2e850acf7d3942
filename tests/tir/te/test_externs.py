"""tir/te/externs.py: a C function as one block: text, values by its reference; refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tilewright.tir.errors import IRError
from tilewright.tir.func import PrimFunc
from tilewright.tir.interpreter.interpreter import interpret
from tilewright.tir.parsing.parser import ParseError, parse
from tilewright.tir.reference.error_bound import reference
from tilewright.tir.reference.evaluate import evaluate
from tilewright.tir.stmt import Extern
from tilewright.tir.te import te
from tilewright.tir.te.te import Tensor
from tilewright.tir.text.canonical import workload_key
from tilewright.tir.text.equal import equal
from tilewright.tir.verify.verify import Stage, VerificationError, verify
from tilewright.tir.visit import free_vars, loads, replace_stmt, stores
from tilewright.tir.work.work import bytes_moved, operations

LARGEST = """\
void largest(const float *x, const int *skip, float *value, int *place)
{
    for (int i = 0; i < 4; i++) {
        place[i] = *skip;
        for (int j = *skip; j < 6; j++)
            if (x[6 * i + j] > x[6 * i + place[i]])
                place[i] = j;
        value[i] = x[6 * i + place[i]];
    }
}
"""


def largest_of(x: np.ndarray, skip: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    place = x[:, int(skip) :].argmax(axis=1) + skip
    return x[np.arange(len(x)), place], place


def called(**changes: object) -> tuple[Tensor, Tensor]:
    """The largest of each row of X / 2 and where it is, after the first K."""
    x, skip = te.placeholder((4, 6), "float32", name="X"), te.placeholder((), "int32", name="K")
    half = te.compute((4, 6), lambda i, j: x[i, j] * 0.5, name="H")
    given: dict[str, object] = {
        "shape": ((4,), 4),
        "dtype": ("float32", "int32"),
        "inputs": (half, skip),
        "source": LARGEST,
        "symbol": "largest",
        "reference": largest_of,
        "name": ("V", "P"),
    }
    return te.extern(**{**given, **changes})  # type: ignore[call-overload,no-any-return]


def of(*outputs: Tensor, name: str = "f") -> PrimFunc:
    """The function of these outputs and all the placeholders behind them."""
    found: dict[Tensor, None] = {}
    stack = list(outputs)
    while stack:
        tensor = stack.pop(0)
        if tensor.computation is None:
            found.setdefault(tensor)
        else:
            stack += tensor.computation.inputs
    return te.func(*found, *outputs, name=name)


def placed() -> PrimFunc:
    value, place = called()
    kept = te.compute((4,), lambda i: value[i] + te.cast(place[i], "float32"), name="Y")
    return of(kept, place)


GIVEN = (
    np.array(2, np.int32),
    np.random.default_rng(1).integers(-40, 40, (4, 6)).astype(np.float32),
)


def test_it_is_one_block_without_loops() -> None:
    func = placed()
    assert str(func) == (
        "def f(K: int32[()], X: float32[4, 6], Y: output(float32[4]), P: output(int32[4])):\n"
        '    H = alloc(float32[4, 6], "global")\n'
        '    V = alloc(float32[4], "global")\n'
        "    for i in range(4):\n"
        "        for j in range(6):\n"
        '            with block("H", vi=spatial(4, i), vj=spatial(6, j)):\n'
        "                H[vi, vj] = X[vi, vj] * 0.5\n"
        '    with block("V"):\n'
        '        extern("largest", "fa2599e0ae3d64f8", (H, K), (V, P))\n'
        "    for i in range(4):\n"
        '        with block("Y", vi=spatial(4, i)):\n'
        '            Y[vi] = V[vi] + cast(P[vi], "float32")'
    )
    verify(func, Stage.TENSOR)
    assert [one.symbol for one in func.externs] == ["largest"]


def test_a_walk_meets_what_it_reads_and_writes() -> None:
    func = placed()
    call = func.block("V").body
    assert isinstance(call, Extern)
    assert [load.buffer.name for load in loads(call)] == ["H", "K"]
    assert [store.buffer.name for store in stores(call)] == ["V", "P"]
    assert not free_vars(call)
    assert bytes_moved(func) == 4 * (24 + 1 + 4 + 4)
    assert operations(func) == 24 + 4


def test_its_text_is_read_back_where_the_function_is_given() -> None:
    func = placed()
    assert equal(parse(str(func), func.externs), func)
    with pytest.raises(ParseError) as error:
        parse(str(func))
    assert str(error.value) == (
        "ParseError: parser: the text calls the C function 'largest' (fa2599e0ae3d64f8), which it "
        "does not hold; given are none. [parse-extern]\n"
        "  in line 9:\n"
        '      extern("largest", "fa2599e0ae3d64f8", (H, K), (V, P))\n'
        "  Hint: parse(text, externs=func.externs), with the function that was printed."
    )
    others = tuple(replace(one, source=one.source + "\n") for one in func.externs)
    with pytest.raises(ParseError, match="given are 'largest' "):
        parse(str(func), others)


def test_the_workload_is_another_one_with_another_c_text() -> None:
    longer = of(*called(source=LARGEST + "\n"))
    same = of(*called(reference=lambda *x: largest_of(*x), name=("A", "B")))
    assert workload_key(of(*called())) == workload_key(same)
    assert workload_key(of(*called())) != workload_key(longer)
    assert not equal(of(*called()), longer)


def test_its_values_are_those_of_the_reference() -> None:
    func = placed()
    skip, x = GIVEN
    value, place = largest_of(x * np.float32(0.5), skip)
    for checked in (False, True):
        y, p = interpret(func, *GIVEN, checked=checked)
        np.testing.assert_array_equal(y, value + place)
        np.testing.assert_array_equal(p, place)
    found = evaluate(func, GIVEN, intermediates=True)
    np.testing.assert_array_equal(found["V"], value)
    wide = evaluate(func, GIVEN, "float64", intermediates=True)
    assert (wide["V"].dtype, wide["P"].dtype) == (np.float64, np.int32)
    assert reference(func, GIVEN).compare([found["Y"], found["P"]])
    assert not reference(func, GIVEN).compare([found["Y"], found["P"][::-1]])


def test_the_checked_interpreter_sees_what_it_reads() -> None:
    text = str(placed()).replace("range(6)", "range(5)")
    with pytest.raises(IRError) as error:
        interpret(parse(text, placed().externs), *GIVEN, checked=True)
    assert "'H'[0, 5] is read before it is written" in str(error.value)
    assert 'extern("largest"' in str(error.value)


def test_of_a_tensor_without_elements_nothing_is_read() -> None:
    x = te.placeholder((0, 3), "float32", name="X")
    y = te.extern(
        3,
        "float32",
        x,
        source="void sums(const float *x, float *y);",
        symbol="sums",
        reference=lambda rows: rows.sum(axis=0),
        name="Y",
    )
    (found,) = interpret(of(y), np.empty((0, 3), np.float32), checked=True)
    assert found.tolist() == [0, 0, 0]


def _moved(change: Callable[[Extern], Extern]) -> PrimFunc:
    func = placed()
    block = func.block("V")
    assert isinstance(block.body, Extern)
    return func.with_body(replace_stmt(func.body, block, replace(block, body=change(block.body))))


@pytest.mark.parametrize(
    ("func", "problem"),
    [
        (
            _moved(lambda call: replace(call, outputs=call.inputs[:1])),
            "'largest' writes what it reads, or nothing; expected tensors of its own",
        ),
        (
            parse(
                str(placed()).replace(
                    '    with block("V"):\n', '    for q in range(1):\n     with block("V"):\n'
                ),
                placed().externs,
            ),
            "'largest' is called inside a loop or a branch; expected at the root",
        ),
        (
            parse(
                str(placed()).replace('(float32[4], "g', '(float32[4], "thread") #'),
                placed().externs,
            ),
            "'largest' is handed 'V'; expected a whole tensor in scope",
        ),
    ],
    ids=["in place", "in a loop", "of a thread"],
)
def test_a_call_in_the_wrong_place_is_a_defect(func: PrimFunc, problem: str) -> None:
    with pytest.raises(VerificationError) as error:
        verify(func, Stage.SCHEDULED)
    assert str(error.value).startswith(f"VerificationError: verify: {problem}. [verify-extern]\n")


def _size_of_a_call() -> object:
    n = te.dim("n", 1, 9)
    return called(shape=((n,), 4))


def _input_of_a_call() -> object:
    return called(inputs=(te.placeholder((te.dim("n", 1, 9),), "float32", name="Z"),))


def _one_symbol_twice() -> object:
    value, _ = called()
    other, _ = called(source=LARGEST + "\n", name=("W", "Q"))
    return of(te.compute((4,), lambda i: value[i] + other[i], name="Y"), name="both")


REFUSED: dict[str, Callable[[], object]] = {
    "fewer types than names": lambda: called(dtype=("float32",)),
    "one shape for several": lambda: called(shape=4),
    "a size that a call decides": _size_of_a_call,
    "an input of such a size": _input_of_a_call,
    "an element": lambda: called(inputs=(te.placeholder((2,), "float32", name="Z")[0],)),
    "a state": lambda: called(inputs=te.state((2,), "float32", name="T")),
    "no text": lambda: called(source=None),
    "no symbol": lambda: called(symbol=3),
    "no reference": lambda: called(reference="numpy.sort"),
    "a text without the symbol": lambda: called(symbol="smallest"),
    "a symbol of ours": lambda: called(symbol="tw_x", source="void tw_x(const float *, float *);"),
    "one symbol, two texts": _one_symbol_twice,
}


def test_each_refusal_has_its_text(golden: Callable[[str, str], None]) -> None:
    texts = []
    for name, make in REFUSED.items():
        with pytest.raises(IRError) as error:
            make()
        texts.append(f"# {name}\n{error.value}")
    golden("errors/te_extern.txt", "\n\n".join(texts))


def test_one_text_may_serve_twice() -> None:
    value, _ = called()
    other, _ = called(name=("W", "Q"), inputs=value.computation.inputs)  # type: ignore[union-attr]
    func = of(te.compute((4,), lambda i: value[i] + other[i], name="Y"))
    assert len(func.externs) == 1
    assert [b.name for b in func.blocks if isinstance(b.body, Extern)] == ["V", "W"]
