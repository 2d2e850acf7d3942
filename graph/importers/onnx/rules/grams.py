"""The rule of TfIdfVectorizer: how often each of many lists of words, which are numbers, occurs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from .....tir.sizes import closed
from ....errors import ModelError
from ....ops.functions import Cast
from ....ops.logic import And, Equal
from ....ops.movement import Concat, Identity, Reshape
from ....ops.reduction import ReduceSum
from ....ops.repetition import Expand
from ....types import Splat
from ...limits import TEXT
from ..node import NodeReader, NotSupported
from .rule import ImportRule, Result

_MODES = ("TF", "IDF", "TFIDF")
Grams = Mapping[tuple[int, ...], tuple[int, float]]  # with the place and the weight of each


def _vectorizer(node: NodeReader) -> Result:
    """[C] or [N, C] -> [places] or [N, places]: the numbers of the grams, weighted. The weights are
    those of the grams, in their order, as ONNX says and onnxruntime does.
    """
    mode = node.text("mode", "")
    if node.texts("pool_strings"):
        raise NotSupported("its pool is strings", TEXT)
    if mode not in _MODES:
        raise NotSupported(f"mode is '{mode}'; known are {', '.join(_MODES)}")
    x = node.type(0)
    if x.rank not in (1, 2) or x.is_float:
        raise ModelError(
            f"model: {node.title} reads '{node.value(0)}' of type {x}; expected integers of one or "
            "two axes.",
            code="onnx-grams-input",
        )
    grams = _read_grams(node, weighted=mode != "TF" and node.given("weights"))
    taken = [place for place, _ in grams.values()]
    if mode == "IDF" and len(set(taken)) < len(taken):
        raise NotSupported("its mode is IDF, and several grams have one place")
    return Identity(), (_places(node, grams, once=mode == "IDF"),)


def _read_grams(node: NodeReader, *, weighted: bool) -> Grams:
    """The grams of the lengths that count. Raises: ModelError where the attributes do not fit."""
    pool, begins = node.integers("pool_int64s", ()), node.integers("ngram_counts")
    places = node.integers("ngram_indexes")
    ends = (*begins[1:], len(pool))
    runs = [range(begin, end) for begin, end in zip(begins, ends, strict=True)]
    least, most = node.integer("min_gram_length"), node.integer("max_gram_length")
    weights = node.reals("weights") if weighted else (1.0,) * len(places)
    found: dict[tuple[int, ...], tuple[int, float]] = {}
    number, fitting = 0, bool(places) and min(places, default=0) >= 0 and 1 <= least <= most
    fitting = fitting and len(weights) == len(places) and all(map(math.isfinite, weights))
    for length, run in enumerate(runs, 1):
        fitting = fitting and len(run) % length == 0 and run.stop <= len(pool) and run.start >= 0
        for at in run[::length] if fitting else ():
            if number >= len(places):
                fitting = False
                break
            if least <= length <= most:
                found[pool[at : at + length]] = places[number], weights[number]
            number += 1
    if not fitting:
        raise ModelError(
            f"model: {node.title} has a pool of {len(pool)} numbers, which begins at "
            f"{list(begins)} for the grams of each length, {len(places)} places and "
            f"{len(weights)} weights; expected whole grams, and a place and a finite weight for "
            "each.",
            code="onnx-grams",
        )
    return found


def _places(node: NodeReader, grams: Grams, *, once: bool) -> str:
    """How often each gram occurs, or whether (`once`), times its weight, at its place: grams of one
    place are added up.
    """
    (*batch, size) = node.type(0).shape
    value = _comparable(node, grams)
    parts, order = list[str](), list[tuple[int, ...]]()
    for length in sorted({len(gram) for gram in grams}):
        own = [gram for gram in grams if len(gram) == length]
        windows = _windows(closed(size), length, node.integer("max_skip_count"))
        if len(windows):
            parts.append(_occurrences(node, value, own, windows))
            order += own
    zero = node.table("zero", Splat(0.0, "float32", ()))
    parts.append(node.emit(Expand((*batch, 1)), zero))
    joined = node.emit(Concat(len(batch)), *parts) if len(parts) > 1 else parts[0]
    if once:
        joined = node.spell("Min", joined, node.table("one", Splat(1.0, "float32", ())))
    weights = [*(grams[gram][1] for gram in order), 0.0]
    if any(weight != 1.0 for weight in weights[:-1]):
        table = node.table("weights", np.array(weights, np.float32))
        joined = node.spell("Mul", joined, table)
    of_place: list[list[int]] = [[] for _ in range(max(node.integers("ngram_indexes")) + 1)]
    for number, gram in enumerate(order):
        of_place[grams[gram][0]].append(number)
    total = ""
    for turn in range(max(1, *map(len, of_place))):
        at = [of[turn] if turn < len(of) else len(order) for of in of_place]
        taken = node.spell("Gather", joined, _list(node, at), axis=len(batch))
        total = node.spell("Add", total, taken) if total else taken
    return total


def _comparable(node: NodeReader, grams: Grams) -> str:
    """The input, as int64 where its own type does not hold all numbers of the pool."""
    numbers = [number for gram in grams for number in gram]
    narrow = node.type(0).dtype == "int32" and all(-(1 << 31) <= n < 1 << 31 for n in numbers)
    if narrow or node.type(0).dtype == "int64":
        return node.value(0)
    return node.emit(Cast("int64"), node.value(0))


def _windows(size: int, length: int, skips: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """The places of the words of each window: neighbours, and those with up to so many between."""
    distances = range(1, skips + 2) if length > 1 else range(1, 2)
    found = [
        np.arange(max(0, size - (length - 1) * d))[:, None] + np.arange(length) * d
        for d in distances
    ]
    return np.concatenate(found).astype(np.int64)


def _occurrences(
    node: NodeReader,
    value: str,
    grams: Sequence[tuple[int, ...]],
    windows: np.ndarray[tuple[int, int], np.dtype[np.int64]],
) -> str:
    """[..., grams]: in how many windows each gram stands."""
    (*batch, _) = node.type(0).shape
    kind, axis = node.builder.types[value].dtype, len(batch)
    same = ""
    for number, words in enumerate(zip(*grams, strict=True)):
        own = node.spell("Gather", value, _list(node, windows[:, number].tolist()), axis=axis)
        column = node.emit(Reshape((*batch, len(windows), 1)), own)
        equal = node.emit(Equal(), column, node.table("words", np.array(words, kind)))
        same = node.emit(And(), same, equal) if same else equal
    return node.emit(ReduceSum((axis,), False), node.emit(Cast("float32"), same))


def _list(node: NodeReader, values: Sequence[int]) -> str:
    return node.table("list", np.array(values, np.int64))


RULES: dict[str, ImportRule] = {
    "TfIdfVectorizer": ImportRule(
        (9,),
        (
            "max_gram_length",
            "max_skip_count",
            "min_gram_length",
            "mode",
            "ngram_counts",
            "ngram_indexes",
            "pool_int64s",
            "pool_strings",
            "weights",
        ),
        _vectorizer,
    ),
}
