"""What a rule of a primitive is: a function whose parameters, behind the writer, are the operands
and, by name, the parameters of the equation, but for those that change no value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]  # gives a tensor, or several in a list
# parameters that say where arrays lie, how a gradient or a batch is computed, how exact a product
# of float32 may be (here it is exact to rounding), or what the library calls something
NO_VALUES = frozenset(
    {
        "accuracy",
        "branches_platforms",
        "bwd",
        "compiler_options_kvs",
        "computation",
        "context_mesh",
        "copy_semantics",
        "ctx_mesh",
        "devices",
        "differentiated",
        "donated_invars",
        "fwd_jaxpr_thunk",
        "in_layouts",
        "in_shardings",
        "in_tree",
        "indices_are_sorted",
        "inline",
        "is_stable",
        "jvp_jaxpr_fun",
        "keep_unused",
        "layout",
        "name",
        "out_layouts",
        "out_sharding",
        "out_shardings",
        "out_tree",
        "out_trees",
        "policy",
        "precision",
        "prevent_cse",
        "rule",
        "sharding",
        "srcs",
        "symbolic_zeros",
        "unconstrained_dims",
        "unique_indices",
        "unroll",
        "weak_type",
    }
)
