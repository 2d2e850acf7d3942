"""Models that are objects of another framework, as programs: modules and ExportedPrograms of torch,
functions of JAX. Neither framework is imported here: who holds such an object has imported it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import ModelError
from ..options import Shapes
from .fx.exported import as_program
from .jaxpr.traced import traced


def traced_model(
    model: object,
    args: Sequence[object] | None,
    kwargs: Mapping[str, object] | None,
    shapes: Shapes | None,
) -> object:
    """The program of an object of another framework; any other model as it is.

    args, kwargs: example inputs of a module, or what a function of JAX takes. shapes: says which
    sizes of a module's inputs stay open.
    Raises: ModelError; what the framework raises while it follows the object.
    """
    program = as_program(model, args, kwargs, shapes)
    if program is not model:
        return program
    if kwargs:
        raise ModelError(
            f"compile: kwargs are given, and the model is a {type(model).__name__}; expected a "
            "module of torch, which they are example inputs of.",
            code="compile-kwargs",
            hints=("functools.partial(function, ...) gives a function of JAX what is no input.",),
        )
    return traced(model, args)
