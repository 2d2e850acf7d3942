"""graph/winograd.py: the same sums by fewer multiplications: values, exactness, what it is not for,
how its rule schedules it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tilewright.graph.build import GraphBuilder
from tilewright.graph.choose import choose
from tilewright.graph.compile import compile
from tilewright.graph.express import express
from tilewright.graph.form import Form, form_of
from tilewright.graph.fusion import fuse
from tilewright.graph.groups import Group
from tilewright.graph.ir import Graph
from tilewright.graph.ops.activation import Relu
from tilewright.graph.ops.arithmetic import Add
from tilewright.graph.ops.convolution import Conv
from tilewright.graph.pricing import Pricer
from tilewright.graph.types import TensorType
from tilewright.graph.winograd import DATA, RESULT, WEIGHTS, as_winograd
from tilewright.schedule.rules.default import default_schedule, rule_for
from tilewright.tir.evaluate import evaluate
from tilewright.tir.func import PrimFunc
from tilewright.tir.parser import parse
from tilewright.tir.target import Target

from ..schedule.rule_checks import check

TARGETS = ["c:scalar", "c:avx2", "c:avx512"]
PLAIN = Conv(pads=(1, 1, 1, 1), layout="NHWC")


def network(
    data: Sequence[int], outputs: int, op: Conv = PLAIN, kernel: int = 3, *, fixed: bool = True
) -> Graph:
    """relu(conv(x) + r), with a bias."""
    builder = GraphBuilder("net")
    rng = np.random.default_rng(0)
    x = builder.input("x", TensorType("float32", tuple(data)))
    shape = (kernel, kernel, data[-1] // op.groups, outputs)
    if op.layout == "NCHW":
        shape = (outputs, data[1] // op.groups, kernel, kernel)
    weights = rng.integers(-3, 4, shape).astype("float32")
    w = (
        builder.constant("w", weights)
        if fixed
        else builder.input("w", TensorType("float32", shape))
    )
    bias = builder.constant("b", rng.integers(-3, 4, outputs).astype("float32"))
    y = builder.add(op, x, w, bias)
    r = builder.input("r", builder.types[y])
    return builder.finish((builder.add(Relu(), builder.add(Add(), y, r)),))


def form_in(graph: Graph) -> Form:
    return form_of(graph, Group(graph.nodes))[0]


def function(data: Sequence[int], outputs: int, op: Conv = PLAIN) -> PrimFunc:
    """The convolution by Winograd's algorithm."""
    found = as_winograd(form_in(network(data, outputs, op)))
    assert found is not None
    return express(found)


def test_the_transforms_compute_a_correlation() -> None:
    rng = np.random.default_rng(0)
    d, w = rng.integers(-9, 10, (4, 4)), rng.integers(-9, 10, (3, 3))
    b, g, a = (np.array(matrix, float) for matrix in (DATA, WEIGHTS, RESULT))
    expected = [[np.sum(d[i : i + 3, j : j + 3] * w) for j in range(2)] for i in range(2)]
    np.testing.assert_array_equal(a @ ((g @ w @ g.T) * (b @ d @ b.T)) @ a.T, expected)


