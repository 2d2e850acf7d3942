"""Functions of JAX that exist as objects: the program that `jax.make_jaxpr` records of one.

jax is not imported here: who holds such a function has imported it.
"""

from __future__ import annotations

import sys

from .arguments import ArgumentsError


def traced(model: object, args: object) -> object:
    """The program of a function of JAX on arguments like these; any other model as it is, which
    takes none.

    args: a tuple; arrays, `jax.ShapeDtypeStruct`s or numbers in any pytrees, of which only types
    and shapes count. Each leaf is an input of the program; what the function closed over is a
    constant of it.
    Raises: ArgumentsError; what the function or JAX raises while it is traced.
    """
    if args is None:
        return model
    if not isinstance(args, tuple | list):
        raise ArgumentsError(
            f"compile: args is a {type(args).__name__}; expected a tuple with what the function "
            "takes.",
            code="jax-args",
            hints=("args=(x,) for a function of one array.",),
        )
    if not callable(model):
        raise ArgumentsError(
            f"compile: args are given, and the model is a {type(model).__name__}; expected a "
            "function of JAX or a module of torch, which is followed with them.",
            code="jax-no-function",
            hints=("leave it out: a file or a program knows the types of its inputs.",),
        )
    jax = sys.modules.get("jax")
    if jax is None:
        raise ArgumentsError(
            f"compile: the model is a {type(model).__name__}, and jax is not imported; expected a "
            "function that computes with arrays of JAX.",
            code="jax-not-imported",
        )
    # here, because a model of another kind must not wait for what only a function needs
    from .recorder import recorded

    return recorded(jax, model, tuple(args))
