"""Mutants of models: changes that keep a model readable and make it say something else. Each is a
function of the model and a source of random choices; `mutant(seed)` draws some.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from tilewright.graph.importers.onnx.rules.table import RULES

from .seeds import seed_model

WHOLE = (0, -1, 1, 2, 3, 7, 17, 300, 4097, 65536, 2**24 + 2, 2**31 - 1, 2**31, 2**32 - 1, 2**40)
INTEGERS = (*WHOLE, -2, -7, -(2**31), 2**62, 2**63 - 1, -(2**63))
REALS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-38, 1e-45, 3e38, float("inf"), float("-inf"), float("nan"))
TEXTS = ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", "nearest", "linear", "cubic", "reflect")
TEXTS += ("edge", "wrap", "constant", "tanh", "none", "align_corners", "asymmetric", "half_pixel")
TEXTS += ("pytorch_half_pixel", "half_pixel_symmetric", "floor", "ceil", "CRD", "DCR", "\x1b]0;x\a")
NAMES = ("", "x", "\x1b[2J", "a\nb", "\u202ename", "*/ int", "??/", "n" * 300, "0", "ünïcode")
TYPES = tuple(range(24))
KINDS = (*range(1, 8), 11)
OPERATORS = tuple(sorted(RULES))

Change = Callable[[ModelProto, random.Random], None]


def mutant(seed: int) -> ModelProto:
    """The mutant that a number stands for: a seed with one to four changes."""
    draw = random.Random(seed)
    model = seed_model(draw.randrange(1 << 20))
    for _ in range(draw.choice((1, 1, 2, 2, 3, 4))):
        draw.choice(CHANGES)(model, draw)
    return model


def _pick(items: Sequence[object], draw: random.Random) -> object | None:
    return draw.choice(items) if len(items) else None


def _some_node(model: ModelProto, draw: random.Random) -> NodeProto | None:
    return _pick(model.graph.node, draw)  # type: ignore[return-value]


def _some_attribute(model: ModelProto, draw: random.Random) -> AttributeProto | None:
    return _pick([a for node in model.graph.node for a in node.attribute], draw)  # type: ignore[return-value]


def _some_tensor(model: ModelProto, draw: random.Random) -> TensorProto | None:
    own = list(model.graph.initializer)
    own += [a.t for node in model.graph.node for a in node.attribute if a.type == a.TENSOR]
    return _pick(own, draw)  # type: ignore[return-value]


def _values(model: ModelProto) -> list[str]:
    names = [name for node in model.graph.node for name in node.output]
    names += [item.name for item in (*model.graph.input, *model.graph.initializer)]
    return names or ["x"]


def drop_attribute(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is not None and node.attribute:
        del node.attribute[draw.randrange(len(node.attribute))]


def change_attribute(model: ModelProto, draw: random.Random) -> None:
    """Another number, list or text of the kind that it has."""
    attribute = _some_attribute(model, draw)
    if attribute is None:
        return
    if attribute.type == AttributeProto.INT:
        attribute.i = draw.choice(INTEGERS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = draw.choice(REALS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = draw.choice(TEXTS).encode()
    elif attribute.type == AttributeProto.INTS:
        attribute.ints[:] = _changed_list(list(attribute.ints), INTEGERS, draw)
    elif attribute.type == AttributeProto.FLOATS:
        attribute.floats[:] = _changed_list(list(attribute.floats), REALS, draw)


def _changed_list(items: list, values: Sequence, draw: random.Random) -> list:
    match draw.randrange(5):
        case 0:
            return []
        case 1:
            return items[:-1]
        case 2:
            return [*items, draw.choice(values)]
        case 3:
            return [draw.choice(values) for _ in items]
        case _:
            at = draw.randrange(len(items) + 1)
            return [draw.choice(values) if n == at else item for n, item in enumerate(items)]


def retype_attribute(model: ModelProto, draw: random.Random) -> None:
    attribute = _some_attribute(model, draw)
    if attribute is not None:
        attribute.type = draw.choice(KINDS)


def add_attribute(model: ModelProto, draw: random.Random) -> None:
    """One that some version of the operator has, of any kind."""
    node = _some_node(model, draw)
    known = RULES[node.op_type].attributes if node is not None and node.op_type in RULES else ()
    name = _pick(known, draw)
    if node is None or name is None:
        return
    values = (
        draw.choice(INTEGERS),
        draw.choice(REALS),
        draw.choice(TEXTS),
        [draw.choice(INTEGERS) for _ in range(draw.randrange(1, 5))],
    )
    node.attribute.append(helper.make_attribute(name, draw.choice(values)))


def rewire_input(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is not None and node.input:
        node.input[draw.randrange(len(node.input))] = draw.choice((*_values(model), "", "ghost"))


def add_or_drop_input(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is not None and node.input and draw.random() < 0.5:
        del node.input[draw.randrange(len(node.input))]
    elif node is not None:
        copies = draw.choice((1, 1, 2, 40))
        node.input.extend([draw.choice(_values(model))] * copies)


def change_outputs(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is None:
        return
    match draw.randrange(3):
        case 0 if node.output:
            del node.output[-1]
        case 1:
            node.output.append(draw.choice(("", f"extra{draw.randrange(9)}", *_values(model))))
        case _:
            value = ValueInfoProto(name=draw.choice(_values(model)))
            model.graph.output.append(value)


def swap_operator(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is not None:
        node.op_type = draw.choice(OPERATORS)
        if draw.random() < 0.7:
            del node.attribute[:]


def duplicate_node(model: ModelProto, draw: random.Random) -> None:
    node = _some_node(model, draw)
    if node is None:
        return
    copy = model.graph.node.add()
    copy.CopyFrom(node)
    if draw.random() < 0.8:
        copy.output[:] = [f"{name}_copy{draw.randrange(1000)}" for name in node.output]
        if node.output and draw.random() < 0.7:
            copy.input[:] = [node.output[0], *copy.input[1:]]
        if copy.output:
            model.graph.output.add().name = copy.output[0]


def drop_node(model: ModelProto, draw: random.Random) -> None:
    if model.graph.node:
        del model.graph.node[draw.randrange(len(model.graph.node))]


def append_node(model: ModelProto, draw: random.Random) -> None:
    """An operator on one or two values that are there, its result an output."""
    operator, values = draw.choice(OPERATORS), _values(model)
    count = draw.choice((1, 1, 2, 3))
    name = f"added{draw.randrange(1000)}"
    inputs = [draw.choice(values) for _ in range(count)]
    model.graph.node.append(helper.make_node(operator, inputs, [name]))
    model.graph.output.add().name = name


def add_constant(model: ModelProto, draw: random.Random) -> None:
    """A list of sizes for some input of some node, perhaps through ConstantOfShape."""
    node = _some_node(model, draw)
    if node is None or not node.input:
        return
    sizes = [draw.choice(INTEGERS) for _ in range(draw.randrange(5))]
    name = f"constant{draw.randrange(1000)}"
    kind = TensorProto.INT64
    model.graph.initializer.append(helper.make_tensor(name, kind, [len(sizes)], sizes))
    if draw.random() < 0.3:
        made = helper.make_node("ConstantOfShape", [name], [f"{name}_made"])
        model.graph.node.insert(0, made)
        name = f"{name}_made"
    node.input[draw.randrange(len(node.input))] = name


def change_input_shape(model: ModelProto, draw: random.Random) -> None:
    item = _pick(model.graph.input, draw)
    if item is None:
        return
    shape = item.type.tensor_type.shape
    match draw.randrange(4):
        case 0 if shape.dim:
            del shape.dim[draw.randrange(len(shape.dim))]
        case 1:
            shape.dim.add().dim_value = draw.choice(INTEGERS)
        case _ if shape.dim:
            dim = draw.choice(shape.dim)
            dim.dim_value = draw.choice((*WHOLE, 4, 8, 16))


def retype_input(model: ModelProto, draw: random.Random) -> None:
    item = _pick(model.graph.input, draw)
    if item is not None:
        item.type.tensor_type.elem_type = draw.choice(TYPES)


def change_tensor_shape(model: ModelProto, draw: random.Random) -> None:
    tensor = _some_tensor(model, draw)
    if tensor is not None:
        tensor.dims[:] = _changed_list(list(tensor.dims), INTEGERS, draw)


def change_tensor_values(model: ModelProto, draw: random.Random) -> None:
    """Other integers or numbers, as many as the tensor has."""
    tensor = _some_tensor(model, draw)
    if tensor is None or tensor.data_type not in (TensorProto.INT64, TensorProto.FLOAT):
        return
    values = INTEGERS if tensor.data_type == TensorProto.INT64 else REALS
    count = math.prod(tensor.dims)
    if min(tensor.dims, default=0) < 0 or count > 1000:
        return
    name = tensor.name
    drawn = [draw.choice(values) for _ in range(count)]
    tensor.CopyFrom(helper.make_tensor(name, tensor.data_type, list(tensor.dims), drawn))


def retype_tensor(model: ModelProto, draw: random.Random) -> None:
    tensor = _some_tensor(model, draw)
    if tensor is not None:
        tensor.data_type = draw.choice(TYPES)


def cut_tensor(model: ModelProto, draw: random.Random) -> None:
    tensor = _some_tensor(model, draw)
    if tensor is not None and tensor.raw_data:
        tensor.raw_data = tensor.raw_data[: draw.randrange(len(tensor.raw_data))]


def change_opset(model: ModelProto, draw: random.Random) -> None:
    for item in model.opset_import:
        item.version = draw.choice((*range(1, 30), 2**40, -1))


def rename(model: ModelProto, draw: random.Random) -> None:
    """One name for another wherever it stands, or the name of the graph or of a node."""
    name = draw.choice(NAMES)
    old = draw.choice(_values(model))
    match draw.randrange(3):
        case 0:
            model.graph.name = name
        case 1 if model.graph.node:
            draw.choice(model.graph.node).name = name
        case _:
            for node in model.graph.node:
                node.input[:] = [name if one == old else one for one in node.input]
                node.output[:] = [name if one == old else one for one in node.output]
            for item in (*model.graph.input, *model.graph.output, *model.graph.initializer):
                item.name = name if item.name == old else item.name


def join(model: ModelProto, draw: random.Random) -> None:
    """Another seed behind this one: its inputs are values of this one."""
    other = seed_model(draw.randrange(1 << 20))
    values, prefix = _values(model), f"j{draw.randrange(1000)}_"
    taken = {item.name: draw.choice(values) for item in other.graph.input}

    def named(name: str) -> str:
        return taken.get(name, name and prefix + name)

    for node in other.graph.node:
        copy = model.graph.node.add()
        copy.CopyFrom(node)
        copy.input[:] = map(named, node.input)
        copy.output[:] = map(named, node.output)
    for tensor in other.graph.initializer:
        added = model.graph.initializer.add()
        added.CopyFrom(tensor)
        added.name = named(tensor.name)
    for item in other.graph.output:
        model.graph.output.add().name = named(item.name)


CHANGES: tuple[Change, ...] = (
    drop_attribute,
    change_attribute,
    change_attribute,
    change_attribute,
    retype_attribute,
    add_attribute,
    rewire_input,
    rewire_input,
    add_or_drop_input,
    change_outputs,
    swap_operator,
    duplicate_node,
    duplicate_node,
    drop_node,
    append_node,
    append_node,
    add_constant,
    change_input_shape,
    change_input_shape,
    retype_input,
    change_tensor_shape,
    change_tensor_values,
    change_tensor_values,
    retype_tensor,
    cut_tensor,
    change_opset,
    rename,
    join,
)
