"""Calls that are recurrent networks."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from .given import Calls, Given, aten, numbers

HIDDEN, LAYERS, WIDTH = 5, 2, 4


def _weights(gates: int, directions: int) -> dict[str, Tensor]:
    """Of two layers: of the input, of the state, and two biases, for each direction."""
    found = dict[str, Tensor]()
    for layer in range(LAYERS):
        width = WIDTH if layer == 0 else HIDDEN * directions
        for d in range(directions):
            seed = 10 * layer + d
            shapes = ((gates * HIDDEN, width), (gates * HIDDEN, HIDDEN), *((gates * HIDDEN,),) * 2)
            for n, shape in enumerate(shapes):
                name = f"w{gates}_{directions}_{layer}_{d}_{n}"
                found[name] = numbers(*shape, seed=seed + n, low=-0.5, high=0.5)
    return found


GIVEN: Given = {
    "x": numbers(3, 2, WIDTH),
    "h1": numbers(LAYERS, 2, HIDDEN, seed=1),
    "c1": numbers(LAYERS, 2, HIDDEN, seed=2),
    "h2": numbers(2 * LAYERS, 2, HIDDEN, seed=3),
    "c2": numbers(2 * LAYERS, 2, HIDDEN, seed=4),
    **_weights(4, 2),
    **_weights(4, 1),
    **_weights(3, 2),
    **_weights(1, 1),
}


def _params(g: Given, gates: int, directions: int, *, biases: bool = True) -> list[Tensor]:
    own = [g[name] for name in g if name.startswith(f"w{gates}_{directions}_")]
    return own if biases else [w for n, w in enumerate(own) if n % 4 < 2]


def _of_one(name: str, gates: int, directions: int) -> Callable[[Given], object]:
    op = getattr(aten, name).input

    def call(g: Given) -> object:
        params = _params(g, gates, directions)
        given = (g["x"], g[f"h{directions}"], params, True, LAYERS, 0.0, False)
        return op(*given, directions == 2, False)

    return call


CALLS: Calls = [
    lambda g: aten.lstm.input(
        g["x"], [g["h2"], g["c2"]], _params(g, 4, 2), True, LAYERS, 0.0, False, True, False
    ),
    lambda g: aten.lstm.input(
        g["x"].transpose(0, 1),
        [g["h1"], g["c1"]],
        _params(g, 4, 1, biases=False),
        False,
        LAYERS,
        0.3,
        False,
        False,
        True,
    ),
    _of_one("gru", 3, 2),
    _of_one("rnn_tanh", 1, 1),
    _of_one("rnn_relu", 1, 1),
]
