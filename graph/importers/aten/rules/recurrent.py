"""Rules of recurrent networks, layer by layer as ONNX has them."""

from __future__ import annotations

from collections.abc import Sequence

from .....tir.sizes import closed
from ....ops.movement import Concat, Transpose
from ...onnx.node import Attribute, NotSupported
from ..rule import Rule
from ..writer import AtenValue, AtenWriter
from .views import joined, sliced, unsqueezed

# where the gates of ONNX stand among those of PyTorch: of an LSTM i, o, f, g among i, f, g, o; of a
# GRU z, r, n among r, z, n
_LSTM, _GRU, _RNN = (0, 3, 1, 2), (1, 0, 2), (0,)


def _layers(
    w: AtenWriter,
    operator: str,
    gates: Sequence[int],
    x: AtenValue,
    states: Sequence[AtenValue],
    params: Sequence[AtenValue],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
    attributes: dict[str, Attribute],
) -> list[AtenValue]:
    """What the last layer gives, and the last states of all layers, in both directions."""
    directions = 2 if bidirectional else 1
    each = 4 if has_biases else 2
    if len(params) != num_layers * directions * each:
        raise NotSupported("its states are projected")
    if batch_first:
        x = w.emit(Transpose((1, 0, 2)), x)
    ends: list[list[AtenValue]] = [[] for _ in states]
    for layer in range(num_layers):
        first = layer * directions
        own = [params[n * each : (n + 1) * each] for n in range(first, first + directions)]
        weights = [_gated(w, gates, [part[n] for part in own]) for n in range(each)]
        bias = joined(w, weights[2:], 1) if has_biases else None
        begin = [sliced(w, state, 0, first, first + directions) for state in states]
        hidden = closed(weights[1].shape[-1])
        direction = "bidirectional" if bidirectional else "forward"
        named: dict[str, Attribute] = {"hidden_size": hidden, "direction": direction, **attributes}
        inputs = (x, *weights[:2], bias, None, *begin)
        made, *after = w.spell_all(operator, 1 + len(states), *inputs, **named)
        for end, state in zip(ends, after, strict=True):
            end.append(state)
        steps, _, batch, _ = made.shape
        turned = w.emit(Transpose((0, 2, 1, 3)), made)
        x = w.reshape(turned, (steps, batch, directions * hidden))
    if batch_first:
        x = w.emit(Transpose((1, 0, 2)), x)
    return [x, *(joined(w, end, 0) for end in ends)]


def _gated(w: AtenWriter, gates: Sequence[int], weights: Sequence[AtenValue]) -> AtenValue:
    """Weights of all directions, their gates in the order of ONNX."""
    made = list[AtenValue]()
    for weight in weights:
        size = closed(weight.shape[0]) // len(gates)
        parts = [sliced(w, weight, 0, gate * size, (gate + 1) * size) for gate in gates]
        made.append(unsqueezed(w, w.emit(Concat(0), *parts) if len(parts) > 1 else parts[0], 0))
    return joined(w, made, 0)


def _lstm(
    w: AtenWriter,
    input: AtenValue,
    hx: Sequence[AtenValue],
    params: Sequence[AtenValue],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> list[AtenValue]:
    _check_eval(dropout, train)
    return _layers(
        w,
        "LSTM",
        _LSTM,
        input,
        hx,
        params,
        has_biases,
        num_layers,
        bidirectional,
        batch_first,
        {},
    )


def _of_one_state(operator: str, gates: Sequence[int], attributes: dict[str, Attribute]) -> Rule:
    def rule(
        w: AtenWriter,
        input: AtenValue,
        hx: AtenValue,
        params: Sequence[AtenValue],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> list[AtenValue]:
        _check_eval(dropout, train)
        own = dict(attributes)
        if "activations" in own and bidirectional:
            own["activations"] = ("Relu", "Relu")
        return _layers(
            w,
            operator,
            gates,
            input,
            (hx,),
            params,
            has_biases,
            num_layers,
            bidirectional,
            batch_first,
            own,
        )

    return rule


def _check_eval(dropout: float, train: bool) -> None:
    if train and dropout > 0:
        raise NotSupported("it drops elements as in training", "model.eval() before the export.")


RULES: dict[str, Rule] = {
    "gru.input": _of_one_state("GRU", _GRU, {"linear_before_reset": 1}),
    "lstm.input": _lstm,
    "rnn_relu.input": _of_one_state("RNN", _RNN, {"activations": ("Relu",)}),
    "rnn_tanh.input": _of_one_state("RNN", _RNN, {}),
}
