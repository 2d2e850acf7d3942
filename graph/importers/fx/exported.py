"""Programs of torch.export that exist as objects, and modules, which torch.export is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ModelError
from ...options import Shapes
from ..aten.program import ExportedProgram, Known
from ..aten.signature import changed, output_names
from .reader import FxReader


def as_program(
    model: object,
    args: Sequence[object] | None,
    kwargs: Mapping[str, object] | None,
    shapes: Shapes | None,
) -> object:
    """The program of a module with example inputs, or of an ExportedProgram; any other model as it
    is. shapes: says which sizes of a module's inputs stay open.

    Raises: ModelError.
    """
    torch: Any = sys.modules.get("torch")
    if isinstance(model, str | bytes | os.PathLike):
        return model
    if torch is not None and isinstance(model, torch.nn.Module):
        if args is None and not kwargs:
            raise ModelError(
                f"compile: the model is a module, {type(model).__name__}, and has no example "
                "inputs; expected args=(...), with which torch.export follows it.",
                code="module-args",
                hints=("tw.compile(module, args=(torch.randn(1, 3, 224, 224),))",),
            )
        return program_of(exported(model, args or (), kwargs or {}, shapes), type(model).__name__)
    if torch is None or not isinstance(model, torch.export.ExportedProgram):
        return model
    return program_of(model)


def exported(
    module: Any, args: Sequence[object], kwargs: Mapping[str, object], shapes: Shapes | None
) -> Any:
    """What torch.export makes of a module. Raises: ModelError, and what torch raises."""
    torch = sys.modules["torch"]
    if module.training:
        raise ModelError(
            f"compile: the module {type(module).__name__} is in training mode; expected one that "
            "is evaluated.",
            code="module-training",
            hints=("module.eval() returns it in that mode.",),
        )
    sizes = _open_sizes(module, args, kwargs, shapes or {})
    with torch.no_grad():
        return torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=sizes)


def _open_sizes(
    module: Any, args: Sequence[object], kwargs: Mapping[str, object], shapes: Shapes
) -> dict[str, object] | None:
    """For each argument, the axes that are open, with their bounds. Raises: ModelError."""
    import inspect

    torch = sys.modules["torch"]
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    unknown = [name for name in shapes if name not in bound.arguments]
    if unknown:
        raise ModelError(
            f"shapes: '{unknown[0]}' is no argument of {type(module).__name__}.forward; expected "
            f"some of {', '.join(map(repr, bound.arguments))}.",
            code="module-shapes",
            hints=('shapes={"x": ((1, 8, 64), 128)} leaves axis 0 of x open.',),
        )
    found = dict[str, object]()
    for name in bound.arguments:
        said = shapes.get(name, ())
        axes = enumerate(said) if isinstance(said, Sequence) else ()
        found[name] = {
            axis: torch.export.Dim(f"{name}_{axis}", min=size[0], max=size[2])
            for axis, size in axes
            if isinstance(size, Sequence)
        } or None
    return found if any(found.values()) else None


def program_of(program: Any, name: str = "model") -> ExportedProgram:
    """The program that an ExportedProgram of torch is. Raises: ModelError."""
    reader = FxReader()
    graph = reader.graph(program.graph_module)
    held = {**program.state_dict, **program.constants}
    constants, inputs, buffers = dict[str, Known](), list[str](), dict[str, str]()
    for spec in program.graph_signature.input_specs:
        own, kind = spec.arg.name, spec.kind.name
        if kind == "USER_INPUT" and hasattr(spec.arg, "value"):
            constants[own] = spec.arg.value
        elif kind == "USER_INPUT":
            inputs.append(own)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            buffers[own] = spec.target
            constants[own] = reader.arrays.read(f"weight '{spec.target}'", held[spec.target])
        else:
            raise ModelError(
                f"model: input '{own}' is a {kind.lower()}; expected tensors and numbers.",
                code="pt2-input",
            )
    for spec in program.graph_signature.output_specs:
        kind = spec.kind.name.lower()
        if kind != "user_output":
            raise changed(kind, [spec.target] if spec.target else [])
    ranges = {
        str(symbol): (end_of_range(range_.lower), end_of_range(range_.upper))
        for symbol, range_ in program.range_constraints.items()
    }
    return ExportedProgram(
        name,
        graph,
        {**constants, **reader.known},
        tuple(inputs),
        output_names(graph.outputs, inputs),
        buffers,
        ranges,
    )


def end_of_range(value: Any) -> int | None:
    """An end of a range; None where it has none."""
    return int(value) if getattr(value, "is_Integer", isinstance(value, int)) else None