@pytest.mark.parametrize(
    ("data", "pads"),
    [
        ((1, 8, 8, 4), (1, 1, 1, 1)),
        ((2, 7, 5, 3), (1, 1, 1, 1)),
        ((1, 6, 9, 2), (0, 0, 0, 0)),
        ((1, 5, 4, 2), (2, 0, 1, 2)),
        ((1, 1, 1, 2), (1, 1, 1, 1)),
        ((1, 3, 1, 1), (0, 2, 0, 0)),
    ],
)
def test_integers_give_exactly_what_the_convolution_gives(
    data: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    form = form_in(network(data, 5, replace(PLAIN, pads=pads)))
    found = as_winograd(form)
    assert found is not None
    rng = np.random.default_rng(1)
    arrays = [rng.integers(-9, 10, o.type.shape).astype("float32") for o in form.operands]
    (direct,), (fast,) = (evaluate(express(f), arrays).values() for f in (form, found))
    np.testing.assert_array_equal(fast, direct)


@pytest.mark.parametrize(
    "graph",
    [
        network((1, 4, 4, 2), 3, replace(PLAIN, strides=(2, 2))),
        network((1, 4, 4, 2), 3, replace(PLAIN, strides=(1, 2))),
        network((1, 6, 6, 2), 3, replace(PLAIN, dilations=(2, 2))),
        network((1, 4, 4, 2), 4, replace(PLAIN, groups=2)),
        network((1, 4, 4, 2), 3, replace(PLAIN, pads=(2, 2, 2, 2)), kernel=5),
        network((1, 4, 4, 2), 3, replace(PLAIN, pads=(0, 0, 0, 0)), kernel=1),
        network((1, 2, 4, 4), 3, replace(PLAIN, layout="NCHW")),
        network((1, 4, 4, 2), 3, fixed=False),
    ],
    ids=["stride", "one stride", "dilated", "grouped", "5x5", "1x1", "NCHW", "weights that change"],
)
def test_other_convolutions_have_no_such_form(graph: Graph) -> None:
    assert as_winograd(form_in(graph)) is None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("data", "outputs"), [((1, 6, 6, 16), 16), ((2, 5, 7, 5), 3), ((1, 9, 4, 18), 20)]
)
def test_its_schedule_is_right(data: tuple[int, ...], outputs: int, target: str) -> None:
    func = function(data, outputs)
    assert rule_for(func).name == "winograd"
    check(func, target)


@pytest.mark.parametrize("together", [0, 1, 2])
def test_rows_of_tiles_pass_through_all_stages_together_or_each_stage_runs_alone(
    together: int,
) -> None:
    class Chosen:
        def choose(self, step: int, candidates: Sequence[object], default: int) -> int:
            return candidates.index(together) if together in candidates else default

    sch = check(function((1, 8, 8, 16), 16), "c:avx512", Chosen())
    roots = [tuple(loop.name for loop in sch.loops(name)) for name in sch.blocks()]
    tiles = next(name for name in sch.blocks() if name.endswith("_tiles"))
    products = next(name for name in sch.blocks() if name.endswith("_products"))
    shared = sch.loops(tiles)[1] == sch.loops(products)[1]
    assert shared == bool(together), roots


def test_transforms_stay_in_registers_and_keep_the_vectors_of_the_channels() -> None:
    text = str(default_schedule(function((1, 8, 8, 16), 16), Target.parse("c:avx512")).func)
    assert 'winograd_rows = alloc(float32[4, 1, 4, 10, 16], "register")' in text
    assert 'winograd_joined = alloc(float32[2, 4, 1, 4, 4, 16], "register")' in text


def test_the_schedule_does_not_depend_on_names() -> None:
    func = function((1, 8, 8, 16), 32)
    renamed = parse(str(func).replace("winograd", "other"))
    target = Target.parse("c:avx512")
    one, two = (default_schedule(f, target) for f in (func, renamed))
    assert str(one.func).replace("winograd", "other") == str(two.func)


def test_a_long_convolution_is_cheaper_so_but_a_strict_build_sums_as_it_is_written() -> None:
    graph = network((1, 28, 28, 64), 64)
    target = Target.parse("c:avx512")
    titles = [
        choose(graph, fuse(graph).groups, Pricer(target, strict=strict))[0].chosen.title
        for strict in (False, True)
    ]
    assert titles == ["Conv+Add+Relu by Winograd", "Conv+Add+Relu"]


@pytest.mark.needs_cc
def test_an_engine_has_equal_bits_for_any_number_of_threads_and_every_row() -> None:
    rng = np.random.default_rng(2)
    graph = network((3, 14, 14, 32), 32)
    engine = compile(graph, cache=False)
    assert "by Winograd" in str(engine.explain())
    one = {n: rng.standard_normal((1, 14, 14, 32), dtype="float32") for n in graph.inputs}
    inputs = {name: np.repeat(array, 3, axis=0) for name, array in one.items()}
    results = [engine.run(inputs, threads=n)[graph.outputs[0]] for n in (1, 2, 3)]
    assert len({row.tobytes() for result in results for row in result}) == 1
    assert engine.verify(inputs)
    strict = compile(graph, cache=False, strict=True)
    assert "by Winograd" not in str(strict.explain())
    difference = np.abs(strict.run(inputs)[graph.outputs[0]] - results[0]).max()
    assert 0 < difference < 1e-5 * np.abs(results[0]).max()
