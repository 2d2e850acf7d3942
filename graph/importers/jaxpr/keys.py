"""Keys of random numbers as what they are in memory: a last axis of two words, of which primitives
that move keys know nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..onnx.node import NotSupported
from .writer import JaxValue

Parameters = dict[str, object]
_WORDS = 2
# what knows of the words, or only hands keys on
_KNOWING = frozenset(
    {
        "cond",
        "custom_jvp_call",
        "custom_vjp_call",
        "jit",
        "closed_call",
        "optimization_barrier",
        "random_bits",
        "random_clone",
        "random_fold_in",
        "random_split",
        "random_unwrap",
        "remat2",
        "scan",
        "squeeze",
        "concatenate",
        "stack",
        "unstack",
        "split",
        "stop_gradient",
        "while",
    }
)


def physical(
    primitive: str, parameters: Mapping[str, object], operands: Sequence[JaxValue]
) -> Parameters:
    """The parameters of a primitive where its operands, which are keys, have their words as a last
    axis. Raises: NotSupported.
    """
    if primitive in _KNOWING:
        return dict(parameters)
    if primitive not in _EXTENDED:
        raise NotSupported(
            "it computes with keys of random numbers",
            "jax.random.key_data(key) gives their words.",
        )
    return _EXTENDED[primitive](dict(parameters), operands[0].rank - 1)


def _broadcast(given: Parameters, rank: int) -> Parameters:
    shape, axes = _listed(given["shape"]), _listed(given["broadcast_dimensions"])
    return given | {
        "shape": (*shape, _WORDS),
        "broadcast_dimensions": (*axes, len(shape)),
    }


def _reshape(given: Parameters, rank: int) -> Parameters:
    return given | {"new_sizes": (*_listed(given["new_sizes"]), _WORDS)}


def _slice(given: Parameters, rank: int) -> Parameters:
    steps = given["strides"]
    return given | {
        "start_indices": (*_listed(given["start_indices"]), 0),
        "limit_indices": (*_listed(given["limit_indices"]), _WORDS),
        "strides": None if steps is None else (*_listed(steps), 1),
    }


def _transpose(given: Parameters, rank: int) -> Parameters:
    return given | {"permutation": (*_listed(given["permutation"]), rank)}


def _listed(value: object) -> tuple[object, ...]:
    assert isinstance(value, tuple)
    return value


_EXTENDED: Mapping[str, Callable[[Parameters, int], Parameters]] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _transpose,
}
