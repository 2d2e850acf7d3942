"""GroupQueryAttention, against onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.graph.importers.onnx.rules.microsoft.contributed import (
    Attribute,
    Contributed,
    check_contributed,
    expected_of,
    feeds_of,
    model_of,
    random,
    refusal,
)
from tilewright.graph.compile import compile
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

HEADS, SHARED, DEPTH = 4, 2, 16
LONGEST = 32


def grouped(
    lengths: Sequence[int],
    rows: int,
    past: int | None = None,
    *,
    packed: bool = False,
    places: Array | None = None,
    bias: Array | None = None,
    sink: Array | None = None,
    norms: Sequence[Array] = (),
    **attributes: Attribute,
) -> Contributed:
    """A node. lengths: how many places each element of the batch has after the call; past: how many
    the cache has; None without one.
    """
    batch = len(lengths)
    q, k, v = (
        random(n, batch, rows, heads * DEPTH) for n, heads in enumerate((HEADS, SHARED, SHARED))
    )
    operands = [np.concatenate([q, k, v], axis=-1), None, None] if packed else [q, k, v]
    caches: list[Array | None] = [None, None]
    if past is not None:
        made = [random(n, batch, SHARED, past, DEPTH) for n in (4, 5)]
        for cache in made:  # onnxruntime writes zeros behind the last place
            for own, length in zip(cache, lengths, strict=True):
                own[:, max(length - rows, 0) :] = 0
        caches = [*made]
    tables = [random(n, LONGEST, DEPTH // 2) for n in (6, 7)]
    rotated = [*tables] if attributes.get("do_rotary") else [None, None]
    last = np.array([length - 1 for length in lengths], np.int32)
    total = np.array(max(lengths), np.int32)
    inputs = [*operands, *caches, last, total, *rotated, places, bias, sink]
    if norms:
        inputs += [None, None, *norms]
    counts = {"num_heads": HEADS, "kv_num_heads": SHARED}
    return Contributed("GroupQueryAttention", inputs, {**counts, **attributes}, (6,), 3)


@pytest.mark.needs_cc
def test_engines_begin_and_continue_a_cache() -> None:
    check_contributed(grouped([3, 3], 3), grouped([5, 3], 1, 8, do_rotary=1), engine=True)


def test_a_cache_is_begun_and_continued() -> None:
    check_contributed(
        grouped([3, 3], 3, 0, packed=True),
        grouped([3, 3], 3, 8),
        grouped([5, 5], 1, 4),
        grouped([5, 3], 1, 4),
        grouped([5, 3], 1, 8),
        grouped([6], 3, 8, do_rotary=1, rotary_interleaved=1),
    )


@pytest.mark.needs_cc
def test_a_cache_that_calls_share_may_be_filled_as_data_say() -> None:
    """How many places there are is an input: as many as the cache has, at most."""
    given = [grouped([5, 3], 1, 8, do_rotary=1), grouped([6], 3, 8)]
    nodes = [Contributed(n.operator, n.inputs, n.attributes, (), 3) for n in given]
    check_contributed(*nodes, engine=False)
    model, feeds = model_of(nodes[:1]), feeds_of(nodes[:1])
    engine = compile(model, cache=False)
    found = engine.run(feeds)
    for name, wanted in expected_of(nodes[:1], 17).items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(IndexError, match="total_sequence_length"):
        engine.run({**feeds, "n0_x6": np.array(9, np.int32)})


def test_rows_are_rotated_to_their_places() -> None:
    check_contributed(
        grouped([3, 3], 3, packed=True, do_rotary=1),
        grouped([6, 4], 1, 5, do_rotary=1, places=np.array([[3], [2]])),
        grouped([3, 3], 3, do_rotary=1, places=np.array([[3, 4, 5], [3, 4, 5]])),
    )


def test_scores_are_limited_masked_and_shared_with_a_sink() -> None:
    check_contributed(
        grouped([6], 1, 5, local_window_size=3),
        grouped([6], 6, local_window_size=2),
        grouped([6], 1, 5, softcap=2.0, scale=0.7),
        grouped([6, 4], 1, 5, bias=random(9, 2, 4, 1, 6), softcap=2.0),
        grouped([6, 4], 1, 8, bias=random(9, 1, 1, 1, 6)),
        grouped([5, 5], 5, bias=random(9, 2, 4, 5, 5)),
        grouped([6, 4], 1, 5, smooth_softmax=1),
        grouped([5, 5], 5, smooth_softmax=1),
        grouped([5, 5], 5, sink=random(8, HEADS)),
        grouped([3, 3], 3, causal=0),
    )


def test_rows_behind_a_prompt_mean_nothing() -> None:
    node = grouped([3, 2], 3)
    expected = expected_of((node,), 17)["n0_y0"]
    graph = import_onnx(model_of((node,)))
    feeds = feeds_of((node,))
    got = evaluate(graph, {name: feeds[name] for name in graph.inputs})["n0_y0"]
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1, :2], expected[1, :2], rtol=1e-4, atol=1e-5)


def test_queries_and_keys_may_be_normalised() -> None:
    scales = [random(n, DEPTH) for n in (8, 9)]
    plain, epsilon = grouped([3, 3], 3, do_rotary=1), 1e-3
    normed = []
    for x, scale in zip(plain.inputs[:2], scales, strict=True):
        assert x is not None
        heads = x.reshape(2, 3, -1, DEPTH)
        root = np.sqrt((heads**2).mean(axis=-1, keepdims=True) + epsilon)
        normed.append((heads / root * scale).reshape(x.shape))
    same = Contributed(
        "GroupQueryAttention", (*normed, *plain.inputs[2:]), plain.attributes, (6,), 3
    )
    node = grouped([3, 3], 3, do_rotary=1, norms=scales, qk_norm_epsilon=epsilon)
    check_contributed(  # onnxruntime has no kernel of this on a CPU
        Contributed(
            "GroupQueryAttention",
            node.inputs,
            node.attributes,
            (6,),
            3,
            expected=tuple(expected_of((same,), 17).values()),
        )
    )


def test_what_is_not_known_is_refused_by_name() -> None:
    assert "sliding_window_cache is 1" in refusal(grouped([3], 3, sliding_window_cache=1))
    assert "k_quant_type is 'PER_TENSOR'; known is 'NONE'" in refusal(
        grouped([3], 3, k_quant_type="PER_TENSOR")
    )
    node = grouped([3], 3)
    scaled = Contributed(
        node.operator, (*node.inputs, np.ones(1, np.float32)), node.attributes, (6,), 3
    )
    assert "it has the input k_scale" in refusal(scaled)
    open_total = Contributed(node.operator, node.inputs, node.attributes, (), 3)
    assert "input 'n0_x6' is not a constant" in refusal(open_total)
